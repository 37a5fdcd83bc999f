//! The comment at the end of a statement for PostgreSQL, in the format of sqlcommenter, by which its log and its
//! statistics name the route that asks.

use std::sync::Arc;

use parkade_model::TraceParent;
use parkade_sql::Query;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::config::SqlComments;

/// As `encodeURIComponent` does, so that no value ends its quotes or the comment.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Who asks.
#[derive(Debug, Clone, Copy)]
pub enum QueryOrigin<'a> {
    /// A pattern, such as `/orders/{id}`.
    Route(&'a str),
    /// The name of a job.
    Job(&'a str),
    Unknown,
}

/// Adds the comment. What differs in each query is kept apart from the text, by which connections keep statements
/// prepared.
pub fn add(query: &mut Query, what: SqlComments, asker: QueryOrigin<'_>, trace: Option<TraceParent>) {
    if what == SqlComments::Off {
        return;
    }
    let asker = match asker {
        QueryOrigin::Route(pattern) => Some(("route", pattern)),
        QueryOrigin::Job(name) => Some(("job", name)),
        QueryOrigin::Unknown => None,
    };
    let sampled = trace.filter(|trace| what == SqlComments::Trace && trace.is_sampled());
    if let Some(trace) = sampled {
        let traceparent = trace.to_string();
        query.commented = Some(with_comment(&query.text, asker.into_iter().chain([("traceparent", &*traceparent)])));
    } else if asker.is_some() {
        query.text = with_comment(&query.text, asker.into_iter());
    }
}

/// Keys are in the order of the alphabet.
fn with_comment<'a>(text: &str, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Arc<str> {
    let pairs: Vec<_> = pairs.map(|(key, value)| format!("{key}='{}'", utf8_percent_encode(value, ENCODED))).collect();
    // The last line may end in a comment.
    let space = if text.contains("--") { '\n' } else { ' ' };
    format!("{text}{space}/*{}*/", pairs.join(",")).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use parkade_sql::{Int8, RowFormat, Shape};

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0";

    fn check(
        what: SqlComments,
        text: &str,
        asker: QueryOrigin<'_>,
        flag: &str,
        expected: &str,
        commented: Option<&str>,
    ) {
        let form = RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: None };
        let mut query = Query { text: text.into(), commented: None, parameters: vec![], form };
        add(&mut query, what, asker, TraceParent::parse(format!("{TRACE}{flag}").as_bytes()));
        assert_eq!((&*query.text, query.commented.as_deref()), (expected, commented));
    }

    #[test]
    fn what_is_the_same_in_each_query_is_part_of_the_text_that_is_prepared() {
        let route = QueryOrigin::Route("/orders/{id}");
        let told = "select 1 /*route='%2Forders%2F%7Bid%7D'*/";
        check(SqlComments::Off, "select 1", route, "1", "select 1", None);
        check(SqlComments::Route, "select 1", route, "1", told, None);
        check(SqlComments::Trace, "select 1", route, "0", told, None);
        let both = format!("select 1 /*route='%2Forders%2F%7Bid%7D',traceparent='{TRACE}1'*/");
        check(SqlComments::Trace, "select 1", route, "1", "select 1", Some(&both));
        let only = format!("select 1 /*traceparent='{TRACE}1'*/");
        check(SqlComments::Trace, "select 1", QueryOrigin::Unknown, "1", "select 1", Some(&only));
        check(SqlComments::Route, "select 1", QueryOrigin::Unknown, "1", "select 1", None);
    }

    #[test]
    fn no_name_ends_the_comment() {
        let job = QueryOrigin::Job("it's */ drop table x; --%");
        let told = "select 1 /*job='it%27s%20%2A%2F%20drop%20table%20x%3B%20--%25'*/";
        check(SqlComments::Route, "select 1", job, "1", told, None);
        check(SqlComments::Route, "select 1 -- all", QueryOrigin::Job("x"), "1", "select 1 -- all\n/*job='x'*/", None);
    }
}

//! `GET /jobs`: lists jobs.

use hyper::StatusCode;
use parkade_jobs::{Filter, JobState};

use super::{JobAnswer, JobAsk, JobList, JobView, asked, unexpected};
use crate::admin::answers::{AdminAnswer, fault, json};
use crate::admin::door::AdminDoor;
use crate::admin::limits::{LISTED_COUNT_DEFAULT, LISTED_COUNT_MAX};
use crate::admin::percent::pairs;

pub async fn list(query: Option<&str>, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer> {
    let filter = filter(query.unwrap_or_default()).map_err(|error| fault(StatusCode::BAD_REQUEST, &error))?;
    match asked(JobAsk::List(filter), door).await? {
        JobAnswer::Listed(jobs) => {
            let jobs = jobs.into_iter().map(JobView::briefly).collect();
            Ok(json(StatusCode::OK, &JobList { jobs }))
        }
        other => Err(unexpected(&other)),
    }
}

fn filter(query: &str) -> Result<Filter, String> {
    let mut filter = Filter { count: LISTED_COUNT_DEFAULT, ..Filter::default() };
    for (name, value) in pairs(query)? {
        match &*name {
            "state" => filter.state = Some(JobState::of(&value).ok_or_else(no_state)?),
            "name" => filter.name = Some(value.into()),
            "queue" => filter.queue = Some(value.into()),
            "count" => {
                let count = value.parse().ok().filter(|count| (1..=LISTED_COUNT_MAX).contains(count));
                filter.count = count.ok_or_else(|| format!("count must be between 1 and {LISTED_COUNT_MAX}"))?;
            }
            _ => return Err(format!("unknown filter {name:?}; the filters are state, name, queue and count")),
        }
    }
    Ok(filter)
}

fn no_state() -> String {
    let words: Vec<_> = JobState::ALL.into_iter().map(JobState::word).collect();
    format!("state must be one of {}", words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_of_what_its_query_says() {
        let all = Filter { count: 50, ..Filter::default() };
        for (query, expected) in [
            ("", all.clone()),
            ("state=dead&count=1000", Filter { state: Some(JobState::Dead), count: 1_000, ..Filter::default() }),
            ("name=a%26b+c&queue=mail", Filter { name: Some("a&b c".into()), queue: Some("mail".into()), ..all }),
        ] {
            assert_eq!(filter(query), Ok(expected), "{query}");
        }
        for (query, expected) in [
            ("state=gone", "state must be one of scheduled, ready, running, completed, dead, cancelled, unknown"),
            ("count=0", "count must be between 1 and 1000"),
            ("count=1001", "count must be between 1 and 1000"),
            ("key=7", "unknown filter \"key\"; the filters are state, name, queue and count"),
            ("name=%ff", "the query is not percent-encoded UTF-8"),
        ] {
            assert_eq!(filter(query), Err(expected.into()), "{query}");
        }
    }
}

//! Databases and their queries on the page.

use super::{line, table, time};
use crate::admin::Report;
use crate::admin::report::{DatabaseReport, QueryReport};

/// Queries that are shown of each; the others are only counted.
const QUERIES_SHOWN_MAX: usize = 10;
/// Characters of a statement that fit into a terminal.
const STATEMENT_CHARACTERS_MAX: usize = 60;

/// Empty if no database was ever used.
pub(super) fn lines(report: &Report) -> String {
    let used = report.databases.iter().filter(|(_, database)| database.state != "untried");
    used.map(|(name, database)| {
        let queries = database.running.iter().take(QUERIES_SHOWN_MAX).map(query);
        line("database", &head(name, database))
            + &table(&["id", "state", "age", "waiting", "cancelled", "statement"], queries)
    })
    .collect()
}

fn head(name: &str, database: &DatabaseReport) -> String {
    let slots: Vec<_> = database.slots.iter().map(|(state, count)| format!("{state} {count}")).collect();
    let counts = &database.counts;
    let why = database.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    let pooled = if database.is_pooled { "   behind a pooler" } else { "" };
    format!(
        "{name}   {}   {}{why}{pooled}   {}   queued {}   cancels {}   strays {}",
        database.product,
        database.state,
        slots.join("   "),
        database.queued,
        counts.cancels_sent,
        counts.strays
    )
}

fn query(query: &QueryReport) -> Vec<String> {
    let statement: String = query.statement.chars().take(STATEMENT_CHARACTERS_MAX).collect();
    let cancelled = if query.cancelled { "yes" } else { "" };
    vec![
        query.id.to_string(),
        query.state.clone(),
        time(query.age),
        query.waiting.to_string(),
        cancelled.into(),
        statement,
    ]
}

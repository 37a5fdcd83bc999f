//! The statements, each text made once: a connection identifies a prepared statement by its text.

use std::sync::{Arc, LazyLock};

use super::limits::{CONTENDED, LISTED_ENDED_COUNT_MAX, SCANNED_COUNT_MAX};
use crate::JobState;

macro_rules! texts {
    ($($name:ident = $text:expr;)*) => {
        $(pub static $name: LazyLock<Arc<str>> = LazyLock::new(|| Arc::from($text));)*
    };
}

const CLOCK: &str = "clock AS MATERIALIZED (
    SELECT coalesce($1::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS now
)";

/// This server's instance is known in this database, so the jobs are here.
const HERE: &str = "EXISTS (SELECT FROM parkade.boots WHERE boot = $12::uuid)";

/// The same for a program that was told the instance `$1`; NULL is any. In a copy of the database, its heart does not beat. A
/// transaction with one snapshot sees how it did at its beginning.
const BEATS: &str = "($1 IS NULL OR EXISTS (SELECT FROM parkade.boots
     WHERE boot = $1 AND abs(extract(epoch FROM seen -
           CASE WHEN current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN transaction_timestamp()
                ELSE clock_timestamp() END)) < 10))";

texts! {
    SCHEMA = include_str!("sql/schema.sql").replace("enqueue_body", &enqueue_body());
    ENQUEUE = format!(
        "WITH {CLOCK}, {}
SELECT id, CASE WHEN due > enqueued THEN due - enqueued END AS wait FROM fresh WHERE (SELECT count(*) FROM rung) >= 0",
        include_str!("sql/enqueue.sql").replace("may_begin", "true")
    );
    WITHIN = format!(
        "WITH {CLOCK}, {}
SELECT id, CASE WHEN due > enqueued THEN due - enqueued END AS wait FROM fresh WHERE (SELECT count(*) FROM rung) >= 0
UNION ALL SELECT NULL::uuid, NULL::int8 WHERE NOT {HERE}",
        include_str!("sql/enqueue.sql").replace("may_begin", HERE)
    );
    PROBE = include_str!("sql/probe.sql");
    RECUR = format!(
        "WITH {CLOCK}, noted AS (
    INSERT INTO parkade.recurring AS known (name, last) VALUES ($12::text, $13::int8)
    ON CONFLICT (name) DO UPDATE SET last = excluded.last WHERE excluded.last > known.last
    RETURNING name
), {}
SELECT EXISTS (SELECT FROM noted) AS changed, false AS is_there WHERE (SELECT count(*) FROM rung) >= 0",
        include_str!("sql/enqueue.sql").replace("may_begin", "EXISTS (SELECT FROM noted)")
    );
    THERE = include_str!("sql/there.sql");
    CLAIM = include_str!("sql/claim.sql").replace("contended_ms", &CONTENDED.as_millis().to_string());
    END = include_str!("sql/end.sql");
    CANCEL = include_str!("sql/cancel.sql");
    RETRY = include_str!("sql/retry.sql");
    DROP = include_str!("sql/drop.sql");
    RECOGNISE = include_str!("sql/recognise.sql");
    FIND = include_str!("sql/find.sql");
    COUNT = include_str!("sql/count.sql");
    SCHEDULES = "SELECT name, last FROM parkade.recurring ORDER BY name";
    ARRIVE = "INSERT INTO parkade.boots (boot, seen) VALUES ($1::uuid, clock_timestamp())
ON CONFLICT (boot) DO UPDATE SET seen = excluded.seen
RETURNING floor(extract(epoch FROM seen) * 1000)::int8 AS now";
    FENCE = "UPDATE parkade.boots SET fence = $2::int8 WHERE boot = $1::uuid AND fence < $2::int8";
    HAND_BACK = include_str!("sql/hand_back.sql");
    HEARTBEAT = include_str!("sql/heartbeat.sql");
    RESCUE = include_str!("sql/rescue.sql");
    TIDY = include_str!("sql/tidy.sql");
    CAUGHT_UP = include_str!("sql/caught_up.sql");
    LEAVE = "DELETE FROM parkade.boots WHERE boot = ANY ($1::uuid[])";
    INJECTED = "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '58030', MESSAGE = 'an injected fault'; END $$";
    LIST_SCHEDULED = list("SELECT id, seq, 0 AS state, attempt, due, started, NULL::int8 AS ended FROM parkade.scheduled");
    LIST_READY = list("SELECT id, seq, 1 AS state, attempt, due, started, NULL::int8 AS ended FROM parkade.ready");
    LIST_RUNNING = list("SELECT id, seq, 2 AS state, attempt, due, started, NULL::int8 AS ended FROM parkade.running");
    LIST_UNKNOWN = list("SELECT id, seq, state, attempt, due, started, ended FROM parkade.ended WHERE state = 3");
    LIST_DEAD = list("SELECT id, seq, state, attempt, due, started, ended FROM parkade.ended WHERE state = 6");
    LIST_COMPLETED = list(&over(4));
    LIST_CANCELLED = list(&over(5));
    LIST_ALL = list(&newest());
}

/// The body of the function that enqueues one job: the statement of servers, with its columns as parameters.
fn enqueue_body() -> String {
    let mut statement = format!("{CLOCK}, {}", include_str!("sql/enqueue.sql"))
        .replace("$1::int8", "NULL::int8")
        .replace("may_begin", BEATS)
        // Nobody gets a reply that says when a job is due, so servers are notified of those, too.
        .replace("EXISTS (SELECT FROM readied)", "EXISTS (SELECT FROM fresh)")
        .replace("$11::text", "'00000000-0000-0000-0000-000000000000'");
    let wait = "$6 - (SELECT now FROM clock)";
    for (column, value) in (2..).zip(["$2", "$3", "$4", "$5", "NULL", wait, "$7", "$8", "$9"]) {
        statement = statement.replace(&format!("${column}::"), &format!("ARRAY[{value}]::"));
    }
    include_str!("sql/enqueue_body.sql").replace("statement", &statement)
}

/// For a state that few jobs have, all are searched.
pub fn list_of(state: Option<JobState>) -> &'static Arc<str> {
    match state {
        None => &LIST_ALL,
        Some(JobState::Scheduled) => &LIST_SCHEDULED,
        Some(JobState::Ready) => &LIST_READY,
        Some(JobState::Running) => &LIST_RUNNING,
        Some(JobState::Unknown) => &LIST_UNKNOWN,
        Some(JobState::Completed) => &LIST_COMPLETED,
        Some(JobState::Cancelled) => &LIST_CANCELLED,
        Some(JobState::Dead) => &LIST_DEAD,
    }
}

fn list(of: &str) -> String {
    format!(
        "SELECT c.id, b.name, b.queue, b.key, b.priority, b.enqueued, b.request_id, b.traceparent,
       c.state, c.attempt, c.due, c.started, c.ended, x.error
  FROM ({of}) c JOIN parkade.bodies b ON b.id = c.id LEFT JOIN parkade.errors x ON x.id = c.id
 WHERE ($1::text IS NULL OR b.name = $1::text) AND ($2::text IS NULL OR b.queue = $2::text)
 ORDER BY c.seq DESC LIMIT $3::int8"
    )
}

/// Those that ended last.
fn over(state: i64) -> String {
    format!(
        "SELECT id, seq, state, attempt, due, started, ended FROM parkade.ended
          WHERE state IN (4, 5) AND state = {state} ORDER BY ended DESC, seq DESC LIMIT {LISTED_ENDED_COUNT_MAX}"
    )
}

fn newest() -> String {
    format!(
        "SELECT b.id, b.seq,
       CASE WHEN s.id IS NOT NULL THEN 0 WHEN r.id IS NOT NULL THEN 1 WHEN n.id IS NOT NULL THEN 2 ELSE e.state END AS state,
       coalesce(s.attempt, r.attempt, n.attempt, e.attempt, 0) AS attempt, coalesce(s.due, r.due, n.due, e.due) AS due,
       coalesce(s.started, r.started, n.started, e.started) AS started, e.ended
  FROM (SELECT id, seq FROM parkade.bodies ORDER BY seq DESC LIMIT {SCANNED_COUNT_MAX}) b
  LEFT JOIN parkade.scheduled s ON s.id = b.id
  LEFT JOIN parkade.ready r ON r.id = b.id
  LEFT JOIN parkade.running n ON n.id = b.id
  LEFT JOIN parkade.ended e ON e.id = b.id
"
    )
}

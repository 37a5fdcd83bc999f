//! How long the longest turns of the driver take: `turns URL SQL COUNT SLOTS`.
//!
//! Prints the longest turns since the first connection, in milliseconds: by the clock, and in CPU time (Linux), which a
//! busy machine affects less.

use std::time::{Duration, Instant};

use mio::{Events, Poll};
use parkade_postgres::{Database, Event, Options, Settings};
use parkade_sql::{DatabaseWork, Int8, Query, QueryEnd, QueryId, RowFormat, Shape};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, sql, count, slots] = &arguments[..] else { return Err("turns URL SQL COUNT SLOTS".into()) };
    let (count, slots): (u64, usize) = (count.parse()?, slots.parse()?);
    let mut poll = Poll::new()?;
    let options = Options {
        slots,
        queue_count_max: 10_000,
        row_bytes_max: 64 << 20,
        window_bytes: 1 << 20,
        application_name: "turns".into(),
        listen: vec![],
        connect_timeout: Duration::from_secs(5),
        check_interval: Duration::from_millis(500),
    };
    let settings = Settings::parse(url, &|name| std::env::var(name).ok())?;
    let mut database = Database::new(settings, options, poll.registry().try_clone()?, 0)?;
    database.start(Instant::now());
    let form = RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: None };
    for query in 0..count {
        let statement = Query { text: sql.as_str().into(), commented: None, parameters: vec![], form };
        database.submit(Instant::now(), QueryId(query), DatabaseWork::Alone(statement));
    }
    let (mut polled, mut events, mut ended, mut turns) = (Events::with_capacity(256), vec![], 0, vec![]);
    let mut worked = vec![];
    while ended < count {
        let (begun, worked_before) = (Instant::now(), cpu_time());
        for event in &polled {
            database.ready(event);
        }
        database.turn(begun, &mut events);
        turns.push(begun.elapsed());
        worked.push(cpu_time().saturating_sub(worked_before));
        for event in events.drain(..) {
            match event {
                Event::Query(parkade_sql::QueryEvent::Ended { end: QueryEnd::Failed(failure), .. }) => {
                    return Err(failure.message.into_string().into());
                }
                Event::Query(parkade_sql::QueryEvent::Ended { .. }) => ended += 1,
                Event::Query(parkade_sql::QueryEvent::Piece { query, bytes }) => database.taken(query, bytes.len()),
                _ => {}
            }
        }
        let wait = if database.has_more() { Duration::ZERO } else { Duration::from_millis(50) };
        poll.poll(&mut polled, Some(wait))?;
    }
    println!("{} turns, the longest: {} ms; of CPU: {} ms", turns.len(), longest(turns), longest(worked));
    Ok(())
}

fn longest(mut times: Vec<Duration>) -> String {
    times.sort();
    let texts: Vec<_> = times.iter().rev().take(6).map(|time| format!("{:.1}", time.as_secs_f64() * 1e3)).collect();
    texts.join(", ")
}

/// The CPU time of this thread so far (proc(5), `schedstat`).
fn cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

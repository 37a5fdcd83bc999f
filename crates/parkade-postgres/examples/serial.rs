//! Runs one statement after the other through the driver alone, to measure the cost of the driver.
//!
//! `serial URL SQL COUNT [INFLIGHT]` prints one line of JSON: the seconds, the count, and, if statements are cancelled
//! (`CANCEL=1`), the seconds from a cancel to its end.

use std::time::{Duration, Instant};

use mio::{Events, Poll};
use parkade_postgres::{Database, Event, Options, Settings};
use parkade_sql::{DatabaseWork, Int8, Query, QueryEnd, QueryId, RowFormat, Shape};

struct Driver {
    poll: Poll,
    polled: Events,
    database: Database,
    events: Vec<Event>,
}

impl Driver {
    /// Waits for events for at most `most`, and handles them.
    fn wait(&mut self, most: Duration) -> std::io::Result<()> {
        let now = Instant::now();
        let timeout = match self.database.next_due() {
            _ if self.database.has_more() => Duration::ZERO,
            due => due.map_or(most, |due| due.saturating_duration_since(now).min(most)),
        };
        self.poll.poll(&mut self.polled, Some(timeout))?;
        for event in &self.polled {
            self.database.ready(event);
        }
        self.database.turn(Instant::now(), &mut self.events);
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, sql, count, rest @ ..] = &arguments[..] else {
        return Err("serial URL SQL COUNT [INFLIGHT]".into());
    };
    let (count, inflight): (u64, u64) = (count.parse()?, rest.first().map_or(Ok(1), |text| text.parse())?);
    let settings = Settings::parse(url, &|name| std::env::var(name).ok())?;
    let poll = Poll::new()?;
    let options = Options {
        slots: usize::try_from(inflight)?,
        queue_count_max: 10_000,
        row_bytes_max: 64 << 20,
        window_bytes: 1 << 20,
        application_name: "serial".into(),
        listen: vec![],
        connect_timeout: Duration::from_secs(5),
        check_interval: Duration::from_millis(500),
    };
    let database = Database::new(settings, options, poll.registry().try_clone()?, 0)?;
    let mut driver = Driver { poll, polled: Events::with_capacity(256), database, events: vec![] };
    driver.database.start(Instant::now());
    // The connections, and the statement on each of them.
    let cancels = std::env::var("CANCEL").is_ok();
    run(&mut driver, sql, inflight * 2, inflight, 0, cancels)?;
    let begun = Instant::now();
    let waits = run(&mut driver, sql, count, inflight, 1 << 32, cancels)?;
    let seconds = begun.elapsed().as_secs_f64();
    let mut sorted = waits;
    sorted.sort_by(f64::total_cmp);
    let percentile = |part: usize| sorted.get(sorted.len() * part / 100).copied().unwrap_or(0.0);
    println!(
        "{{\"seconds\":{seconds},\"count\":{count},\"cancel_p50\":{},\"cancel_p99\":{}}}",
        percentile(50),
        percentile(99)
    );
    if cancels {
        eprintln!("{:?}", driver.database.status(Instant::now()).counts);
    }
    Ok(())
}

/// Runs the statement `count` times, `inflight` at a time. With `cancels` each one is cancelled after 5 ms. Returns how
/// long each took to end.
fn run(
    driver: &mut Driver,
    sql: &str,
    count: u64,
    inflight: u64,
    first: u64,
    cancels: bool,
) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let text: std::sync::Arc<str> = sql.into();
    let form = RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: None };
    let (mut submitted, mut ended) = (0, 0);
    let mut waits = Vec::new();
    let mut cancelled = Instant::now();
    while ended < count {
        let is_new = submitted - ended < inflight && submitted < count;
        while submitted < count && submitted - ended < inflight {
            let query = Query { text: text.clone(), commented: None, parameters: vec![], form };
            driver.database.submit(Instant::now(), QueryId(first + submitted), DatabaseWork::Alone(query));
            submitted += 1;
        }
        if cancels && is_new {
            let begun = Instant::now();
            while begun.elapsed() < Duration::from_millis(5) {
                driver.wait(Duration::from_millis(1))?;
            }
            cancelled = Instant::now();
            for query in ended..submitted {
                driver.database.cancel(cancelled, QueryId(first + query));
            }
        }
        driver.wait(Duration::from_secs(1))?;
        for event in driver.events.drain(..) {
            match event {
                Event::Query(parkade_sql::QueryEvent::Ended { end: QueryEnd::Failed(failure), .. }) => {
                    return Err(failure.message.into_string().into());
                }
                Event::Query(parkade_sql::QueryEvent::Ended { .. }) => {
                    ended += 1;
                    waits.push(cancelled.elapsed().as_secs_f64());
                }
                Event::Query(parkade_sql::QueryEvent::Piece { query, bytes }) => {
                    driver.database.taken(query, bytes.len());
                }
                Event::Query(parkade_sql::QueryEvent::Started { .. })
                | Event::Notification { .. }
                | Event::ListeningLost { .. }
                | Event::ListeningAgain => {}
            }
        }
    }
    Ok(waits)
}

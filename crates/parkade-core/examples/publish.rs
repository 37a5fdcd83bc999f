//! How long the decisions take that concern everybody at once: `cargo run --release -p parkade-core --example publish -- 19500`.

use std::time::{Duration, Instant};

use parkade_core::{
    AppId, ChannelName, Config, Core, DeclaredJobs, Destination, Effect, Event, Manner, MessageId, Moment, RequestId,
    RouteId, TableId, Then, Wait, WorkerId,
};

fn main() {
    let waiters = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(19_500);
    for (what, event) in [
        ("publish", Event::Published { channel: channel(), message: MessageId(1), bytes: 100, by: None }),
        ("drain", Event::Drain { grace: Duration::ZERO }),
        ("reload, its first worker ready", Event::Reload),
    ] {
        let mut core = parked(waiters);
        let mut effects = Vec::new();
        let began = Instant::now();
        core.handle(Moment::default(), event, &mut effects);
        println!("{what:>32}: {waiters} waiters, {:?}, {} effects", began.elapsed(), effects.len());
    }
}

fn channel() -> ChannelName {
    ChannelName::parse("bids").expect("it is a name")
}

/// So many wait for the next message of one channel, each with an alarm.
fn parked(waiters: u32) -> Core {
    let mut core = Core::new(Config { parked_count_max: usize::MAX, ..Config::default() });
    let mut effects: Vec<Effect> = Vec::new();
    core.begin(Moment::default(), &mut effects);
    let wait = Wait::Next { channel: channel(), timeout: Some(Duration::from_secs(60)), since: None };
    let table = TableId(1);
    let route = RouteId { table, index: 0 };
    let ready = Event::WorkerReady {
        worker: WorkerId(1),
        table,
        credit: 64,
        manner: Manner::OneByOne,
        jobs: DeclaredJobs::default(),
    };
    core.handle(Moment::default(), ready, &mut effects);
    for slot in 0..waiters {
        let destination = Destination::Wait { route, wait: wait.clone(), then: Then::Answer, deadline: None };
        let request = RequestId { slot, generation: 1 };
        core.handle(
            Moment::from_nanos(u64::from(slot)),
            Event::Arrived { request, app: AppId(0), destination },
            &mut effects,
        );
        effects.clear();
    }
    core
}

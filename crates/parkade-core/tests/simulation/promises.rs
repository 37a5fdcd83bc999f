//! What must hold after every step.

use std::collections::BTreeMap;
use std::time::Duration;

use parkade_core::{
    AppId, ChannelStatus, Destination, Event, MessageId, Refusal, RequestId, Role, State, Status, Then, Wait, WorkerId,
    WorkerState, WorkerStatus,
};

use crate::cancels::{nobody_waits_in_vain, nothing_is_noted_too_late};
use crate::commits::jobs_share_the_fate_of_their_transaction;
use crate::held_sockets::ends_of_sockets_wait_only_for_their_turns;
use crate::model::{Place, Waiting};
use crate::pressure::{nobody_is_paused_for_ever, pipes_are_read_or_not};
use crate::process::Phase;
use crate::recurring::nothing_recurs_too_late;
use crate::sockets::none_is_open_too_long;
use crate::world::World;
use crate::{hangs, job_promises, query_promises};

/// What a step promises, as it was before it.
pub struct Before {
    /// Who must get which message.
    waiting: Vec<(RequestId, MessageId, Then)>,
    lost: Vec<RequestId>,
    untouched: Vec<RequestId>,
    dying: Option<WorkerId>,
    exited: bool,
    published: Option<MessageId>,
    /// The deadline of who arrives, and how long it would be queued at the soonest.
    arriving: Option<Arriving>,
    too_slow: u64,
}

pub fn before(world: &World, event: &Event) -> Before {
    let (dying, resolved) = match event {
        Event::WorkerExited { worker } => (Some(*worker), world.model.processes[worker].phase == Phase::Cut),
        Event::WorkerViolated { worker } => (Some(*worker), false),
        _ => (None, false),
    };
    let (mut lost, mut untouched) = (Vec::new(), Vec::new());
    if let Some(process) = dying.filter(|_| !resolved).map(|worker| &world.model.processes[&worker]) {
        for stream in process.streams.iter().filter(|stream| !stream.ghost) {
            if stream.told { lost.push(stream.request) } else { untouched.push(stream.request) }
        }
        lost.extend(&process.awaiting);
    }
    let published = world.model.publishing.as_ref().map(|(_, message)| *message);
    let exited = matches!(event, Event::WorkerExited { .. });
    let too_slow = world.core.counts().refused.of(Refusal::QueueTooSlow);
    Before {
        waiting: waiting(world),
        lost,
        untouched,
        dying,
        exited,
        published,
        arriving: arriving(world, event),
        too_slow,
    }
}

/// Whether it runs the code of its application that serves.
pub fn serves(status: &Status, worker: &WorkerStatus) -> bool {
    worker.generation == status.apps[usize::from(worker.app.0)].generation
}

/// Requests of the application: how many the workers hold, and how many have been routed and wait for one.
fn of_app(world: &World, app: AppId) -> (usize, usize) {
    let requests = world.model.requests.iter();
    let requests = requests.filter(|(_, request)| request.app == app && request.run.is_none());
    let running = requests.clone().filter(|(_, request)| matches!(request.place, Place::Worker(_))).count();
    let is_routed = |id: &RequestId| world.core.state(*id) == Some(State::Routed);
    (running, requests.filter(|(id, _)| is_routed(id)).count())
}

/// Who comes, for a plain function or for a coroutine.
pub struct Arriving {
    app: AppId,
    deadline: Option<Duration>,
    wait: Option<Duration>,
    concurrent: bool,
}

fn arriving(world: &World, event: &Event) -> Option<Arriving> {
    let (app, deadline, concurrent) = match event {
        Event::Arrived { app, destination: Destination::Handler { deadline, concurrent, .. }, .. } => {
            (*app, *deadline, *concurrent)
        }
        Event::Arrived { app, destination: Destination::Fallback { concurrent, .. }, .. } => {
            (*app, world.core.config().deadline, *concurrent)
        }
        Event::JobGuarded { request, concurrent, .. } => {
            let request = world.model.requests.get(request);
            (request.map(|request| request.app)?, request.and_then(|request| request.deadline), *concurrent)
        }
        _ => return None,
    };
    Some(Arriving { app, deadline, wait: world.core.queue_wait_of(world.now, app, concurrent), concurrent })
}

/// Nobody is refused for time who could start before its deadline, as far as can be said, and nothing but an arrival is; no coroutine while a
/// loop would take it.
fn only_who_would_start_too_late_is_refused_for_it(world: &World, before: &Before, status: &Status) {
    if world.core.counts().refused.of(Refusal::QueueTooSlow) == before.too_slow {
        return;
    }
    let Arriving { app, deadline, wait, concurrent } =
        before.arriving.as_ref().expect("somebody who was queued is refused for time");
    assert!(wait > deadline && deadline.is_some(), "refused for time: {wait:?} in the queue, {deadline:?} to go");
    let (running, _) = of_app(world, *app);
    if !concurrent || running >= status.limits.running_count_max {
        return;
    }
    let free = status.workers.iter().find(|worker| {
        let process = &world.model.processes[&worker.worker];
        matches!(worker.state, WorkerState::Ready | WorkerState::Busy)
            && worker.role == Role::Requests
            && serves(status, worker)
            && worker.app == *app
            && process.concurrent
            && process.credit > 0
            && process.ping.is_none()
    });
    assert!(free.is_none(), "refused for time, and a loop would take it: {free:?}");
}

fn waiting(world: &World) -> Vec<(RequestId, MessageId, Then)> {
    let Some((channel, message)) = &world.model.publishing else { return Vec::new() };
    let on_it = world.model.requests.iter().filter_map(|(id, request)| {
        let waiting = request.waiting().filter(|waiting| waiting.channel() == Some(channel))?;
        // One of a WebSocket gets it itself.
        let is_socket = matches!(waiting.wait, Wait::Socket { .. });
        Some((*id, *message, if is_socket { Then::Answer } else { waiting.then }))
    });
    on_it.collect()
}

pub fn check(world: &mut World, before: &Before) {
    bury(world, before);
    if world.model.exited.is_some() {
        return;
    }
    let status = world.core.status(world.now);
    everybody_is_in_one_place(world, &status);
    world.model.check_branches();
    world.model.files_are_sent_to_who_waits();
    world.model.responses_have_clients();
    workers_are_as_told(world, &status);
    nothing_queues_beside_an_idle_worker(world, &status);
    a_publish_reached_all(world, before);
    nobody_waits_on_a_channel_unknown(world, &status);
    nobody_waits_for_what_is_held(world, &status);
    only_who_would_start_too_late_is_refused_for_it(world, before, &status);
    ends_of_sockets_wait_only_for_their_turns(world, &status);
    bounds_hold(world, &status);
    query_promises::check(world, &status);
    job_promises::check(world, &status);
    jobs_share_the_fate_of_their_transaction(world, &status);
    pipes_are_read_or_not(world);
    nobody_waits_in_vain(world);
    if world.ticked {
        nothing_is_overdue(world);
        nothing_is_noted_too_late(world);
        nothing_recurs_too_late(world);
        nobody_is_paused_for_ever(world);
        none_is_open_too_long(world);
    }
    let is_over = world.model.drain_until.is_some_and(|until| until <= world.now);
    if world.model.drains && world.model.requests.is_empty() && (world.model.arriving == 0 || is_over) {
        let left =
            world.model.processes.values().find(|process| process.phase == Phase::Ready && process.streams.is_empty());
        assert!(left.is_none(), "nothing is left, and a worker is not dismissed: {left:?}");
    }
}

/// Promise 6: what a dead worker had begun is lost, what it had not touched is queued again.
fn bury(world: &mut World, before: &Before) {
    let Some(dying) = before.dying else { return };
    for request in &before.lost {
        assert!(!world.model.requests.contains_key(request), "lost with its worker, and still there");
    }
    for request in &before.untouched {
        let Some(returned) = world.model.requests.get_mut(request) else {
            assert!(!world.model.told_died.contains(request), "502 for a request that was not touched");
            continue;
        };
        let elsewhere = match &returned.place {
            Place::Worker(worker) => *worker != dying,
            Place::Queue | Place::Waiting(_) | Place::Ending => true,
        };
        if !elsewhere {
            returned.goes_back(world.now);
        }
    }
    let process = world.model.process(dying);
    process.streams.clear();
    process.awaiting.clear();
    if before.exited {
        world.model.processes.remove(&dying);
    }
}

/// Promise 2.
fn everybody_is_in_one_place(world: &World, status: &Status) {
    for (id, request) in &world.model.requests {
        let state = world.core.state(*id).expect("a request that has not ended has a state");
        let place = match &request.place {
            Place::Queue => matches!(state, State::Accepted | State::Routed),
            Place::Worker(_) => state == State::Running,
            Place::Waiting(_) => state == State::Parked,
            Place::Ending => matches!(state, State::Parked | State::Routed),
        };
        assert!(place, "{id:?} is {state:?} for the core and {:?} for the world", request.place);
    }
    assert_eq!(status.scripts_count, world.model.scripts().count());
    let lives = status.lives;
    let whole = world.model.requests.values().filter(|request| request.owner.is_none()).count();
    assert_eq!(lives.accepted + lives.routed + lives.running + lives.parked, whole);
    let held =
        world.model.processes.values().flat_map(|process| &process.streams).filter(|stream| !stream.ghost).count();
    assert_eq!(lives.running, held, "running without a worker");
}

fn workers_are_as_told(world: &World, status: &Status) {
    assert_eq!(status.workers.len(), world.model.processes.len());
    for worker in &status.workers {
        let process = &world.model.processes[&worker.worker];
        assert_eq!(worker.held, process.streams.len(), "{process:?}");
        assert_eq!(worker.awaiting, process.awaiting.len());
        if matches!(process.phase, Phase::Ready) {
            assert_eq!(worker.credit, process.credit, "the credit of {process:?}");
        }
    }
}

/// Promise 4. Jobs are no reason: none is where requests run.
fn nothing_queues_beside_an_idle_worker(world: &World, status: &Status) {
    let waits = |app| {
        let (running, queued) = of_app(world, app);
        queued > 0 && running < status.limits.running_count_max
    };
    let idle = status.workers.iter().find(|worker| {
        let process = &world.model.processes[&worker.worker];
        let ready = matches!(worker.state, WorkerState::Ready | WorkerState::Busy)
            || worker.state == WorkerState::Draining && world.model.drains && !process.replaced;
        ready
            && worker.role == Role::Requests
            && serves(status, worker)
            && waits(worker.app)
            && (process.streams.is_empty() || !process.concurrent && process.busy() == 0)
            && process.credit > 0
            && process.ping.is_none()
    });
    assert!(idle.is_none(), "queued beside an idle worker: {idle:?}");
}

/// Promise 5.
fn a_publish_reached_all(world: &World, before: &Before) {
    for (id, message, then) in &before.waiting {
        let reached = world.model.delivered.contains(&(*id, *message));
        let woken = world.model.requests.get(id).and_then(|request| request.woken.as_ref());
        match then {
            Then::Answer | Then::Await => assert!(reached, "{id:?} waited, and was not told"),
            // The code that serves has no jobs any more.
            Then::Call { .. } if world.model.jobs.handed_back.contains(id) => {}
            Then::Call { .. } if world.model.members.contains(id) => {
                assert!(world.model.ended.contains(id), "{id:?} waited, and its group was not told");
            }
            Then::Call { .. } => assert_eq!(woken.and_then(|woken| woken.message), Some(*message), "{id:?} waited"),
        }
    }
    if let Some(message) = before.published {
        let told = world.model.delivered.iter().filter(|(_, told)| *told == message).count();
        let calls = before.waiting.iter().filter(|(_, _, then)| matches!(then, Then::Call { .. })).count();
        assert_eq!(told + calls, before.waiting.len(), "a message for somebody who did not wait");
    }
}

/// Promise 3: who is on a channel is parked for it, and the other way round.
fn nobody_waits_on_a_channel_unknown(world: &World, status: &Status) {
    let mut told: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for waiting in world.model.requests.values().filter_map(|request| request.waiting()) {
        match &waiting.wait {
            Wait::Timer { .. }
            | Wait::History { .. }
            | Wait::Published { .. }
            | Wait::Query(_)
            | Wait::Stored
            | Wait::Branches
            | Wait::Group(_)
            | Wait::Job { .. }
            | Wait::Visit { .. }
            | Wait::File
            | Wait::Access { .. } => {}
            Wait::Next { channel, .. } => told.entry(channel.as_str()).or_default().0 += 1,
            Wait::Stream { channel, .. } | Wait::Socket { channel, .. } => {
                told.entry(channel.as_str()).or_default().1 += 1;
            }
        }
    }
    let watched = |channel: &&ChannelStatus| channel.waiters + channel.streams > 0;
    let watched: BTreeMap<&str, (usize, usize)> = status
        .channels
        .iter()
        .filter(watched)
        .map(|channel| (channel.name.as_str(), (channel.waiters, channel.streams)))
        .collect();
    assert_eq!(told, watched);
}

/// Promise 5: nobody waits for what is held already.
fn nobody_waits_for_what_is_held(world: &World, status: &Status) {
    for waiting in world.model.requests.values().filter_map(|request| request.waiting()) {
        let Wait::Next { channel, since: Some(since), .. } = &waiting.wait else { continue };
        let channel = status.channels.iter().find(|known| known.name == *channel).expect("its channel is there");
        assert!(*since == channel.cursor || channel.history_count == 0, "waits behind {since} for {channel:?}");
    }
}

/// Promise 8.
fn bounds_hold(world: &World, status: &Status) {
    let limits = status.limits;
    let coming_back = world.model.processes.values().map(|process| process.streams.len()).sum::<usize>();
    let calls = world.model.requests.values().filter(|request| request.woken.is_some()).count();
    let queued = status.lives.accepted + status.lives.routed;
    let most = limits.queued_count_max * status.apps.len();
    assert!(queued <= most + calls + coming_back + 64, "the queue has no end");
    let is_free = |waiting: &&Waiting| {
        waiting.wait == Wait::Branches || waiting.wait == Wait::Stored && waiting.then == Then::Answer
    };
    let free = world.model.requests.values().filter_map(|request| request.waiting()).filter(is_free).count();
    assert!(status.lives.parked <= limits.parked_count_max + free, "too many are parked");
    assert!(status.channels_count <= limits.channels_count_max);
    assert!(status.history_bytes <= limits.history_bytes_max);
    let kept: usize = status.channels.iter().map(|channel| channel.history_count).sum();
    let of_groups = world.model.messages_of_groups();
    assert!(status.messages_held <= kept + status.lives.routed + status.lives.running + of_groups);
    assert_eq!(status.messages_held, world.model.messages.len(), "messages that nobody needs are kept");
    let ghosts =
        world.model.processes.values().flat_map(|process| &process.streams).filter(|stream| stream.ghost).count();
    // One for the end of queries, two for the next jobs and those that wait.
    let kept = world.model.databases.kept.len() + usize::from(world.model.drains) + 2;
    assert!(status.alarms <= world.model.requests.len() + ghosts + kept, "alarms for nobody");
}

fn nothing_is_overdue(world: &World) {
    let now = world.now;
    for (id, request) in &world.model.requests {
        match &request.place {
            Place::Queue | Place::Worker(_) => {
                assert!(request.deadline_at().is_none_or(|at| at > now), "{id:?} is past its deadline: {request:?}");
            }
            Place::Ending => {}
            Place::Waiting(waiting) => assert!(waiting.due().is_none_or(|due| due > now), "{id:?} waits for too long"),
        }
    }
    if now > world.lenient_until {
        hangs::check(world);
    }
}

pub fn check_the_end(world: &World) {
    let status = world.core.status(world.now);
    assert_eq!(status.lives, parkade_core::LivesStatus::default());
    assert_eq!((status.alarms, status.workers.len()), (0, 0));
    let counts = world.core.counts();
    assert_eq!(counts.accepted, counts.answered + counts.cancelled.total(), "every request ends once");
    assert_eq!(status.messages_held, world.model.messages.len());
    assert_eq!((status.results_held, status.transactions_count), (0, 0));
    job_promises::check_the_end(world, &status);
}

//! Tests with real processes (`fake/parkade.py`), whose behaviour the scenario names.

use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use parkade_model::{AppId, Reason, RequestId, WorkerId};
use parkade_wire::encode::RequestParts;
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags, Signal};
use tokio::sync::Notify;
use tokio::time::timeout;
use tracing::subscriber::DefaultGuard;

use super::{Launch, Processes};
use crate::body_rest::BodyRest;
use crate::language::Program;
use crate::poll::ready;
use crate::share::Share;
use crate::upstream::WorkerEvent;

const WORKER: WorkerId = WorkerId(1);
const PATIENCE: Duration = Duration::from_secs(30);

/// The workers, their events, and what was logged.
struct Stage {
    processes: Processes,
    told: Vec<WorkerEvent>,
    log: Log,
    /// Logging goes to `log` as long as this exists.
    #[expect(dead_code)]
    logging: DefaultGuard,
}

#[derive(Clone, Default)]
struct Log {
    text: Arc<Mutex<Vec<u8>>>,
    grown: Arc<Notify>,
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap()).into_owned()
    }

    /// The number after "other ", which a scenario prints for the process that it has started.
    fn other(&self) -> Option<Pid> {
        let text = self.text();
        let number = text.split_once("other ")?.1.split_whitespace().next()?;
        Pid::from_raw(number.parse().ok()?)
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.text.lock().unwrap().extend_from_slice(bytes);
        self.grown.notify_one();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn launch(scenario: &str) -> Launch {
    let fake = concat!(env!("CARGO_MANIFEST_DIR"), "/src/upstream/process/fake");
    Launch {
        program: Program {
            path: PathBuf::from("python3"),
            arguments: vec!["-m".into(), "parkade".into()],
            environment: Vec::new(),
            needs: "",
            advice: "",
        },
        target: scenario.to_owned(),
        interface: None,
        is_factory: false,
        threads: 1,
        root_path: String::new(),
        on_disconnect: "notify",
        dev: false,
        environment: Vec::new(),
        directory: Some(PathBuf::from(fake)),
        own_files: None,
        core_version: "0.0.0",
    }
}

impl Stage {
    fn new(scenario: &str) -> Self {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_max_level(tracing::Level::DEBUG)
            .with_writer(move || writer.clone());
        let logging = tracing::subscriber::set_default(subscriber.finish());
        let processes = Processes::new(vec![launch(scenario)]).unwrap();
        Self { processes, told: Vec::new(), log, logging }
    }

    /// One worker with that scenario.
    fn with(scenario: &str) -> Self {
        let mut stage = Self::new(scenario);
        stage.processes.start(WORKER, AppId(0));
        stage
    }

    async fn until(&mut self, what: &str, is: impl Fn(&Self) -> bool) {
        let told = timeout(PATIENCE, async {
            loop {
                self.processes.flush();
                self.processes.turn(&mut self.told, &mut Share::endless()).unwrap();
                self.processes.flush();
                if is(self) {
                    return;
                }
                tokio::select! {
                    ready = ready(&mut self.processes) => ready.unwrap(),
                    () = self.log.grown.notified() => {}
                }
            }
        });
        let happened = told.await.is_ok();
        assert!(happened, "{what} did not happen; told: {:?}; logged:\n{}", self.told, self.log.text());
    }

    async fn until_ready(&mut self) {
        self.until("ready", |stage| stage.is_ready(WORKER)).await;
    }

    fn is_ready(&self, id: WorkerId) -> bool {
        self.told.iter().any(|event| matches!(event, WorkerEvent::Ready { worker, .. } if *worker == id))
    }

    /// How the worker ended.
    async fn until_exit(&mut self) -> String {
        self.until("the exit", |stage| stage.exit().is_some()).await;
        self.exit().unwrap()
    }

    fn exit(&self) -> Option<String> {
        self.told.iter().find_map(|event| match event {
            WorkerEvent::Exited { how, .. } => Some(how.clone()),
            _ => None,
        })
    }

    fn violation(&self) -> Option<&str> {
        self.told.iter().find_map(|event| match event {
            WorkerEvent::Violated { why, .. } => Some(why.as_str()),
            _ => None,
        })
    }

    fn answers(&self) -> usize {
        self.told.iter().filter(|event| matches!(event, WorkerEvent::Response { .. })).count()
    }

    fn ask(&mut self, slot: u32, body: &Bytes) {
        self.processes.request(WORKER, request(slot), head(), (body, BodyRest::Nothing));
    }
}

fn request(slot: u32) -> RequestId {
    RequestId { slot, generation: 1 }
}

fn head<'a>() -> RequestParts<'a, [&'a str; 1], [(&'a str, &'a [u8]); 1]> {
    RequestParts {
        route: Some(0),
        parameters: ["Ana"],
        method: "GET",
        path: "/hola/Ana",
        query: "",
        headers: [("host", b"localhost")],
        client: "127.0.0.1",
        scheme: "http",
        version: "1.1",
        id: "",
        client_port: 0,
        server: ("", 0),
        deadline: None,
        body: None,
        more: false,
    }
}

/// Waits until a process has ended that is not our child.
fn ended(pid: Pid) {
    // ESRCH: it is already gone.
    let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
    let patience = rustix::event::Timespec::try_from(PATIENCE).unwrap();
    let ended = rustix::event::poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&patience)).unwrap();
    assert_eq!(ended, 1, "{pid:?} lives");
}

#[tokio::test]
async fn a_worker_is_ready_and_answers_and_leaves_when_dismissed() {
    let mut stage = Stage::with("serve");
    stage.until_ready().await;
    for slot in 0..1000 {
        stage.ask(slot, &Bytes::from_static(b"a body"));
    }
    stage.processes.ping(WORKER, 77);
    stage.until("the last answer", |stage| stage.answers() == 1000).await;
    stage.until("the pong", |stage| stage.told.contains(&WorkerEvent::Pong { worker: WORKER, token: 77 })).await;
    let slots = stage.told.iter().filter_map(|event| match event {
        WorkerEvent::Response { request, response, more: false, .. } if response.body == "hola" => Some(request.slot),
        _ => None,
    });
    assert!(slots.eq(0..1000));
    assert!(stage.processes.places.is_empty());
    stage.processes.dismiss(WORKER);
    assert_eq!(stage.until_exit().await, "exit status 0");
    assert!(stage.processes.pid(WORKER).is_some(), "for the log line about its exit");
    stage.processes.turn(&mut stage.told, &mut Share::endless()).unwrap();
    assert_eq!(stage.processes.pid(WORKER), None);
}

#[tokio::test]
async fn bodies_of_any_size_reach_the_worker() {
    let mut stage = Stage::with("serve");
    stage.until_ready().await;
    for (slot, size) in [0, 1, 65_536, 65_537, 131_072, 262_144, 262_145, 3_000_000, 16 << 20].into_iter().enumerate() {
        stage.ask(u32::try_from(slot).unwrap(), &Bytes::from(vec![b'x'; size]));
    }
    stage.until("the last answer", |stage| stage.answers() == 9).await;
    assert_eq!(stage.violation(), None);
}

#[tokio::test]
async fn the_process_is_measured_and_is_the_first_to_go_when_memory_runs_out() {
    let mut stage = Stage::with("serve");
    stage.until_ready().await;
    let pid = stage.processes.pid(WORKER).unwrap();
    assert!(stage.processes.resident_bytes()[0].1 > 1 << 20);
    assert_eq!(std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap().trim(), "400");
}

#[tokio::test]
async fn what_a_worker_prints_is_logged_before_its_exit_is_told() {
    let mut stage = Stage::with("prints");
    assert_eq!(stage.until_exit().await, "exit status 1");
    assert!(matches!(&stage.told[0], WorkerEvent::Failed { text, .. } if text == "no such"));
    let log = stage.log.text();
    for line in ["to the one", "to the other", "RuntimeError: as told"] {
        assert!(log.contains(line), "{line} is not in:\n{log}");
    }
}

#[tokio::test]
async fn what_a_worker_wrote_is_told_before_its_exit() {
    let mut stage = Stage::with("exits");
    assert_eq!(stage.until_exit().await, "exit status 3");
    let pong = WorkerEvent::Pong { worker: WORKER, token: 7 };
    assert!(matches!(&stage.told[..], [WorkerEvent::Ready { .. }, said, WorkerEvent::Exited { .. }] if *said == pong));
}

#[tokio::test]
async fn the_signal_that_ended_a_worker_has_its_name() {
    assert_eq!(Stage::with("segfaults").until_exit().await, "signal 11 (SIGSEGV)");
}

#[tokio::test]
async fn a_kill_takes_what_the_worker_has_started() {
    let mut stage = Stage::with("starts another");
    stage.until_ready().await;
    stage.until("the other", |stage| stage.log.other().is_some()).await;
    stage.processes.kill(WORKER);
    assert_eq!(stage.until_exit().await, "signal 9 (SIGKILL)");
    ended(stage.log.other().unwrap());
}

#[tokio::test]
async fn the_workers_do_not_survive_their_owner() {
    let mut stage = Stage::with("serve");
    stage.until_ready().await;
    let pid = Pid::from_raw(stage.processes.pid(WORKER).unwrap().try_into().unwrap()).unwrap();
    drop(stage);
    ended(pid);
}

#[tokio::test]
async fn a_worker_that_failed_and_stays_is_killed() {
    let mut stage = Stage::with("stays behind a failure");
    assert_eq!(stage.until_exit().await, "signal 9 (SIGKILL)");
}

#[tokio::test]
async fn a_worker_that_closed_its_link_and_stays_is_killed() {
    let mut stage = Stage::with("closes and stays");
    assert_eq!(stage.until_exit().await, "signal 9 (SIGKILL)");
}

#[tokio::test]
async fn a_worker_that_said_goodbye_and_stays_is_killed() {
    let mut stage = Stage::with("says goodbye and stays");
    assert_eq!(stage.until_exit().await, "signal 9 (SIGKILL)");
}

#[tokio::test]
async fn a_link_left_to_another_process_does_not_hold_up_the_exit() {
    let mut stage = Stage::with("leaves its link to another");
    assert_eq!(stage.until_exit().await, "exit status 0");
    assert!(stage.told.contains(&WorkerEvent::Pong { worker: WORKER, token: 1 }));
    rustix::process::kill_process(stage.log.other().unwrap(), Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_worker_that_does_not_read_breaks_the_protocol() {
    let mut stage = Stage::with("does not read");
    stage.until_ready().await;
    let body = Bytes::from(vec![b'x'; 65_536]);
    for slot in 0..1200 {
        stage.ask(slot, &body);
        stage.processes.flush();
    }
    assert_eq!(stage.until_exit().await, "signal 9 (SIGKILL)");
    assert_eq!(stage.violation(), Some("it does not read from its link"));
    assert!(stage.processes.places.is_empty());
}

#[tokio::test]
async fn rubbish_breaks_the_protocol_and_is_logged_in_hex() {
    let mut stage = Stage::with("rubbish");
    assert_eq!(stage.until_exit().await, "signal 9 (SIGKILL)");
    assert!(matches!(&stage.told[..], [WorkerEvent::Violated { .. }, WorkerEvent::Exited { .. }]), "{:?}", stage.told);
    assert!(stage.log.text().contains("474554202f20485454502f312e31"), "{}", stage.log.text());
}

#[tokio::test]
async fn half_a_frame_before_the_end_is_no_frame() {
    let mut stage = Stage::with("half a frame");
    assert_eq!(stage.until_exit().await, "exit status 1");
    assert_eq!(stage.told.len(), 1);
}

#[tokio::test]
async fn a_worker_of_another_version_is_told_apart() {
    let mut stage = Stage::with("later version");
    stage.until_exit().await;
    let why = stage.violation().unwrap();
    assert!(why.starts_with("it speaks versions 7 to 9 of the protocol, this core 1 to 1"), "{why}");
}

#[tokio::test]
async fn a_flood_is_read_in_bounded_parts_and_holds_up_nobody() {
    let mut stage = Stage::with("floods");
    stage.until_ready().await;
    let quiet = WorkerId(2);
    stage.processes.launches = vec![launch("serve")];
    stage.processes.start(quiet, AppId(0));
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let mut turn = Vec::new();
    loop {
        assert!(tokio::time::Instant::now() < deadline, "the quiet worker never had its turn");
        stage.processes.flush();
        stage.processes.turn(&mut turn, &mut Share::endless()).unwrap();
        // 14 bytes for each PONG.
        assert!(turn.len() <= super::limits::READ_BYTES_PER_TURN / 14 + 3, "{} events", turn.len());
        if turn.iter().any(|event| matches!(event, WorkerEvent::Ready { worker, .. } if *worker == quiet)) {
            break;
        }
        turn.clear();
        ready(&mut stage.processes).await.unwrap();
    }
}

#[tokio::test]
async fn one_that_is_held_up_is_not_heard_until_it_is_let_on_and_its_end_is() {
    let mut stage = Stage::with("floods");
    stage.until_ready().await;
    stage.processes.hold_up(WORKER);
    let heard = stage.told.len();
    for _ in 0..10 {
        stage.processes.turn(&mut stage.told, &mut Share::endless()).unwrap();
    }
    assert_eq!(stage.told.len(), heard);
    stage.processes.let_on(WORKER);
    stage.until("what it says", |stage| stage.told.len() > heard).await;
    stage.processes.hold_up(WORKER);
    stage.processes.kill(WORKER);
    assert_eq!(stage.until_exit().await, "signal 9 (SIGKILL)");
    stage.processes.turn(&mut stage.told, &mut Share::endless()).unwrap();
    assert!(stage.processes.held_up.is_empty());
}

#[tokio::test]
async fn the_stack_of_a_worker_that_is_stuck_is_logged() {
    let mut stage = Stage::with("stuck");
    stage.processes.dump_stack(WORKER);
    stage.until_ready().await;
    stage.processes.dump_stack(WORKER);
    stage.until("the stack", |stage| stage.log.text().contains("parkade.py")).await;
    stage.processes.kill(WORKER);
    assert_eq!(stage.until_exit().await, "signal 9 (SIGKILL)");
}

#[tokio::test]
async fn an_interpreter_that_there_is_not_is_told() {
    let mut stage = Stage::new("serve");
    stage.processes.launches[0].program.path = PathBuf::from("/no/such/python");
    stage.processes.start(WORKER, AppId(0));
    stage.ask(1, &Bytes::new());
    stage.until("the reason", |stage| !stage.told.is_empty()).await;
    assert!(
        matches!(&stage.told[..], [WorkerEvent::Unstarted { worker: WORKER, why }] if why.contains("No such file")),
        "{:?}",
        stage.told
    );
    stage.processes.turn(&mut stage.told, &mut Share::endless()).unwrap();
    assert!(
        stage.processes.places.is_empty() && stage.processes.workers.is_empty() && stage.processes.held_up.is_empty()
    );
}

#[tokio::test]
async fn nobody_waits_until_a_worker_is_started() {
    let mut stage = Stage::with("serve");
    assert_eq!(stage.processes.pid(WORKER), None, "it is not there yet");
    stage.until_ready().await;
    assert!(stage.processes.pid(WORKER).is_some());
}

#[tokio::test]
async fn a_worker_that_is_killed_before_it_is_started_does_not_live() {
    let mut stage = Stage::with("serve");
    stage.processes.kill(WORKER);
    assert_eq!(stage.until_exit().await, "signal 9 (SIGKILL)");
    assert!(!stage.is_ready(WORKER));
}

#[tokio::test]
async fn what_is_asked_of_a_worker_that_is_gone_is_dropped() {
    let mut stage = Stage::with("exits");
    stage.until_exit().await;
    stage.ask(1, &Bytes::new());
    stage.processes.cancel(WORKER, request(1), Reason::Deadline);
    stage.processes.grant(request(1), 1);
    stage.processes.drain(WORKER, Duration::from_secs(1));
    stage.processes.dismiss(WORKER);
    stage.processes.kill(WORKER);
    stage.processes.dump_stack(WORKER);
    stage.processes.flush();
    assert!(stage.processes.places.is_empty());
}

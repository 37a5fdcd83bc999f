//! An owner for tests: it submits work, and waits for events.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use parkade_sql::{
    DatabaseWork, FailureKind, Int8, LeaseId, Parameter, Query, QueryEnd, QueryEvent, QueryId, RowFormat, Shape,
    SlotState, Summary, TransactionMode,
};

use crate::{Database, Options};

/// Runs until it is cancelled.
pub const ENDLESS: &str = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n";

/// The longest wait for a state.
const PATIENCE: Duration = Duration::from_secs(20);

/// A private folder, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("parkade-sqlite-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    pub fn file(&self) -> PathBuf {
        self.0.join("test.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The events of a query.
#[derive(Debug, Default, Clone)]
pub struct Heard {
    pub text: Vec<u8>,
    pub pieces: usize,
    pub starts: usize,
    pub end: Option<QueryEnd>,
}

pub struct Owner {
    pub database: Database,
    pub folder: Folder,
    pub heard: HashMap<QueryId, Heard>,
    /// Whether pieces are taken as they arrive.
    pub is_taking: bool,
    next: u64,
    bell: Arc<(Mutex<bool>, Condvar)>,
}

/// The JSON, or the kind of the failure with its SQLSTATE.
pub type Answer = Result<String, (FailureKind, String)>;

pub fn options() -> Options {
    Options { readers: 2, busy_timeout: PATIENCE, ..Options::default() }
}

impl Owner {
    pub fn new(options: Options) -> Self {
        let folder = Folder::new();
        Self::of(folder.file(), folder, options)
    }

    pub fn of(file: PathBuf, folder: Folder, options: Options) -> Self {
        let bell: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        let rung = Arc::clone(&bell);
        let wake = move || {
            *rung.0.lock().unwrap() = true;
            rung.1.notify_one();
        };
        let database = Database::new(file, options, Arc::new(wake));
        Self { database, folder, heard: HashMap::new(), is_taking: true, next: 0, bell }
    }

    pub fn submit(&mut self, work: DatabaseWork) -> QueryId {
        self.next += 1;
        let query = QueryId(self.next);
        self.database.submit(Instant::now(), query, work);
        query
    }

    pub fn ask(&mut self, text: &str) -> QueryId {
        self.submit(DatabaseWork::Alone(query(text, &[])))
    }

    pub fn cancel(&mut self, query: QueryId) {
        self.database.cancel(Instant::now(), query);
    }

    pub fn begin(&mut self, is_read_only: bool) -> (LeaseId, QueryId) {
        let lease = LeaseId(self.next + 1);
        (lease, self.submit(DatabaseWork::Begin { lease, mode: TransactionMode { isolation: None, is_read_only } }))
    }

    pub fn within(&mut self, lease: LeaseId, text: &str) -> Answer {
        let query = self.submit(DatabaseWork::Within { lease, query: query(text, &[]) });
        self.answer(query)
    }

    pub fn commit(&mut self, lease: LeaseId) -> Answer {
        let query = self.submit(DatabaseWork::Commit { lease });
        self.answer(query)
    }

    /// Submits a query and waits for its end.
    pub fn run(&mut self, text: &str) -> Answer {
        self.run_with(text, &[])
    }

    pub fn run_with(&mut self, text: &str, parameters: &[Parameter]) -> Answer {
        let query = self.submit(DatabaseWork::Alone(query(text, parameters)));
        self.answer(query)
    }

    pub fn run_as(&mut self, text: &str, shape: Shape, int8: Int8) -> Answer {
        let form = RowFormat { shape, int8, bytes_max: None };
        let query =
            self.submit(DatabaseWork::Alone(Query { text: text.into(), commented: None, parameters: vec![], form }));
        self.answer(query)
    }

    pub fn answer(&mut self, query: QueryId) -> Answer {
        match self.end(query) {
            QueryEnd::Completed(_) => Ok(String::from_utf8(self.heard[&query].text.clone()).unwrap()),
            QueryEnd::Cancelled => panic!("{query:?} was cancelled"),
            QueryEnd::Failed(failure) => Err((failure.kind, failure.sqlstate.unwrap_or_default().into())),
        }
    }

    pub fn summary(&mut self, text: &str) -> Summary {
        let query = self.ask(text);
        match self.end(query) {
            QueryEnd::Completed(summary) => summary,
            other => panic!("{text}: {other:?}"),
        }
    }

    pub fn message(&mut self, query: QueryId) -> String {
        match self.end(query) {
            QueryEnd::Failed(failure) => failure.message.into(),
            other => panic!("{other:?}"),
        }
    }

    pub fn end(&mut self, query: QueryId) -> QueryEnd {
        self.until(|owner| owner.heard.get(&query).is_some_and(|heard| heard.end.is_some()));
        self.heard[&query].end.clone().unwrap()
    }

    pub fn until_started(&mut self, query: QueryId) {
        self.until(|owner| owner.heard.get(&query).is_some_and(|heard| heard.starts > 0));
    }

    /// States without an event are polled.
    pub fn until(&mut self, is_true: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        loop {
            self.turn();
            if is_true(self) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "{:?}\n{:?}", self.database.status(Instant::now()), self.heard);
            let (rung, bell) = &*self.bell;
            let rung = rung.lock().unwrap();
            let (mut rung, _) = bell.wait_timeout_while(rung, Duration::from_millis(5), |rung| !*rung).unwrap();
            *rung = false;
        }
    }

    pub fn turn(&mut self) {
        let mut events = Vec::new();
        self.database.turn(Instant::now(), &mut events);
        for event in events {
            self.hear(event);
        }
    }

    pub fn states(&self) -> Vec<SlotState> {
        self.database.status(Instant::now()).slots.iter().map(|slot| slot.state).collect()
    }

    fn hear(&mut self, event: QueryEvent) {
        match event {
            QueryEvent::Started { query } => self.heard.entry(query).or_default().starts += 1,
            QueryEvent::Piece { query, bytes } => {
                let heard = self.heard.entry(query).or_default();
                assert_eq!(heard.end, None, "a piece behind the end");
                heard.text.extend_from_slice(&bytes);
                heard.pieces += 1;
                if self.is_taking {
                    self.database.taken(query, bytes.len());
                }
            }
            QueryEvent::Ended { query, end } => {
                let heard = self.heard.entry(query).or_default();
                assert_eq!(heard.end, None, "a second end");
                heard.end = Some(end);
            }
        }
    }
}

pub fn query(text: &str, parameters: &[Parameter]) -> Query {
    let form = RowFormat { shape: Shape::Rows, int8: Int8::Number, bytes_max: None };
    Query { text: text.into(), commented: None, parameters: parameters.to_vec(), form }
}

pub fn refused(sqlstate: &str) -> Answer {
    Err((FailureKind::Refused, sqlstate.into()))
}

pub fn failed(kind: FailureKind) -> Answer {
    Err((kind, String::new()))
}

//! A server process of the model: it speaks the protocol, runs one statement at a time, and can receive signals.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::{Buf, BufMut, BytesMut};

/// Bytes that a process can have unsent before it blocks: then it does not even check for a cancel.
const SOCKET_BYTES: usize = 20_000;

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a model of somebody else's machine")]
pub struct Process {
    pub pid: i32,
    pub start: String,
    pub input: BytesMut,
    pub output: BytesMut,
    pub running: Option<Running>,
    pub transaction: u8,
    /// After an error: everything up to the next `Sync` is skipped.
    skips: bool,
    pub is_greeted: bool,
    pub prepared: HashMap<String, String>,
    /// Its prepared statements no longer match their tables.
    pub is_altered: bool,
    portal: (String, Vec<String>),
    /// It ends when its output has been sent.
    pub is_leaving: bool,
    /// Behind a pooler this is a client's end, and the process is a different one.
    pub backend: Option<i32>,
}

#[derive(Debug)]
pub struct Running {
    pub text: String,
    pub until: Instant,
    rows_left: usize,
    is_simple: bool,
}

/// What a process wants from its server.
#[derive(Debug)]
pub enum Call {
    Signal { aim: &'static str, pids: Vec<i32>, starts: Vec<String> },
    CancelRequest(i32),
}

impl Process {
    pub fn new(pid: i32, start: String) -> Self {
        Self {
            pid,
            start,
            input: BytesMut::new(),
            output: BytesMut::new(),
            running: None,
            transaction: b'I',
            skips: false,
            is_greeted: false,
            prepared: HashMap::new(),
            is_altered: false,
            portal: Default::default(),
            is_leaving: false,
            backend: None,
        }
    }

    pub fn say(&mut self, tag: u8, body: &[u8]) {
        self.output.put_u8(tag);
        self.output.put_u32(u32::try_from(body.len() + 4).unwrap());
        self.output.extend_from_slice(body);
    }

    fn ready(&mut self) {
        self.say(b'Z', &[self.transaction]);
    }

    pub fn error(&mut self, severity: &str, code: &str, text: &str) {
        let body = format!("V{severity}\0C{code}\0M{text}\0\0");
        self.say(b'E', body.as_bytes());
    }

    fn row(&mut self, values: &[&str]) {
        let mut body = BytesMut::new();
        body.put_u16(u16::try_from(values.len()).unwrap());
        for value in values {
            body.put_u32(u32::try_from(value.len()).unwrap());
            body.extend_from_slice(value.as_bytes());
        }
        self.say(b'D', &body);
    }

    /// Continues to read, if it is idle.
    pub fn read(&mut self, now: Instant, postmaster: &str) -> Option<Call> {
        while self.running.is_none() && !self.is_leaving {
            let (tag, body) = self.message()?;
            if !self.is_greeted {
                let mut body = body;
                if body.get_u32() == 80_877_102 {
                    self.is_leaving = true;
                    return Some(Call::CancelRequest(body.get_i32()));
                }
                self.greet();
                continue;
            }
            if let Some(call) = self.obey(now, tag, body, postmaster) {
                return Some(call);
            }
        }
        None
    }

    fn message(&mut self) -> Option<(u8, BytesMut)> {
        let head = usize::from(self.is_greeted);
        let length = self.input.get(head..head + 4)?;
        let length = u32::from_be_bytes(length.try_into().unwrap()) as usize;
        if self.input.len() < head + length {
            return None;
        }
        let tag = if self.is_greeted { self.input.get_u8() } else { 0 };
        self.input.advance(4);
        Some((tag, self.input.split_to(length - 4)))
    }

    fn greet(&mut self) {
        self.is_greeted = true;
        self.say(b'R', &0_i32.to_be_bytes());
        self.say(b'S', b"server_version\x0015.1\0");
        let pid = self.pid;
        self.say(b'K', &[pid.to_be_bytes(), 77_i32.to_be_bytes()].concat());
        self.ready();
    }

    fn obey(&mut self, now: Instant, tag: u8, mut body: BytesMut, postmaster: &str) -> Option<Call> {
        if self.skips && tag != b'S' {
            return None;
        }
        match tag {
            b'Q' => return self.simple(now, &text(&mut body), postmaster),
            b'P' => {
                let name = text(&mut body);
                // The tests prepare one text at a time: the new one is the right one.
                self.is_altered = false;
                self.prepared.insert(name, text(&mut body));
                self.say(b'1', &[]);
            }
            b'D' => {
                self.say(b't', &[0, 0]);
                self.say(b'T', b"\0\x01n\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0");
            }
            b'B' => self.bind(&mut body),
            b'E' => return self.execute(now, false),
            b'S' => {
                self.skips = false;
                self.ready();
            }
            b'C' => self.say(b'3', &[]),
            b'X' => self.is_leaving = true,
            other => panic!("the model does not know {}", char::from(other)),
        }
        None
    }

    fn simple(&mut self, now: Instant, query: &str, postmaster: &str) -> Option<Call> {
        if query.starts_with("select pg_backend_pid()") {
            let (pid, start) = (self.backend.unwrap_or(self.pid).to_string(), self.start.clone());
            self.row(&[&pid, &start, postmaster, "f", "off"]);
            self.say(b'C', b"SELECT 1\0");
            self.say(b'C', b"SELECT 1\0");
            self.ready();
            return None;
        }
        self.portal = (query.to_owned(), vec![]);
        self.execute(now, true)
    }

    fn bind(&mut self, body: &mut BytesMut) {
        text(body);
        let name = text(body);
        let formats = body.get_u16();
        body.advance(usize::from(formats) * 2);
        let count = body.get_u16();
        let mut values = vec![];
        for _ in 0..count {
            let length = usize::try_from(body.get_i32()).unwrap();
            values.push(String::from_utf8(body.split_to(length).to_vec()).unwrap());
        }
        if self.is_altered {
            return self.fail("0A000", "cached plan must not change result type", false);
        }
        let Some(query) = self.prepared.get(&name).cloned() else {
            return self.fail("26000", "prepared statement does not exist", false);
        };
        self.portal = (query, values);
        self.say(b'2', &[]);
    }

    fn execute(&mut self, now: Instant, is_simple: bool) -> Option<Call> {
        let (query, values) = std::mem::take(&mut self.portal);
        if let [pids, starts, _] = &values[..] {
            let list = |text: &str| -> Vec<String> {
                let parts = text.trim_matches(['{', '}']).split(',').filter(|part| !part.is_empty());
                parts.map(|part| part.trim_matches('"').to_owned()).collect()
            };
            let aim = ["pg_cancel_backend", "pg_terminate_backend"].into_iter().find(|aim| query.contains(aim));
            let pids = list(pids).iter().map(|pid| pid.parse().unwrap()).collect();
            return Some(Call::Signal { aim: aim.unwrap_or("look"), pids, starts: list(starts) });
        }
        if self.transaction == b'E' && !matches!(&*query, "ROLLBACK" | "COMMIT") {
            self.fail("25P02", "the transaction is aborted", is_simple);
            return None;
        }
        let number = |word: &str| query.split(word).nth(1).and_then(|rest| rest.trim().parse::<u64>().ok());
        let until = now + Duration::from_micros(number(" work ").or(number(" stuck ")).unwrap_or(50));
        let rows_left = usize::try_from(number(" rows ").unwrap_or(1)).unwrap();
        self.running = Some(Running { text: query, until, rows_left, is_simple });
        None
    }

    /// The canceller's answer.
    pub fn answer(&mut self, reached: &[i32]) {
        for pid in reached {
            self.row(&[&pid.to_string(), "t"]);
        }
        self.say(b'C', b"SELECT 1\0");
    }

    /// The statement's time is over: it sends its result, as far as the socket accepts it.
    pub fn go_on(&mut self, now: Instant) {
        let Some(running) = self.running.take_if(|running| running.until <= now) else { return };
        let Running { text, rows_left, is_simple, .. } = running;
        match &*text {
            "COMMIT" | "ROLLBACK" => {
                let tag = if self.transaction == b'E' { "ROLLBACK" } else { &text };
                self.say(b'C', format!("{tag}\0").as_bytes());
                self.transaction = b'I';
            }
            begin if begin.starts_with("BEGIN") => {
                self.transaction = b'T';
                self.say(b'C', b"BEGIN\0");
            }
            fails if fails.contains("fail") => return self.fail("22012", "division by zero", is_simple),
            _ => {
                let mut left = rows_left;
                while left > 0 && self.output.len() < SOCKET_BYTES {
                    self.row(&["12345"]);
                    left -= 1;
                }
                if left > 0 {
                    self.running =
                        Some(Running { text, until: now + Duration::from_millis(1), rows_left: left, is_simple });
                    return;
                }
                self.say(b'C', format!("SELECT {rows_left}\0").as_bytes());
            }
        }
        if is_simple {
            self.ready();
        }
    }

    fn fail(&mut self, code: &str, text: &str, is_simple: bool) {
        self.error("ERROR", code, text);
        if self.transaction != b'I' {
            self.transaction = b'E';
        }
        if is_simple {
            self.ready();
        } else {
            self.skips = true;
        }
    }

    /// A signal to cancel. Returns what was hit. A signal that comes while nothing runs is ignored.
    pub fn cancel(&mut self, words: &str) -> Option<String> {
        let is_blocked = self.output.len() >= SOCKET_BYTES;
        let running = self.running.take_if(|running| !running.text.contains("stuck") && !is_blocked)?;
        self.fail("57014", words, running.is_simple);
        Some(running.text)
    }
}

fn text(body: &mut BytesMut) -> String {
    let end = body.iter().position(|byte| *byte == 0).unwrap();
    let text = String::from_utf8(body.split_to(end).to_vec()).unwrap();
    body.advance(1);
    text
}

//! As much of a server as the test needs: it answers like a pooler, so that each cancel comes over a connection of its
//! own.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

type Sessions = Arc<Mutex<HashMap<i32, Sleeper>>>;

struct Sleeper {
    stream: UnixStream,
    sleeps: bool,
}

const CANCEL: i32 = 80_877_102;

/// Listens at a Unix socket in that folder: with TCP there would soon be no port left. Its threads end with the test.
pub fn start(folder: &Path) {
    let listener = UnixListener::bind(folder.join(".s.PGSQL.5432")).unwrap();
    std::thread::spawn(move || {
        let sessions = Sessions::default();
        for (pid, stream) in (1..).zip(listener.incoming()) {
            let mut stream = stream.unwrap();
            let Some((code, rest)) = first_words(&mut stream) else { continue };
            if code == CANCEL {
                cancel(&sessions, i32::from_be_bytes(rest[..4].try_into().unwrap()));
            } else {
                let sleeper = Sleeper { stream: stream.try_clone().unwrap(), sleeps: false };
                sessions.lock().unwrap().insert(pid, sleeper);
                let sessions = Arc::clone(&sessions);
                std::thread::spawn(move || serve(stream, pid, &sessions));
            }
        }
    });
}

fn first_words(stream: &mut UnixStream) -> Option<(i32, Vec<u8>)> {
    let mut head = [0; 8];
    stream.read_exact(&mut head).ok()?;
    let length = i32::from_be_bytes(head[..4].try_into().unwrap());
    let mut rest = vec![0; usize::try_from(length).ok()? - 8];
    stream.read_exact(&mut rest).ok()?;
    Some((i32::from_be_bytes(head[4..].try_into().unwrap()), rest))
}

/// Like any server, it does nothing about a statement that does not sleep yet.
fn cancel(sessions: &Sessions, pid: i32) {
    let error = message(b'E', b"VERROR\0C57014\0Mcanceling statement due to user request\0\0");
    let mut sessions = sessions.lock().unwrap();
    if let Some(sleeper) = sessions.get_mut(&pid)
        && std::mem::take(&mut sleeper.sleeps)
    {
        sleeper.stream.write_all(&[error, message(b'Z', b"I")].concat()).unwrap();
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
    [&[tag][..], &length, body].concat()
}

fn serve(mut stream: UnixStream, pid: i32, sessions: &Sessions) {
    let key = [pid.to_be_bytes(), 7_i32.to_be_bytes()].concat();
    let mut said = [message(b'R', &[0; 4]), message(b'K', &key), message(b'Z', b"I")].concat();
    let (mut text, mut sleeps, mut transaction) = (String::new(), false, b'I');
    loop {
        if stream.write_all(&said).is_err() {
            return;
        }
        said.clear();
        let mut head = [0; 5];
        if stream.read_exact(&mut head).is_err() {
            return;
        }
        let mut body = vec![0; u32::from_be_bytes(head[1..].try_into().unwrap()) as usize - 4];
        stream.read_exact(&mut body).unwrap();
        match head[0] {
            b'Q' => {
                let simple = String::from_utf8(body).unwrap();
                transaction = if simple.starts_with("BEGIN") { b'T' } else { b'I' };
                if let Some(word) = ["BEGIN", "COMMIT"].into_iter().find(|word| simple.starts_with(word)) {
                    said.extend(message(b'C', format!("{word}\0").as_bytes()));
                }
                said.extend(message(b'Z', &[transaction]));
            }
            b'P' => {
                text = String::from_utf8(body).unwrap();
                said.extend(message(b'1', &[]));
            }
            b'D' => {
                if body[0] == b'S' {
                    said.extend(message(b't', &[0, 0]));
                }
                said.extend(message(b'T', b"\0\x01pid\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0"));
            }
            b'B' => said.extend(message(b'2', &[])),
            b'E' if text.contains("pg_sleep") => sleeps = true,
            b'E' => {
                let pid = pid.to_string();
                let value =
                    [&1_u16.to_be_bytes()[..], &u32::try_from(pid.len()).unwrap().to_be_bytes(), pid.as_bytes()];
                said.extend([message(b'D', &value.concat()), message(b'C', b"SELECT 1\0")].concat());
            }
            b'S' if std::mem::take(&mut sleeps) => sessions.lock().unwrap().get_mut(&pid).unwrap().sleeps = true,
            b'S' => said.extend(message(b'Z', &[transaction])),
            _ => return,
        }
    }
}

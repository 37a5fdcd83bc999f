//! Publishes one message with a POST on a connection opened beforehand.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::answer;
use crate::clock::{self, Nanos};
use crate::message::MESSAGE;
use crate::target::Target;

/// How long a publisher waits for its own answer: a server busy with 20,000 clients may take a while.
const PUBLISH_ANSWER_SECONDS: u64 = 30;

/// A connection that is ready to publish.
pub struct Publisher {
    stream: TcpStream,
    request: Vec<u8>,
}

impl Publisher {
    pub fn connect(target: &Target) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(target.address).context("no connection to publish on")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(PUBLISH_ANSWER_SECONDS)))?;
        Ok(Self { stream, request: target.post(MESSAGE) })
    }

    /// Returns the moment just before the message was sent.
    pub fn publish(mut self) -> anyhow::Result<Nanos> {
        let start = clock::now();
        self.stream.write_all(&self.request)?;
        let mut received = Vec::new();
        let mut part = [0; 4096];
        loop {
            let count = self.stream.read(&mut part).context("the publish was not answered")?;
            received.extend_from_slice(&part[..count]);
            match answer::parse(&received, count == 0)? {
                Some(answer) if matches!(answer.status, 200..=299) => return Ok(start),
                Some(answer) => bail!("the publish was answered with {}", answer.status),
                None if count == 0 => bail!("the publish was not answered"),
                None => {}
            }
        }
    }
}

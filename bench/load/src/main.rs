//! A load generator for HTTP/1.1 that opens its connections first, then sends, then measures; the result is JSON on stdout.

mod answer;
mod clock;
mod connect;
mod crew;
mod lead;
mod message;
mod publish;
mod rate;
mod report;
mod target;

use clap::{Args, Parser, ValueEnum};
use serde::{Deserialize, Serialize};

use crate::target::Target;

#[derive(Parser)]
#[command(about)]
enum Command {
    /// One GET on each connection, all at once: when is the first answered, when the last?
    Fire(Crowd),
    /// One GET on each connection, then one publish: how long until the last is answered?
    Release {
        #[command(flatten)]
        crowd: Crowd,
        /// Where to POST the message.
        #[arg(long)]
        publish: Target,
        /// After printing "held", publish only when a line arrives on stdin (else after --settle seconds).
        #[arg(long)]
        wait_for_line: bool,
        /// The answer is a stream without an end, and this many messages are published, one after the other: when has
        /// the last client all of them?
        #[arg(long)]
        messages: Option<u32>,
    },
    /// Each client sends a message on its WebSocket, and the next one as soon as it is echoed.
    Echo {
        #[command(flatten)]
        crowd: Crowd,
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
    },
    /// Each client sends its next GET as soon as the last one is answered, while a message is published at intervals.
    Rounds {
        #[command(flatten)]
        crowd: Crowd,
        #[arg(long, default_value_t = 10)]
        rounds: u32,
        #[arg(long)]
        publish: Target,
        /// Seconds between two messages; the first one comes this long after the first requests.
        #[arg(long, default_value_t = 2.0)]
        every: f64,
    },
    /// Holds connections until stdin closes; prints "held" when all are open, and sent if --what asks for it.
    Hold {
        #[command(flatten)]
        crowd: Crowd,
        #[arg(long, value_enum, default_value_t = Held::Parked)]
        what: Held,
    },
    /// Requests at a constant rate whatever the answers do; latency counts from the moment each was due.
    Rate(rate::Plan),
    /// One of the processes that the modes above start (its order is JSON).
    #[command(hide = true)]
    Crew { order: String },
}

/// The clients of one run.
#[derive(Args)]
pub struct Crowd {
    #[arg(long)]
    pub url: Target,
    #[arg(long, default_value_t = 100)]
    pub connections: usize,
    /// Number of processes for the clients; more if a process cannot hold its share
    #[arg(long, default_value_t = 2)]
    pub processes: usize,
    /// Each GET asks for a WebSocket, and 101 counts as its answer.
    #[arg(long)]
    pub websocket: bool,
    /// The status that counts as an answer; any other is a failure.
    #[arg(long, default_value_t = 200)]
    pub expect: u16,
    /// Seconds after which a missing answer is a failure
    #[arg(long, default_value_t = 30.0)]
    pub timeout: f64,
    /// Seconds between the last connection and the first request, so that the server has accepted them all.
    #[arg(long, default_value_t = 0.3)]
    pub settle: f64,
}

/// The history of a held connection.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Held {
    /// Nothing was sent.
    Idle,
    /// One GET was sent and answered.
    Answered,
    /// One GET was sent that is not answered yet.
    Parked,
}

fn main() -> anyhow::Result<()> {
    match Command::parse() {
        Command::Fire(crowd) => lead::fire(&crowd),
        Command::Release { crowd, publish, wait_for_line, messages } => {
            lead::release(&crowd, &publish, wait_for_line, messages)
        }
        Command::Echo { crowd, seconds } => lead::echo(&crowd, seconds),
        Command::Rounds { crowd, rounds, publish, every } => lead::rounds(&crowd, rounds, &publish, every),
        Command::Hold { crowd, what } => lead::hold(&crowd, what),
        Command::Rate(plan) => rate::run(&plan),
        Command::Crew { order } => crew::run(&serde_json::from_str(&order)?),
    }
}

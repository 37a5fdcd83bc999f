//! `parkade status`: shows a running parkade, live in a terminal. It changes nothing.
//!
//! Also `parkade publish`, `cancel`, `jobs`, `enqueue`, `reload` and `stop`, which use the same endpoints.

mod client;
mod enqueue;
mod jobs;
mod page;
mod reload;
mod screen;

use std::io::{self, IsTerminal, Read};
use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::admin::Report;
use crate::cli::{CancelArgs, PublishArgs, StatusArgs};
use crate::terminal;
pub use client::{AdminAddress, AskError};
pub use enqueue::enqueue;
pub use jobs::jobs;
pub use reload::{reload, stop};

/// Why the command failed.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Ask(#[from] AskError),
    #[error("cannot control the terminal: {0}; try --once")]
    Terminal(#[from] io::Error),
    #[error("cannot read the message from standard input: {0}")]
    Message(io::Error),
    #[error("the content type {0:?} must be plain ASCII such as application/json")]
    ContentType(String),
    #[error("the arguments have {count} bytes, and a job takes at most {max}; pass a reference to larger data")]
    Arguments { count: usize, max: usize },
    #[error("the server is still reloading after {after:?}, and continues: `parkade status` shows the outcome")]
    StillReloading { after: Duration },
    #[error(
        "{what} is still running after {after:?}: {holds}. The stop continues; `parkade stop --now` ends the server at once"
    )]
    StillRunning { what: String, after: Duration, holds: String },
    #[error("the number in {0} does not fit into 64 bits: pass it as text, '\"…\"'")]
    Number(String),
}

/// `parkade status`.
pub fn status(args: &StatusArgs) -> Result<(), CommandError> {
    let address = AdminAddress::find(&args.whom)?;
    if args.json {
        Ok(terminal::print_json(&String::from_utf8_lossy(&address.ask("GET", "/status", "", b"")?))?)
    } else if args.once || !io::stdout().is_terminal() {
        Ok(terminal::print(&page::text(&report(&address)?))?)
    } else {
        screen::live(|| report(&address))
    }
}

/// `parkade publish`: prints the cursor of the message.
pub fn publish(args: &PublishArgs) -> Result<(), CommandError> {
    let address = AdminAddress::find(&args.whom)?;
    if !args.content_type.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err(CommandError::ContentType(args.content_type.clone()));
    }
    let mut message = args.value.clone().into_bytes();
    if args.value == "-" {
        message.clear();
        io::stdin().read_to_end(&mut message).map_err(CommandError::Message)?;
    }
    let event = args.event.as_ref().map(|event| format!("?event={}", percent_encoded(event)));
    let path = format!("/publish/{}{}", percent_encoded(&args.channel), event.unwrap_or_default());
    let answer = address.ask("POST", &path, &args.content_type, &message)?;
    let told: Option<serde_json::Value> = serde_json::from_slice(&answer).ok();
    let cursor = told.as_ref().and_then(|told| told.get("cursor")?.as_str());
    Ok(terminal::print(cursor.ok_or_else(|| AskError::NoSense { place: address.to_string() })?)?)
}

/// `parkade cancel`: ends a query. The requests that wait for it are answered.
pub fn cancel(args: &CancelArgs) -> Result<(), CommandError> {
    let address = AdminAddress::find(&args.whom)?;
    address.ask("POST", &format!("/queries/{}/cancel", args.id), "", b"")?;
    Ok(terminal::print(&format!("query {} is being cancelled", args.id))?)
}

fn report(address: &AdminAddress) -> Result<Report, AskError> {
    let body = address.ask("GET", "/status", "", b"")?;
    serde_json::from_slice(&body).map_err(|_| AskError::NoSense { place: address.to_string() })
}

/// Everything but the unreserved characters (RFC 3986, section 2.3) and the slash.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

fn percent_encoded(text: &str) -> String {
    utf8_percent_encode(text, ENCODED).to_string()
}

#[cfg(test)]
mod tests;

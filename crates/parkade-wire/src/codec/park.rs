//! Reads what `PARK` and `READY` share: responses, waits and what follows them.

use parkade_model::{ChannelName, ChannelNameError, Cursor, GroupEnd};

use super::job::{access, result_of};
use super::query::{begin, end, query};
use super::read::Reader;
use crate::error::PayloadFault;
use crate::exchange::{Added, Headers, Response};
use crate::limits::{
    BRANCH_STREAM_MIN, CHANNEL_NAME_BYTES_MAX, GROUP_COUNT_MAX, INLINE_BODY_BYTES_MAX, NAME_BYTES_MAX, PART_PATHS_MAX,
    PATH_BYTES_MAX, STATE_BYTES_MAX, SUBPROTOCOL_BYTES_MAX, SUBPROTOCOLS_COUNT_MAX,
};
use crate::streams::SWITCHING_PROTOCOLS;
use crate::wait::{CallKind, FilePart, FilesOf, OnClose, ThenRequest, WaitRequest};

/// `[status, headers, body]`
pub(super) fn response(reader: &mut Reader) -> Result<Response, PayloadFault> {
    reader.array(3, response_elements)
}

pub(super) fn response_elements(reader: &mut Reader) -> Result<Response, PayloadFault> {
    response_with(reader, |status| (200..=599).contains(&status))
}

/// The same, or the beginning of a WebSocket.
pub(super) fn response_or_socket(reader: &mut Reader) -> Result<Response, PayloadFault> {
    response_with(reader, |status| status == SWITCHING_PROTOCOLS || (200..=599).contains(&status))
}

fn response_with(reader: &mut Reader, fits: impl Fn(u16) -> bool) -> Result<Response, PayloadFault> {
    let status = reader.integer("status is an integer")?;
    let status = u16::try_from(status).ok().filter(|status| fits(*status));
    Ok(Response {
        status: status.ok_or(PayloadFault::payload("status is 200 to 599"))?,
        headers: reader.optional(headers)?.unwrap_or_default(),
        body: reader.optional(inline_body)?.unwrap_or_default(),
    })
}

/// Reads every header once, so that later iterations meet no fault.
pub(super) fn headers(reader: &mut Reader) -> Result<Headers, PayloadFault> {
    let length = reader.array_length()?;
    if length % 2 != 0 {
        return Err(PayloadFault::payload("headers are pairs"));
    }
    let first = reader.clone();
    for _ in 0..length / 2 {
        reader.text("a header's name is text")?;
        reader.bytes("a header's value is bytes or text")?;
    }
    Ok(Headers::checked(reader.since(&first), length as usize / 2))
}

pub(super) fn inline_body(reader: &mut Reader) -> Result<bytes::Bytes, PayloadFault> {
    let body = reader.bytes("body is bytes or text or nil")?;
    if body.len() > INLINE_BODY_BYTES_MAX {
        return Err(PayloadFault::length("a longer body follows"));
    }
    Ok(reader.share(body))
}

/// A wait and its `then`, which must fit together.
pub(super) fn wait_then(wait: WaitRequest, then: ThenRequest) -> Result<(WaitRequest, ThenRequest), PayloadFault> {
    match (&wait, &then) {
        (WaitRequest::Timer { .. }, ThenRequest::Answer { response: None, .. }) => {
            Err(PayloadFault::payload("a timer's answer is a response"))
        }
        (
            WaitRequest::Next { .. } | WaitRequest::History { .. } | WaitRequest::Published { .. },
            ThenRequest::Answer { response: Some(_), .. },
        ) => Err(PayloadFault::payload("a channel's answer is nil")),
        (
            WaitRequest::Stream { .. },
            ThenRequest::Answer { response: Some(_), .. }
            | ThenRequest::Call { .. }
            | ThenRequest::Await
            | ThenRequest::Branch { .. },
        ) => Err(PayloadFault::payload("a stream has only answer nil")),
        (WaitRequest::Socket { .. }, ThenRequest::Answer { .. } | ThenRequest::Await | ThenRequest::Branch { .. }) => {
            Err(PayloadFault::payload("what a client says is given to a function"))
        }
        (WaitRequest::Query(_), ThenRequest::Answer { response: Some(_), .. }) => {
            Err(PayloadFault::payload("a query's answer is nil"))
        }
        (
            WaitRequest::Begin(_) | WaitRequest::Commit | WaitRequest::Rollback,
            ThenRequest::Answer { .. } | ThenRequest::Call { .. },
        ) => Err(PayloadFault::payload("a transaction is only awaited")),
        (WaitRequest::Stored, ThenRequest::Answer { .. } | ThenRequest::Call { .. } | ThenRequest::Branch { .. }) => {
            Err(PayloadFault::payload("stored is only awaited"))
        }
        (WaitRequest::Branches, ThenRequest::Answer { .. } | ThenRequest::Call { .. } | ThenRequest::Branch { .. }) => {
            Err(PayloadFault::payload("branches are only awaited"))
        }
        (WaitRequest::Group { .. }, ThenRequest::Answer { .. } | ThenRequest::Await | ThenRequest::Branch { .. }) => {
            Err(PayloadFault::payload("after several waits a function is called"))
        }
        (WaitRequest::Result { .. }, ThenRequest::Answer { response: Some(_), .. }) => {
            Err(PayloadFault::payload("a job's answer is nil"))
        }
        (
            WaitRequest::File { .. } | WaitRequest::Files(_),
            ThenRequest::Answer { response: Some(_), .. }
            | ThenRequest::Call { .. }
            | ThenRequest::Await
            | ThenRequest::Branch { .. },
        ) => Err(PayloadFault::payload("a file has only answer nil")),
        (
            WaitRequest::Part(_),
            ThenRequest::Answer { response: None, .. }
            | ThenRequest::Call { .. }
            | ThenRequest::Await
            | ThenRequest::Branch { .. },
        ) => Err(PayloadFault::payload("a part of a file has only a response")),
        (
            WaitRequest::Access { .. },
            ThenRequest::Answer { response: Some(_), .. }
            | ThenRequest::Call { .. }
            | ThenRequest::Await
            | ThenRequest::Branch { .. },
        ) => Err(PayloadFault::payload("access has only answer nil")),
        (
            WaitRequest::Timer { .. }
            | WaitRequest::Next { .. }
            | WaitRequest::History { .. }
            | WaitRequest::Published { .. }
            | WaitRequest::Stream { .. }
            | WaitRequest::Socket { .. }
            | WaitRequest::Query(_)
            | WaitRequest::Begin(_)
            | WaitRequest::Commit
            | WaitRequest::Rollback
            | WaitRequest::Stored
            | WaitRequest::Branches
            | WaitRequest::Group { .. }
            | WaitRequest::Result { .. }
            | WaitRequest::File { .. }
            | WaitRequest::Files(_)
            | WaitRequest::Part(_)
            | WaitRequest::Access { .. }
            | WaitRequest::Unaccepted { .. },
            _,
        ) => Ok((wait, then)),
    }
}

/// `[name, …]`. After the name nothing is a violation: anything invalid makes the wait `Unaccepted`.
pub(super) fn wait(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    let mut whole = reader.value()?;
    let mut named = whole.clone();
    if named.array_length().map_err(|_| PayloadFault::payload("wait is an array"))? == 0 {
        return Err(PayloadFault::payload("a wait has a name"));
    }
    let name = named.text("a wait's name is text")?;
    let known = match name {
        "timer" => timer(&mut whole),
        "next" => next(&mut whole),
        "stream" => stream(&mut whole).map(|(channel, since)| WaitRequest::Stream { channel, since }),
        "socket" => socket(&mut whole),
        "history" => history(&mut whole),
        "published" => published(&mut whole),
        "query" => query(&mut whole),
        "begin" => begin(&mut whole),
        "commit" => end(&mut whole).map(|()| WaitRequest::Commit),
        "rollback" => end(&mut whole).map(|()| WaitRequest::Rollback),
        "stored" => stored(&mut whole),
        "branches" => branches(&mut whole),
        "all_of" => group(&mut whole, GroupEnd::All),
        "first_of" => group(&mut whole, GroupEnd::First),
        "result" => result_of(&mut whole),
        "access" => access(&mut whole),
        "file" => file(&mut whole),
        "files" => files(&mut whole),
        "part" => part(&mut whole),
        _ => Err(PayloadFault::payload("no wait of this core")),
    };
    Ok(known.unwrap_or_else(|fault| WaitRequest::Unaccepted { name: name.to_owned(), why: fault.why }))
}

fn timer(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(2, |reader| {
        reader.skip(1)?;
        Ok(WaitRequest::Timer { after: reader.duration()? })
    })
}

/// `["stored"]`
fn stored(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(1, |reader| reader.skip(1).map(|()| WaitRequest::Stored))
}

/// `["branches"]`
fn branches(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(1, |reader| reader.skip(1).map(|()| WaitRequest::Branches))
}

/// `["all_of", waits]`, `["first_of", waits]`
fn group(reader: &mut Reader, until: GroupEnd) -> Result<WaitRequest, PayloadFault> {
    reader.array(2, |reader| {
        reader.skip(1)?;
        let count = reader.clone().array_length()? as usize;
        if count > GROUP_COUNT_MAX || count == 0 && until == GroupEnd::First {
            return Err(PayloadFault::payload("there are 1 to 100 waits, of all_of also none"));
        }
        Ok(WaitRequest::Group { until, waits: reader.list(member)? })
    })
}

/// One of several waits. It is none of several itself, so nothing is nested.
fn member(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    let mut named = reader.clone().value()?;
    named.array_length()?;
    if matches!(named.text("a wait's name is text")?, "all_of" | "first_of") {
        return Err(PayloadFault::payload("several waits are not nested"));
    }
    match wait(reader)? {
        WaitRequest::Query(query) if query.options.within => {
            Err(PayloadFault::payload("a transaction executes one statement at a time"))
        }
        WaitRequest::Unaccepted { why, .. } => Err(PayloadFault::payload(why)),
        WaitRequest::Stream { .. }
        | WaitRequest::Socket { .. }
        | WaitRequest::Begin(_)
        | WaitRequest::Commit
        | WaitRequest::Rollback
        | WaitRequest::Stored
        | WaitRequest::Branches
        | WaitRequest::Group { .. }
        | WaitRequest::File { .. }
        | WaitRequest::Files(_)
        | WaitRequest::Part(_)
        | WaitRequest::Access { .. } => Err(PayloadFault::payload("that is none of several waits")),
        wait @ (WaitRequest::Timer { .. }
        | WaitRequest::Next { .. }
        | WaitRequest::History { .. }
        | WaitRequest::Published { .. }
        | WaitRequest::Query(_)
        | WaitRequest::Result { .. }) => Ok(wait),
    }
}

fn next(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(3, |reader| {
        reader.skip(1)?;
        let channel = channel(reader)?;
        let (mut timeout, mut since) = (None, None);
        reader.map(|reader, key| match key {
            "timeout" => reader.optional(Reader::duration).map(|value| timeout = value).map(|()| true),
            "since" => reader.optional(cursor).map(|value| since = value.flatten()).map(|()| true),
            _ => Ok(false),
        })?;
        Ok(WaitRequest::Next { channel, timeout, since })
    })
}

/// `[name, channel, options]`
fn stream(reader: &mut Reader) -> Result<(ChannelName, Option<Cursor>), PayloadFault> {
    reader.array(3, |reader| {
        reader.skip(1)?;
        let channel = channel(reader)?;
        let mut since = None;
        reader.map(|reader, key| match key {
            "since" => reader.optional(cursor).map(|value| since = value.flatten()).map(|()| true),
            _ => Ok(false),
        })?;
        Ok((channel, since))
    })
}

/// `["socket", channel, options]`
fn socket(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(3, |reader| {
        reader.skip(1)?;
        let channel = channel(reader)?;
        let (mut since, mut on_close, mut subprotocols) = (None, None, Vec::new());
        reader.map(|reader, key| match key {
            "since" => reader.optional(cursor).map(|value| since = value.flatten()).map(|()| true),
            "on_close" => reader.optional(closed).map(|value| on_close = value).map(|()| true),
            "subprotocols" => reader.list(subprotocol).map(|value| subprotocols = value).map(|()| true),
            _ => Ok(false),
        })?;
        if subprotocols.len() > SUBPROTOCOLS_COUNT_MAX {
            return Err(PayloadFault::length("a WebSocket has at most 16 sub-protocols"));
        }
        Ok(WaitRequest::Socket { channel, since, on_close, subprotocols })
    })
}

fn subprotocol(reader: &mut Reader) -> Result<String, PayloadFault> {
    let name = reader.text("a sub-protocol is text")?;
    if name.is_empty() || name.len() > SUBPROTOCOL_BYTES_MAX {
        return Err(PayloadFault::length("the name of a sub-protocol has 1 to 200 bytes"));
    }
    // One that is no token of HTTP is offered by no client.
    Ok(name.to_owned())
}

/// `[function, kind]`
fn closed(reader: &mut Reader) -> Result<OnClose, PayloadFault> {
    reader.array(2, |reader| Ok(OnClose { function: name(reader, "function is text")?, kind: kind(reader)? }))
}

fn history(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(3, |reader| {
        reader.skip(1)?;
        let channel = channel(reader)?;
        let mut count = None;
        reader.map(|reader, key| match key {
            "count" => reader.optional(whole_number).map(|value| count = value).map(|()| true),
            _ => Ok(false),
        })?;
        Ok(WaitRequest::History { channel, count })
    })
}

/// `["published", number]`
fn published(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(2, |reader| {
        reader.skip(1)?;
        Ok(WaitRequest::Published { number: whole_number(reader)? })
    })
}

fn whole_number(reader: &mut Reader) -> Result<u64, PayloadFault> {
    reader.unsigned("a number is an integer that is not negative")
}

/// `["file", path, options]`
fn file(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(3, |reader| {
        reader.skip(1)?;
        let path = path(reader)?;
        reader.map(|_, _| Ok(false))?;
        Ok(WaitRequest::File { path })
    })
}

/// `["files", folder, path, options]`
fn files(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(4, |reader| {
        reader.skip(1)?;
        let (folder, path) = (path(reader)?, reader.optional(path)?);
        let (mut depth, mut hidden, mut precompressed, mut index) = (0, false, false, None);
        reader.map(|reader, key| {
            match key {
                "depth" => {
                    let segments = u32::try_from(reader.integer("depth is an integer")?);
                    depth = segments.map_err(|_| PayloadFault::payload("depth is not negative"))?;
                }
                "hidden" => hidden = reader.boolean("hidden is a boolean")?,
                "precompressed" => precompressed = reader.boolean("precompressed is a boolean")?,
                "index" => index = reader.optional(|reader| reader.text("index is text").map(str::to_owned))?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if index.as_deref().is_some_and(|name| name.is_empty() || name.contains(['/', '\\', '\0'])) {
            return Err(PayloadFault::payload("index is the name of a file"));
        }
        Ok(WaitRequest::Files(Box::new(FilesOf { folder, path, depth, hidden, precompressed, index })))
    })
}

/// `["part", paths, [device, inode], first, length]`
fn part(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(5, |reader| {
        reader.skip(1)?;
        let count = reader.clone().array_length()? as usize;
        if count == 0 || count > PART_PATHS_MAX {
            return Err(PayloadFault::payload("a file has one or two paths"));
        }
        let paths = reader.list(path)?;
        let (device, inode) = reader.array(2, |reader| {
            Ok((reader.unsigned("a device is an integer")?, reader.unsigned("an inode is an integer")?))
        })?;
        let first: u64 = reader.unsigned("first is an integer")?;
        let length: u64 = reader.unsigned("length is an integer")?;
        if length == 0 || first.checked_add(length).is_none() {
            return Err(PayloadFault::payload("a part has a byte"));
        }
        Ok(WaitRequest::Part(Box::new(FilePart { paths, device, inode, first, length })))
    })
}

fn path(reader: &mut Reader) -> Result<String, PayloadFault> {
    let path = reader.text("a path is text")?;
    if path.is_empty() || path.len() > PATH_BYTES_MAX || path.contains('\0') {
        return Err(PayloadFault::payload("a path has 1 to 65,536 bytes, none of them NUL"));
    }
    Ok(path.to_owned())
}

/// The cursor of a client that comes back: an invalid one is a position nevertheless (see [`Cursor::told`]).
fn cursor(reader: &mut Reader) -> Result<Option<Cursor>, PayloadFault> {
    reader.text("a cursor is text").map(Cursor::told)
}

fn channel(reader: &mut Reader) -> Result<ChannelName, PayloadFault> {
    ChannelName::parse(reader.text("a channel's name is text")?).map_err(|wrong| match wrong {
        ChannelNameError::Empty | ChannelNameError::TooLong => {
            PayloadFault::payload("a channel's name has 1 to 200 bytes")
        }
        ChannelNameError::Control => PayloadFault::payload("a channel's name has no control character"),
    })
}

/// For `PUBLISH`, where violating this is a violation of the protocol; the server checks the rest of a channel name.
pub(super) fn channel_name(reader: &mut Reader) -> Result<String, PayloadFault> {
    let name = reader.text("a channel's name is text")?;
    if name.is_empty() || name.len() > CHANNEL_NAME_BYTES_MAX {
        return Err(PayloadFault::payload("a channel's name has 1 to 200 bytes"));
    }
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(PayloadFault::payload("a channel's name has no control character"));
    }
    Ok(name.to_owned())
}

/// `["answer", response]`, `["call", function, state]`, the same with something after it, `["await"]`, or `["branch", stream]`
pub(super) fn then(reader: &mut Reader) -> Result<ThenRequest, PayloadFault> {
    let mut whole = reader.value()?;
    let name = whole.clone().array(1, |reader| reader.text("then's name is text"))?;
    match name {
        "answer" if whole.clone().array_length()? > 2 => {
            whole.array(3, |reader| answered(reader, |reader| reader.optional(added)))
        }
        "answer" => whole.array(2, |reader| answered(reader, |_| Ok(None))),
        "call" if whole.clone().array_length()? > 3 => whole.array(4, |reader| called(reader, kind)),
        "call" => whole.array(3, |reader| called(reader, |_| Ok(CallKind::default()))),
        "await" => Ok(ThenRequest::Await),
        "branch" => whole.array(2, branch),
        _ => Err(PayloadFault::payload("then is answer, call, await or branch")),
    }
}

fn branch(reader: &mut Reader) -> Result<ThenRequest, PayloadFault> {
    reader.skip(1)?;
    let of = Some(reader.unsigned("a stream is an integer")?).filter(|of| (1..BRANCH_STREAM_MIN).contains(of));
    Ok(ThenRequest::Branch { of: of.ok_or(PayloadFault::payload("a branch is one of a stream below 2,147,483,648"))? })
}

fn answered(
    reader: &mut Reader,
    added: impl Fn(&mut Reader) -> Result<Option<Added>, PayloadFault>,
) -> Result<ThenRequest, PayloadFault> {
    reader.skip(1)?;
    Ok(ThenRequest::Answer { response: reader.optional(response)?, added: added(reader)? })
}

/// `[status, headers]`
fn added(reader: &mut Reader) -> Result<Added, PayloadFault> {
    reader.array(2, |reader| {
        let status = reader.optional(|reader| {
            let status = reader.integer("status is an integer")?;
            let status = u16::try_from(status).ok().filter(|status| (200..=299).contains(status));
            status.ok_or(PayloadFault::payload("an added status is 200 to 299"))
        })?;
        Ok(Added { status, headers: reader.optional(headers)?.unwrap_or_default() })
    })
}

fn called(
    reader: &mut Reader,
    kind: impl Fn(&mut Reader) -> Result<CallKind, PayloadFault>,
) -> Result<ThenRequest, PayloadFault> {
    reader.skip(1)?;
    let function = name(reader, "function is text")?;
    let state = reader.binary("state is bytes")?;
    if state.len() > STATE_BYTES_MAX {
        return Err(PayloadFault::length("a state has at most 65,536 bytes"));
    }
    Ok(ThenRequest::Call { function, state, kind: kind(reader)? })
}

pub(super) fn kind(reader: &mut Reader) -> Result<CallKind, PayloadFault> {
    match reader.text("kind is text")? {
        "sync" => Ok(CallKind::Sync),
        "async" => Ok(CallKind::Async),
        _ => Err(PayloadFault::payload("kind is sync or async")),
    }
}

/// The name of a function, or a content type.
pub(super) fn name(reader: &mut Reader, why: &'static str) -> Result<String, PayloadFault> {
    let name = reader.text(why)?;
    if name.len() > NAME_BYTES_MAX {
        return Err(PayloadFault::length("a function's name and a content type have at most 1,024 bytes"));
    }
    Ok(name.to_owned())
}

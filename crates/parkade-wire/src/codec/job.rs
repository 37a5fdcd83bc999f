//! Reads the frames of jobs, and the waits for them.

use std::ops::RangeInclusive;

use bytes::Bytes;
use parkade_model::JobId;

use super::read::{Reader, payload};
use crate::error::PayloadFault;
use crate::frame::FromWorker;
use crate::job::{EnqueueOptions, Enqueued, RunFrame};
use crate::limits::{ARGUMENTS_BYTES_MAX, JOB_NAME_BYTES_MAX, PRIORITY_MAX, PROGRESS_TEXT_BYTES_MAX, RESULT_BYTES_MAX};
use crate::wait::WaitRequest;

/// `[id, name, arguments, options]`
pub(super) fn enqueued(reader: &mut Reader) -> Result<Enqueued, PayloadFault> {
    Ok(Enqueued { id: id(reader)?, name: name(reader)?, arguments: arguments(reader)?, options: options(reader)? })
}

/// `[id, name, attempt, deadline, arguments]`, the same with `request_id` after it, or with that and `traceparent`
pub(super) fn run(bytes: &Bytes) -> Result<RunFrame, PayloadFault> {
    let request_id =
        |reader: &mut Reader| reader.optional(|reader| reader.text("a request id is text or nil").map(Into::into));
    let traceparent =
        |reader: &mut Reader| reader.optional(|reader| reader.text("traceparent is text or nil").map(Into::into));
    match Reader::new(bytes).array_length()? {
        0..=5 => payload(bytes, 5, |reader| attempt(reader, |_| Ok((None, None)))),
        6 => payload(bytes, 6, |reader| attempt(reader, |reader| Ok((request_id(reader)?, None)))),
        _ => payload(bytes, 7, |reader| attempt(reader, |reader| Ok((request_id(reader)?, traceparent(reader)?)))),
    }
}

fn attempt(
    reader: &mut Reader,
    rest: impl FnOnce(&mut Reader) -> Result<(Option<String>, Option<String>), PayloadFault>,
) -> Result<RunFrame, PayloadFault> {
    const ATTEMPT: &str = "an attempt is 1 or more";
    let (id, name) = (id(reader)?, name(reader)?);
    let attempt = Some(reader.unsigned(ATTEMPT)?).filter(|attempt| *attempt > 0);
    let attempt = attempt.ok_or(PayloadFault::payload(ATTEMPT))?;
    let (deadline, arguments) = (reader.optional(Reader::seconds)?, arguments(reader)?);
    let (request_id, traceparent) = rest(reader)?;
    Ok(RunFrame { id, name, attempt, deadline, arguments, request_id, traceparent })
}

pub(super) fn result(reader: &mut Reader) -> Result<Bytes, PayloadFault> {
    let result = reader.binary("a result is bytes")?;
    if result.len() > RESULT_BYTES_MAX {
        return Err(PayloadFault::length("a result has at most 524,288 bytes"));
    }
    Ok(result)
}

/// `[fraction, text]`
pub(super) fn progress(stream: u32, reader: &mut Reader) -> Result<FromWorker, PayloadFault> {
    let fraction = reader.optional(fraction)?;
    let text = reader.owned_text()?;
    if text.len() > PROGRESS_TEXT_BYTES_MAX {
        return Err(PayloadFault::length("text has at most 1,000 bytes"));
    }
    Ok(FromWorker::Progress { stream, fraction, text })
}

/// `["result", id, options]`
pub(super) fn result_of(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(3, |reader| {
        reader.skip(1)?;
        let job = id(reader)?;
        let mut timeout = None;
        reader.map(|reader, key| match key {
            "timeout" => reader.optional(Reader::duration).map(|value| timeout = value).map(|()| true),
            _ => Ok(false),
        })?;
        Ok(WaitRequest::Result { job, timeout })
    })
}

/// `["access", granted]`
pub(super) fn access(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(2, |reader| {
        reader.skip(1)?;
        Ok(WaitRequest::Access { granted: reader.boolean("granted is a boolean")? })
    })
}

/// A UUID.
pub(super) fn id(reader: &mut Reader) -> Result<JobId, PayloadFault> {
    const ID: &str = "an id is 16 bytes";
    reader.binary(ID)?[..].try_into().map(JobId::from_bytes).map_err(|_| PayloadFault::payload(ID))
}

/// Of a job: 1 to 200 bytes, none of them a control character.
pub(super) fn name(reader: &mut Reader) -> Result<String, PayloadFault> {
    let name = short(reader, "a name is text", "a name has 1 to 200 bytes")?;
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return Err(PayloadFault::payload("a name has no control character"));
    }
    Ok(name)
}

pub(super) fn queue(reader: &mut Reader) -> Result<String, PayloadFault> {
    short(reader, "a queue is text", "a queue has 1 to 200 bytes")
}

pub(super) fn arguments(reader: &mut Reader) -> Result<Bytes, PayloadFault> {
    let arguments = reader.binary("arguments are bytes")?;
    if arguments.len() > ARGUMENTS_BYTES_MAX {
        return Err(PayloadFault::length("arguments have at most 524,288 bytes"));
    }
    Ok(arguments)
}

pub(super) fn priority(reader: &mut Reader) -> Result<i16, PayloadFault> {
    within(reader, -PRIORITY_MAX..=PRIORITY_MAX, "a priority is -1,000 to 1,000")
}

/// An integer that is in the range.
pub(super) fn within<T: TryFrom<i64> + PartialOrd>(
    reader: &mut Reader,
    range: RangeInclusive<T>,
    why: &'static str,
) -> Result<T, PayloadFault> {
    let value = T::try_from(reader.integer(why)?).ok();
    value.filter(|value| range.contains(value)).ok_or(PayloadFault::payload(why))
}

pub(super) fn key(reader: &mut Reader) -> Result<String, PayloadFault> {
    short(reader, "a key is text", "a key has 1 to 200 bytes")
}

/// Text of 1 to 200 bytes.
fn short(reader: &mut Reader, is_other: &'static str, is_long: &'static str) -> Result<String, PayloadFault> {
    let text = reader.text(is_other)?;
    if text.is_empty() || text.len() > JOB_NAME_BYTES_MAX {
        return Err(PayloadFault::payload(is_long));
    }
    Ok(text.to_owned())
}

fn options(reader: &mut Reader) -> Result<EnqueueOptions, PayloadFault> {
    let mut options = EnqueueOptions::default();
    reader.map(|reader, key| {
        match key {
            "delay" => options.delay = reader.seconds()?,
            "at" => options.at = reader.optional(Reader::seconds)?,
            "priority" => options.priority = reader.optional(priority)?,
            "queue" => options.queue = reader.optional(queue)?,
            "within" => options.within = reader.boolean("within is a boolean")?,
            "key" => options.key = reader.optional(self::key)?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    match options {
        EnqueueOptions { delay, at: Some(_), .. } if delay > 0.0 => {
            Err(PayloadFault::payload("at does not go with delay"))
        }
        options => Ok(options),
    }
}

fn fraction(reader: &mut Reader) -> Result<f64, PayloadFault> {
    const FRACTION: &str = "a fraction is 0 to 1";
    let fraction = reader.float(FRACTION)?;
    if (0.0..=1.0).contains(&fraction) { Ok(fraction) } else { Err(PayloadFault::payload(FRACTION)) }
}

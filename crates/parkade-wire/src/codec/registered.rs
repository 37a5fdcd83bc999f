//! Reads the jobs, their queues and the recurring jobs of `READY`.

use std::collections::HashSet;

use parkade_model::Missed;

use super::job::{arguments, key as key_of_jobs, name, priority, queue as queue_name, within};
use super::read::Reader;
use crate::application::{JobAccess, JobSpec, QueueOptions, RecurringSpec, When};
use crate::error::PayloadFault;
use crate::limits::RETRIES_MAX;
use crate::wait::CallKind;

const QUEUE: &str = "default";
const RETRIES: u32 = 3;
const TIMEZONE: &str = "UTC";

pub(super) fn jobs(reader: &mut Reader) -> Result<Vec<JobSpec>, PayloadFault> {
    let jobs = reader.list(job)?;
    each_once(jobs.iter().map(|job| &*job.name), "each job has a name of its own")?;
    Ok(jobs)
}

/// `[name, options]`
pub(super) fn queue(reader: &mut Reader) -> Result<(String, QueueOptions), PayloadFault> {
    const CONCURRENCY: &str = "concurrency is 1 or more";
    reader.array(2, |reader| {
        let name = queue_name(reader)?;
        let mut options = QueueOptions::default();
        reader.map(|reader, key| {
            match key {
                "concurrency" => {
                    options.concurrency = reader.optional(|r| within(r, 1..=u32::MAX, CONCURRENCY))?;
                }
                "rate" => options.rate = reader.optional(|r| above_zero(r, "rate is above 0"))?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok((name, options))
    })
}

pub(super) fn recurring(reader: &mut Reader) -> Result<Vec<RecurringSpec>, PayloadFault> {
    let all = reader.list(|reader| Repeated::read(reader)?.recurring())?;
    each_once(all.iter().map(|recurring| &*recurring.name), "each recurring job has a name of its own")?;
    Ok(all)
}

fn job(reader: &mut Reader) -> Result<JobSpec, PayloadFault> {
    let (mut own_name, mut concurrent) = (None, None);
    let (mut queue, mut retries, mut deadline, mut rank) = (None, RETRIES, None, 0);
    let (mut access, mut source) = (JobAccess::default(), None);
    reader.map(|reader, key| {
        match key {
            "name" => own_name = Some(name(reader)?),
            "kind" => concurrent = Some(is_coroutine(reader)?),
            "queue" => queue = Some(queue_name(reader)?),
            "retries" => retries = within(reader, 0..=RETRIES_MAX, "retries are 0 to 1,000,000")?,
            "deadline" => deadline = reader.optional(Reader::seconds)?,
            "priority" => rank = priority(reader)?,
            "access" => access = self::access(reader)?,
            "source" => source = reader.optional(|r| r.text("source is text").map(str::to_owned))?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(JobSpec {
        name: own_name.ok_or(PayloadFault::payload("name is missing"))?,
        concurrent: concurrent.ok_or(PayloadFault::payload("kind is missing"))?,
        queue: queue.unwrap_or_else(|| QUEUE.to_owned()),
        retries,
        deadline,
        priority: rank,
        access,
        source,
    })
}

fn is_coroutine(reader: &mut Reader) -> Result<bool, PayloadFault> {
    match reader.text("kind is text")? {
        "sync" => Ok(false),
        "async" => Ok(true),
        _ => Err(PayloadFault::payload("kind is sync or async")),
    }
}

fn access(reader: &mut Reader) -> Result<JobAccess, PayloadFault> {
    match reader.text("access is text")? {
        "public" => Ok(JobAccess::Public),
        "private" => Ok(JobAccess::Private),
        "sync" => Ok(JobAccess::Asked(CallKind::Sync)),
        "async" => Ok(JobAccess::Asked(CallKind::Async)),
        _ => Err(PayloadFault::payload("access is public, private, sync or async")),
    }
}

/// The entries of a recurring job's map, which come in any order.
#[derive(Default)]
struct Repeated {
    name: Option<String>,
    job: Option<String>,
    arguments: Option<bytes::Bytes>,
    every: Option<f64>,
    cron: Option<String>,
    timezone: Option<String>,
    missed: Missed,
    key: Option<String>,
}

impl Repeated {
    fn read(reader: &mut Reader) -> Result<Self, PayloadFault> {
        let mut said = Self::default();
        reader.map(|reader, key| {
            match key {
                "name" => said.name = Some(name(reader)?),
                "job" => said.job = Some(name(reader)?),
                "arguments" => said.arguments = Some(arguments(reader)?),
                "every" => said.every = reader.optional(|r| above_zero(r, "every is above 0"))?,
                "cron" => said.cron = reader.optional(|r| r.text("cron is text").map(str::to_owned))?,
                "timezone" => said.timezone = Some(reader.text("timezone is text")?.to_owned()),
                "missed" => said.missed = missed(reader)?,
                "key" => said.key = reader.optional(key_of_jobs)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(said)
    }

    fn recurring(self) -> Result<RecurringSpec, PayloadFault> {
        let when = match (self.every, self.cron) {
            (Some(seconds), None) => When::Every(seconds),
            (None, Some(fields)) => {
                When::Cron { fields, timezone: self.timezone.unwrap_or_else(|| TIMEZONE.to_owned()) }
            }
            (Some(_), Some(_)) | (None, None) => return Err(PayloadFault::payload("one of every and cron is there")),
        };
        Ok(RecurringSpec {
            name: self.name.ok_or(PayloadFault::payload("name is missing"))?,
            job: self.job.ok_or(PayloadFault::payload("job is missing"))?,
            arguments: self.arguments.ok_or(PayloadFault::payload("arguments is missing"))?,
            when,
            missed: self.missed,
            key: self.key,
        })
    }
}

fn missed(reader: &mut Reader) -> Result<Missed, PayloadFault> {
    Missed::of(reader.text("missed is text")?).ok_or(PayloadFault::payload("missed is once, skip or all"))
}

fn above_zero(reader: &mut Reader, why: &'static str) -> Result<f64, PayloadFault> {
    let value = reader.float(why)?;
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(PayloadFault::payload(why)) }
}

fn each_once<'a>(mut names: impl Iterator<Item = &'a str>, why: &'static str) -> Result<(), PayloadFault> {
    let mut seen = HashSet::new();
    if names.all(|name| seen.insert(name)) { Ok(()) } else { Err(PayloadFault::payload(why)) }
}

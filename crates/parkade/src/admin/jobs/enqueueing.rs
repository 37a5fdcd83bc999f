//! `POST /jobs`: a job that a script or the command line enqueues.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, StatusCode};
use parkade_jobs::JobState;
use parkade_model::{BadJobId, JobId};
use parkade_wire::limits::{ARGUMENTS_BYTES_MAX, JOB_NAME_BYTES_MAX, PRIORITY_MAX};
use parkade_wire::{EnqueueOptions, Enqueued};
use serde::Deserialize;

use super::{JobAnswer, JobAsk, asked, find, stands, unexpected};
use crate::admin::answers::{AdminAnswer, fault};
use crate::admin::body;
use crate::admin::door::AdminDoor;
use crate::admin::limits::{JOB_BODY_BYTES_MAX, SECONDS_MAX};
use crate::config::nearest;
use crate::job_id::minted;

/// The MessagePack of `[1, [], {}]`, which means no arguments in every language.
const NO_ARGUMENTS: [u8; 4] = [0x93, 0x01, 0x90, 0x80];

/// Times are seconds, the arguments MessagePack in Base64.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct EnqueueBody {
    id: Option<String>,
    name: String,
    arguments: Option<String>,
    delay: Option<f64>,
    at: Option<f64>,
    priority: Option<i64>,
    queue: Option<String>,
    key: Option<String>,
    /// Refuse a name that the application does not declare.
    #[serde(default)]
    known: bool,
}

#[derive(Debug, PartialEq)]
enum EnqueueRefused {
    Wrong(String),
    TooLarge,
}

/// Enqueues the job and answers with its id: 201, or 200 with the id of another job that has its key.
pub async fn answer<B>(request: Request<B>, door: &AdminDoor) -> Result<AdminAnswer, AdminAnswer>
where
    B: Body<Data = Bytes, Error: std::error::Error + Send + Sync + 'static>,
{
    let body = body::whole(request.into_body(), JOB_BODY_BYTES_MAX, &EnqueueRefused::TooLarge.text()).await?;
    let (job, known) = read(&body).map_err(|refused| fault(refused.status(), &refused.text()))?;
    let (id, name) = (job.id, job.name.clone());
    let ask = if known { JobAsk::EnqueueKnown } else { JobAsk::Enqueue };
    match asked(ask(Box::new(job)), door).await? {
        JobAnswer::Undeclared(declared) => Err(fault(StatusCode::NOT_FOUND, &undeclared(&name, declared))),
        JobAnswer::Enqueued { job, is_scheduled } if job == id => {
            Ok(stands(StatusCode::CREATED, job, if is_scheduled { JobState::Scheduled } else { JobState::Ready }))
        }
        JobAnswer::Enqueued { job: other, .. } => {
            // It may have ended, and be gone, since.
            let state = find(other, door).await?.map_or(JobState::Completed, |job| job.state);
            Ok(stands(StatusCode::OK, other, state))
        }
        answer => Err(unexpected(&answer)),
    }
}

impl EnqueueRefused {
    fn status(&self) -> StatusCode {
        match self {
            Self::Wrong(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        }
    }

    fn text(&self) -> String {
        match self {
            Self::Wrong(why) => why.clone(),
            Self::TooLarge => {
                format!("a job's arguments have at most {ARGUMENTS_BYTES_MAX} bytes; pass a reference to larger data")
            }
        }
    }
}

/// The job, if it is one that a worker might have enqueued.
fn read(body: &[u8]) -> Result<(Enqueued, bool), EnqueueRefused> {
    let wrong = |why: &str| EnqueueRefused::Wrong(why.to_owned());
    let asked: EnqueueBody =
        serde_json::from_slice(body).map_err(|error| EnqueueRefused::Wrong(format!("invalid job: {error}")))?;
    let id = asked.id.as_deref().map_or_else(|| Ok(JobId::new(minted())), str::parse);
    let id = id.map_err(|bad: BadJobId| wrong(&bad.to_string()))?;
    let name = short("a name", asked.name)?;
    if name.contains(|character: char| character.is_ascii_control()) {
        return Err(wrong("a name must not contain control characters"));
    }
    if asked.at.is_some() && asked.delay.is_some_and(|delay| delay > 0.0) {
        return Err(wrong("give either delay or at, not both"));
    }
    if asked.at.into_iter().chain(asked.delay).any(|seconds| !(0.0..=SECONDS_MAX).contains(&seconds)) {
        return Err(wrong("delay and at must be 0 or more seconds, and at most 1e15"));
    }
    let known = asked.known;
    let job = Enqueued {
        id,
        name,
        arguments: asked.arguments.map_or_else(|| Ok(Bytes::from_static(&NO_ARGUMENTS)), |text| arguments(&text))?,
        options: EnqueueOptions {
            delay: asked.delay.unwrap_or_default(),
            at: asked.at,
            priority: asked.priority.map(priority).transpose()?,
            queue: asked.queue.map(|queue| short("a queue", queue)).transpose()?,
            key: asked.key.map(|key| short("a key", key)).transpose()?,
            within: false,
        },
    };
    Ok((job, known))
}

/// What to write instead.
fn undeclared(name: &str, mut declared: Vec<String>) -> String {
    declared.sort();
    let advice = match declared.len() {
        0 => "it declares none".to_owned(),
        _ => nearest::advice(name, &declared),
    };
    format!("the application declares no job {name:?}; {advice}")
}

fn arguments(text: &str) -> Result<Bytes, EnqueueRefused> {
    let bytes =
        STANDARD.decode(text).map_err(|_| EnqueueRefused::Wrong("arguments must be MessagePack in Base64".into()))?;
    if bytes.len() > ARGUMENTS_BYTES_MAX { Err(EnqueueRefused::TooLarge) } else { Ok(bytes.into()) }
}

fn priority(priority: i64) -> Result<i16, EnqueueRefused> {
    let known = i16::try_from(priority).ok().filter(|priority| (-PRIORITY_MAX..=PRIORITY_MAX).contains(priority));
    known.ok_or_else(|| EnqueueRefused::Wrong(format!("priority must be between -{PRIORITY_MAX} and {PRIORITY_MAX}")))
}

fn short(what: &str, text: String) -> Result<String, EnqueueRefused> {
    if (1..=JOB_NAME_BYTES_MAX).contains(&text.len()) {
        return Ok(text);
    }
    Err(EnqueueRefused::Wrong(format!("{what} must have 1 to {JOB_NAME_BYTES_MAX} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0192f3a4-5b6c-7d8e-9f01-23456789abcd";

    fn job(body: &[u8]) -> Result<Enqueued, EnqueueRefused> {
        read(body).map(|(job, _)| job)
    }

    #[test]
    fn a_job_is_what_its_json_says() {
        let text = format!(
            r#"{{"id":"{ID}","name":"write_log","arguments":"kwGRoXiA","at":1.5,"priority":-1000,"queue":"mail","key":"x"}}"#
        );
        let expected = Enqueued {
            id: ID.parse::<JobId>().unwrap(),
            name: "write_log".into(),
            arguments: Bytes::from_static(b"\x93\x01\x91\xa1x\x80"),
            options: EnqueueOptions {
                delay: 0.0,
                at: Some(1.5),
                priority: Some(-1_000),
                queue: Some("mail".into()),
                key: Some("x".into()),
                within: false,
            },
        };
        assert_eq!(job(text.as_bytes()), Ok(expected));
    }

    #[test]
    fn a_name_alone_is_a_job_without_arguments_and_with_an_id_of_its_own() {
        let [one, other] = [(); 2].map(|()| job(br#"{"name":"x","delay":null}"#).unwrap());
        assert_eq!((&one.arguments[..], &one.options), (&NO_ARGUMENTS[..], &EnqueueOptions::default()));
        assert_ne!(one.id, other.id);
    }

    #[test]
    fn what_is_no_job_is_told_why() {
        let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(201));
        for (body, expected) in [
            ("", "invalid job: EOF while parsing a value at line 1 column 0"),
            ("{}", "invalid job: missing field `name` at line 1 column 2"),
            (r#"{"name":""}"#, "a name must have 1 to 200 bytes"),
            (&long, "a name must have 1 to 200 bytes"),
            (r#"{"name":"a\nb"}"#, "a name must not contain control characters"),
            (r#"{"name":"x","id":"7"}"#, "a job id is a UUID: 8-4-4-4-12 hexadecimal digits"),
            (r#"{"name":"x","arguments":"?"}"#, "arguments must be MessagePack in Base64"),
            (r#"{"name":"x","delay":1,"at":2}"#, "give either delay or at, not both"),
            (r#"{"name":"x","delay":-1}"#, "delay and at must be 0 or more seconds, and at most 1e15"),
            (r#"{"name":"x","at":1e30}"#, "delay and at must be 0 or more seconds, and at most 1e15"),
            (r#"{"name":"x","priority":1001}"#, "priority must be between -1000 and 1000"),
            (r#"{"name":"x","queue":""}"#, "a queue must have 1 to 200 bytes"),
            (r#"{"name":"x","key":""}"#, "a key must have 1 to 200 bytes"),
        ] {
            assert_eq!(job(body.as_bytes()), Err(EnqueueRefused::Wrong(expected.into())), "{body}");
        }
        let unknown = job(br#"{"name":"x","retries":3}"#).unwrap_err().text();
        assert!(unknown.contains("unknown field `retries`, expected one of `id`, `name`"), "{unknown}");
    }

    #[test]
    fn the_largest_arguments_fit_into_the_body_and_one_byte_more_does_not_go() {
        let of = |count: usize| format!(r#"{{"name":"x","arguments":"{}"}}"#, STANDARD.encode(vec![0; count]));
        let largest = of(ARGUMENTS_BYTES_MAX);
        assert!(largest.len() <= JOB_BODY_BYTES_MAX);
        assert_eq!(job(largest.as_bytes()).unwrap().arguments.len(), ARGUMENTS_BYTES_MAX);
        assert_eq!(job(of(ARGUMENTS_BYTES_MAX + 1).as_bytes()), Err(EnqueueRefused::TooLarge));
    }
}

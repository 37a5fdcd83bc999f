//! Jobs and answers as the scripts write them.

use std::fmt::Write;

use parkade_jobs::{Correlation, Fault, JobCounts, JobEnding, JobId, JobRecord, Reply, Wall};

/// A job's id is its name in the script, of at most sixteen letters.
pub fn id(name: &str) -> JobId {
    let mut bytes = [0; 16];
    bytes[..name.len()].copy_from_slice(name.as_bytes());
    JobId::from_bytes(bytes)
}

fn name(id: JobId) -> String {
    String::from_utf8_lossy(&id.bytes()).trim_end_matches('\0').to_owned()
}

pub fn reply(reply: &Reply) -> String {
    match reply {
        Reply::Enqueued { job, due, .. } => name(*job) + &moment(" due", *due),
        Reply::Claimed { jobs, more, next, .. } => {
            let mut words: Vec<String> = jobs
                .iter()
                .map(|claimed| {
                    let asked = format!("of {}", name(claimed.id));
                    assert!(asked.starts_with(&*String::from_utf8_lossy(&claimed.arguments)), "its own arguments");
                    format!("{}{}{}", name(claimed.id), claimed.attempt, correlation(&claimed.correlation))
                })
                .collect();
            words.extend(more.then(|| "more".to_owned()));
            words.extend(next.map(|next| format!("next={}", next.0)));
            if words.is_empty() { "none".to_owned() } else { words.join(" ") }
        }
        Reply::AttemptEnded { ended, is_stale, due, .. } => match ended {
            _ if *is_stale => "stale".to_owned(),
            Some(ended) => ending(&ended.ending),
            None => "goes-on".to_owned() + &moment(" due", *due),
        },
        Reply::Changed { changed, .. } => if *changed { "yes" } else { "no" }.to_owned(),
        // A store that several share asks the one that runs it.
        Reply::Asked { .. } => "no".to_owned(),
        Reply::Found { job, .. } => job.as_deref().map_or("none".to_owned(), found),
        Reply::Listed { jobs, .. } => {
            let names: Vec<String> = jobs.iter().map(|job| name(job.id)).collect();
            if names.is_empty() { "none".to_owned() } else { names.join(" ") }
        }
        Reply::Counted { counts, .. } => counted(counts),
        Reply::Schedules { schedules, .. } => {
            let words: Vec<String> =
                schedules.iter().map(|schedule| format!("{}@{}", schedule.name, schedule.last.0)).collect();
            if words.is_empty() { "none".to_owned() } else { words.join(" ") }
        }
        Reply::Refused { fault, .. } => match fault {
            Fault::Full(_) => "full",
            Fault::Unavailable(_) => "unavailable",
            Fault::QueueFull => "queue-full",
            Fault::Failed(_) => "failed",
        }
        .to_owned(),
    }
}

fn ending(ending: &JobEnding) -> String {
    match ending {
        JobEnding::Completed { result } => format!("completed {}", String::from_utf8_lossy(result)),
        JobEnding::Dead { error } => format!("dead {error}"),
        JobEnding::Cancelled => "cancelled".to_owned(),
    }
}

fn found(job: &JobRecord) -> String {
    let mut words = format!("{} {} {} attempt={}", job.state.word(), job.name, job.queue, job.attempt);
    assert_eq!(&*job.arguments, format!("of {}", name(job.id)).as_bytes());
    if job.priority != 0 {
        write!(words, " priority={}", job.priority).unwrap();
    }
    if let Some(key) = &job.key {
        write!(words, " key={key}").unwrap();
    }
    write!(words, " enqueued={}", job.enqueued.0).unwrap();
    words += &moment(" due", job.due);
    words += &moment(" started", job.started);
    words += &moment(" ended", job.ended);
    if let Some(result) = &job.result {
        write!(words, " result={}", String::from_utf8_lossy(result)).unwrap();
    }
    if let Some(error) = &job.error {
        write!(words, " error={error}").unwrap();
    }
    words + &correlation(&job.correlation)
}

fn correlation(correlation: &Correlation) -> String {
    let request = correlation.request_id().map_or(String::new(), |id| format!(" request={id}"));
    let trace = correlation.trace.map_or(String::new(), |trace| format!(" trace={}", trace.trace[15]));
    request + &trace
}

/// Those that are not 0.
fn counted(counts: &JobCounts) -> String {
    let states = [
        ("scheduled", counts.scheduled),
        ("ready", counts.ready),
        ("running", counts.running),
        ("completed", counts.completed),
        ("dead", counts.dead),
        ("cancelled", counts.cancelled),
        ("unknown", counts.unknown),
    ];
    let mut words: Vec<String> =
        states.iter().filter(|(_, count)| *count > 0).map(|(word, count)| format!("{word}={count}")).collect();
    words.extend(counts.oldest_ready.map(|oldest| format!("oldest={}", oldest.0)));
    words.extend(counts.queues.iter().map(|(queue, depth)| format!("{queue}:{depth}")));
    if words.is_empty() { "none".to_owned() } else { words.join(" ") }
}

fn moment(word: &str, at: Option<Wall>) -> String {
    at.map_or(String::new(), |at| format!("{word}={}", at.0))
}

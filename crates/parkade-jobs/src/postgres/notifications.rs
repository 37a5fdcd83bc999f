//! Notifications between servers. Each payload begins with an instance.

use crate::JobId;
use crate::cluster::InstanceId;

pub const CHANNELS: [&str; 3] = ["parkade_jobs", "parkade_job_ended", "parkade_job_cancel"];

#[derive(Debug, PartialEq, Eq)]
pub struct Notification {
    /// The sender; for `Cancel`, the receiver.
    pub instance: Option<InstanceId>,
    pub about: Notice,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Notice {
    /// There are jobs to claim.
    Ready,
    /// An attempt that counted against the limit of its queue has ended.
    Vacated,
    /// These jobs have ended, or were dropped.
    Ended(Vec<JobId>),
    /// These jobs run at that instance and have to be cancelled.
    Cancel(Vec<JobId>),
}

pub fn read(channel: &str, payload: &str) -> Notification {
    let mut words = payload.split(' ');
    let instance = words.next().and_then(|word| word.parse::<JobId>().ok()).map(|id| InstanceId(id.number()));
    let about = match channel {
        "parkade_jobs" if words.next() == Some("vacated") => Notice::Vacated,
        "parkade_jobs" => Notice::Ready,
        "parkade_job_cancel" => Notice::Cancel(jobs(words)),
        _ => Notice::Ended(jobs(words)),
    };
    Notification { instance, about }
}

fn jobs<'a>(words: impl Iterator<Item = &'a str>) -> Vec<JobId> {
    words.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_names_an_instance_and_what_it_is_about() {
        let id = |number: u128| JobId::new(number).to_string();
        let from = |about| Notification { instance: Some(InstanceId(7)), about };
        assert_eq!(read("parkade_jobs", &id(7)), from(Notice::Ready));
        assert_eq!(read("parkade_jobs", &format!("{} vacated", id(7))), from(Notice::Vacated));
        let both = format!("{} {} {}", id(7), id(1), id(2));
        assert_eq!(read("parkade_job_ended", &both), from(Notice::Ended(vec![JobId::new(1), JobId::new(2)])));
        assert_eq!(read("parkade_job_cancel", &both), from(Notice::Cancel(vec![JobId::new(1), JobId::new(2)])));
        assert_eq!(read("parkade_jobs", "test"), Notification { instance: None, about: Notice::Ready });
    }
}

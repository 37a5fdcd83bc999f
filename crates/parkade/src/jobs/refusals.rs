//! What the log says about commands that the store refuses, and when it carries them out again.

use std::mem::{Discriminant, discriminant};

use parkade_core::Moment;
use parkade_jobs::{Fault, Reply};

use super::questions::Question;
use crate::log::LineThrottle;

#[derive(Debug, Default)]
pub struct Refusals {
    throttle: LineThrottle,
    /// Kinds of commands that were refused since the outage was logged; empty: there is none. A full store refuses new
    /// jobs while it carries out everything else, so only a command of these kinds shows that the outage is over.
    refused: Vec<Discriminant<Question>>,
}

/// What is to be logged.
#[derive(Debug, PartialEq, Eq)]
enum RefusalNews<'a> {
    /// So many commands were refused since the last line.
    Refuses(u64, &'a Fault),
    Recovered,
}

impl Refusals {
    /// Logs what the reply says about the store, unless that is known.
    pub fn hear(&mut self, question: &Question, reply: &Reply, now: Moment) {
        match self.news(question, reply, now) {
            Some(RefusalNews::Refuses(count, fault)) => tracing::error!(
                count,
                "the job store cannot carry out commands; requests that enqueue get 503 or 507 until it can: {fault}"
            ),
            Some(RefusalNews::Recovered) => tracing::info!("the job store carries out commands again"),
            None => {}
        }
    }

    fn news<'a>(&mut self, question: &Question, reply: &'a Reply, now: Moment) -> Option<RefusalNews<'a>> {
        let kind = discriminant(question);
        let is_known = self.refused.contains(&kind);
        let Reply::Refused { fault, .. } = reply else {
            return is_known.then(|| {
                self.refused.clear();
                RefusalNews::Recovered
            });
        };
        self.throttle.note();
        let count = self.throttle.take(now);
        // An outage that was too short for a line has no end in the log either.
        if !is_known && (count.is_some() || !self.refused.is_empty()) {
            self.refused.push(kind);
        }
        count.map(|count| RefusalNews::Refuses(count, fault))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use parkade_jobs::Tag;

    use super::*;

    const TAG: Tag = Tag(1);

    /// `question millis` is refused then, `question+ millis` is carried out.
    fn check(replies: &str, lines: &str) {
        let fault = Fault::QueueFull;
        let mut refusals = Refusals::default();
        let mut logged = Vec::new();
        for (word, millis) in replies.split(", ").filter_map(|reply| reply.split_once(' ')) {
            let question = if word.starts_with("count") { Question::Count } else { Question::Claim };
            let reply = match word.strip_suffix('+') {
                Some(_) => Reply::Changed { tag: TAG, changed: true },
                None => Reply::Refused { tag: TAG, fault: fault.clone() },
            };
            let now = Moment::default() + Duration::from_millis(millis.parse().expect("it is a number"));
            match refusals.news(&question, &reply, now) {
                Some(RefusalNews::Refuses(count, _)) => logged.push(format!("{count} refused")),
                Some(RefusalNews::Recovered) => logged.push("again".into()),
                None => {}
            }
        }
        assert_eq!(logged.join(", "), lines, "{replies}");
    }

    #[test]
    fn an_outage_that_was_logged_has_its_end_in_the_log() {
        check("claim 0, claim 1, claim+ 2, claim+ 3", "1 refused, again");
        check("claim+ 0, count+ 1", "");
        check("claim 0, count 1, count+ 2, claim+ 3", "1 refused, again");
    }

    #[test]
    fn what_was_never_refused_does_not_end_an_outage() {
        check("claim 0, count+ 1, count+ 2000", "1 refused");
    }

    #[test]
    fn a_store_that_comes_and_goes_writes_a_line_of_each_a_second() {
        check(
            "claim 0, claim+ 1, claim 2, claim+ 3, claim 4, claim+ 5, claim 1000, claim+ 1001",
            "1 refused, again, 3 refused, again",
        );
    }
}

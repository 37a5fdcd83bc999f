//! Reloads, their outcomes, and the operators who wait for them.
//!
//! The core carries them out one after the other. If a reload is requested during another one, one more follows, because
//! the code may have changed since the current one began. Further requests in the meantime wait for that one.

use std::collections::VecDeque;

use parkade_core::ReloadOutcome;
use tokio::sync::oneshot;

use super::limits::{RELOAD_ERROR_BYTES_MAX, RELOADS_KEPT_MAX};
use crate::admin::{ReloadEnd, ReloadId};

#[derive(Debug)]
pub struct Reloads {
    /// All applications are reloaded together.
    apps_count: usize,
    /// How many of them have ended the reload that is running, and how the worst of these ended.
    apps_ended: usize,
    worst: ReloadOutcome,
    /// The latest one that was requested; the first is 1.
    newest: u64,
    running: Option<u64>,
    failure: Option<LoadFailure>,
    /// Where the applications are mounted that have not loaded, if there are several.
    not_reloaded: Vec<String>,
    ended: VecDeque<(u64, ReloadEnd)>,
    waiting: Vec<(u64, oneshot::Sender<Option<ReloadEnd>>)>,
}

/// Why new code did not load, as far as is known.
#[derive(Debug)]
enum LoadFailure {
    /// The worker's message: a traceback.
    Said(String),
    /// It is gone without a message.
    Died(String),
}

impl Reloads {
    pub fn new(apps_count: usize) -> Self {
        Self {
            apps_count,
            apps_ended: 0,
            worst: ReloadOutcome::Done,
            newest: 0,
            running: None,
            failure: None,
            not_reloaded: Vec::new(),
            ended: VecDeque::new(),
            waiting: Vec::new(),
        }
    }

    /// Another one is requested.
    pub fn request(&mut self) -> ReloadId {
        match self.running {
            None => {
                self.newest += 1;
                self.running = Some(self.newest);
            }
            Some(running) if running == self.newest => self.newest += 1,
            Some(_) => {}
        }
        ReloadId(self.newest)
    }

    /// A worker cannot load the code.
    pub fn note_error(&mut self, text: &str) {
        if self.running.is_some() {
            self.failure = Some(LoadFailure::Said(shortened(text.trim_end())));
        }
    }

    /// A worker is gone. It may be an old one that had nothing to do with the reload, so this never replaces a worker's
    /// message.
    pub fn note_death(&mut self, how: &str) {
        if self.running.is_some() && !matches!(self.failure, Some(LoadFailure::Said(_))) {
            self.failure = Some(LoadFailure::Died(shortened(how)));
        }
    }

    /// One application, which is mounted there if it is one of several, has ended it. It is over when all have.
    pub fn end(&mut self, mount: Option<&str>, outcome: ReloadOutcome, generation: u32) {
        if outcome == ReloadOutcome::GivenUp {
            self.not_reloaded.extend(mount.map(str::to_owned));
        }
        self.apps_ended += 1;
        self.worst = self.worst.max(outcome);
        if self.apps_ended >= self.apps_count {
            let worst = std::mem::replace(&mut self.worst, ReloadOutcome::Done);
            self.apps_ended = 0;
            self.end_all(worst, generation);
        }
    }

    fn end_all(&mut self, outcome: ReloadOutcome, generation: u32) {
        let Some(reload) = self.running.take() else { return };
        let (failure, not_reloaded) = (self.failure.take(), std::mem::take(&mut self.not_reloaded));
        let end = match (outcome, failure) {
            (ReloadOutcome::Done, _) => ReloadEnd::Done { generation },
            (ReloadOutcome::GivenUp, Some(LoadFailure::Said(why) | LoadFailure::Died(why))) => {
                ReloadEnd::Aborted { why, not_reloaded }
            }
            (ReloadOutcome::GivenUp, None) => ReloadEnd::Aborted { why: "the log says why".into(), not_reloaded },
        };
        if self.ended.len() == RELOADS_KEPT_MAX {
            self.ended.pop_front();
        }
        for (_, waiting) in self.waiting.extract_if(.., |(awaited, _)| *awaited == reload) {
            // The client that waited may be gone.
            let _ = waiting.send(Some(end.clone()));
        }
        self.ended.push_back((reload, end));
        self.running = (self.newest > reload).then_some(self.newest);
    }

    /// The server stops, and the new code is not needed any more.
    pub fn stop(&mut self) {
        while self.running.is_some() {
            self.note_error("the server is stopping");
            self.end_all(ReloadOutcome::GivenUp, 0);
        }
    }

    /// Reports how a reload ended, as soon as it has; nothing if it is not known, or not any more.
    pub fn tell_end(&mut self, ReloadId(reload): ReloadId, tell: oneshot::Sender<Option<ReloadEnd>>) {
        self.waiting.retain(|(_, waiting)| !waiting.is_closed());
        if self.running.is_some_and(|running| (running..=self.newest).contains(&reload)) {
            self.waiting.push((reload, tell));
        } else {
            let _ = tell.send(self.ended.iter().find(|(ended, _)| *ended == reload).map(|(_, end)| end.clone()));
        }
    }

    pub fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Why the last one was aborted, unless it succeeded.
    pub fn last_error(&self) -> Option<&str> {
        match self.ended.back()? {
            (_, ReloadEnd::Aborted { why, .. }) => Some(why),
            (_, ReloadEnd::Done { .. }) => None,
        }
    }
}

/// The end of a traceback says what is wrong.
fn shortened(text: &str) -> String {
    let mut from = text.len().saturating_sub(RELOAD_ERROR_BYTES_MAX);
    while !text.is_char_boundary(from) {
        from += 1;
    }
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end_of(reloads: &mut Reloads, reload: ReloadId) -> Result<Option<ReloadEnd>, oneshot::error::TryRecvError> {
        let (tell, mut told) = oneshot::channel();
        reloads.tell_end(reload, tell);
        told.try_recv()
    }

    #[test]
    fn a_request_during_a_reload_waits_for_the_next_one() {
        let mut reloads = Reloads::new(1);
        let first = reloads.request();
        let (second, third) = (reloads.request(), reloads.request());
        assert_eq!((first, second, third), (ReloadId(1), ReloadId(2), ReloadId(2)));
        let (tell, mut told) = oneshot::channel();
        reloads.tell_end(second, tell);
        reloads.end(None, ReloadOutcome::Done, 2);
        assert!(told.try_recv().is_err(), "the second has only begun");
        assert_eq!(end_of(&mut reloads, first), Ok(Some(ReloadEnd::Done { generation: 2 })));
        reloads.end(None, ReloadOutcome::Done, 3);
        assert_eq!(told.try_recv(), Ok(Some(ReloadEnd::Done { generation: 3 })));
        assert_eq!(reloads.request(), ReloadId(3));
    }

    #[test]
    fn one_of_several_applications_is_over_when_all_are_and_the_worst_counts() {
        let mut reloads = Reloads::new(2);
        let reload = reloads.request();
        reloads.note_error("SyntaxError");
        reloads.end(Some("/old"), ReloadOutcome::GivenUp, 1);
        assert!(reloads.is_running());
        reloads.end(Some("/new"), ReloadOutcome::Done, 2);
        let ended = ReloadEnd::Aborted { why: "SyntaxError".into(), not_reloaded: vec!["/old".into()] };
        assert_eq!(end_of(&mut reloads, reload), Ok(Some(ended)));
        let reload = reloads.request();
        reloads.end(None, ReloadOutcome::Done, 2);
        reloads.end(None, ReloadOutcome::Done, 3);
        assert_eq!(end_of(&mut reloads, reload), Ok(Some(ReloadEnd::Done { generation: 3 })));
    }

    #[test]
    fn the_message_of_a_worker_counts_more_than_the_death_of_one() {
        let mut reloads = Reloads::new(1);
        let reload = reloads.request();
        reloads.note_death("signal 9");
        reloads.note_error("Traceback\nSyntaxError\n");
        reloads.note_death("exit status 1");
        reloads.end(None, ReloadOutcome::GivenUp, 1);
        let why = "Traceback\nSyntaxError".to_owned();
        assert_eq!(reloads.last_error(), Some(&*why));
        assert_eq!(end_of(&mut reloads, reload), Ok(Some(ReloadEnd::Aborted { why, not_reloaded: Vec::new() })));
    }

    #[test]
    fn a_stop_ends_every_reload() {
        let mut reloads = Reloads::new(1);
        let (first, second) = (reloads.request(), reloads.request());
        reloads.stop();
        for reload in [first, second] {
            let why = "the server is stopping".into();
            assert_eq!(end_of(&mut reloads, reload), Ok(Some(ReloadEnd::Aborted { why, not_reloaded: Vec::new() })));
        }
    }

    #[test]
    fn nothing_is_known_of_reloads_that_are_not_kept() {
        let mut reloads = Reloads::new(1);
        reloads.note_error("a first start that fails is no reload");
        assert_eq!(end_of(&mut reloads, ReloadId(1)), Ok(None));
        for _ in 0..=RELOADS_KEPT_MAX {
            reloads.request();
            reloads.end(None, ReloadOutcome::Done, 2);
        }
        assert_eq!(end_of(&mut reloads, ReloadId(1)), Ok(None), "only the latest are kept");
        assert!(end_of(&mut reloads, ReloadId(2)).unwrap().is_some());
        assert_eq!(reloads.last_error(), None);
    }

    #[test]
    fn the_end_of_a_long_text_is_kept() {
        let text = format!("é{}{}", "x".repeat(RELOAD_ERROR_BYTES_MAX - 1), "é");
        let short = shortened(&text);
        assert!(short.len() <= RELOAD_ERROR_BYTES_MAX && short.ends_with('é'));
    }
}

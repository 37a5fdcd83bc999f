//! Runs that have ended, until the store has recorded how. If it fails to, it is asked again: a job whose end is not recorded would be taken
//! for running until the next start.

use std::collections::BTreeMap;

use super::cancels::Next;
use crate::context::Context;
use crate::effect::{Effect, StoreEffect};
use crate::limits::NOTE_PAUSE;
use crate::moment::Moment;
use parkade_model::{JobId, RequestId, Verdict};

#[derive(Debug, Default)]
pub struct RunEnds {
    runs: BTreeMap<RequestId, RunEnd>,
    /// When the first of the refused ones are sent again.
    due: Option<Moment>,
}

#[derive(Debug)]
struct RunEnd {
    job: JobId,
    next: Next,
    /// The store could not note it: when it is asked again.
    again_at: Option<Moment>,
}

impl RunEnds {
    pub fn next_due(&self) -> Option<Moment> {
        self.due
    }

    pub fn count(&self) -> usize {
        self.runs.len()
    }

    pub fn begin(&mut self, cx: &mut Context, request: RequestId, job: JobId, verdict: Verdict) {
        let next = match verdict {
            Verdict::Cancelled => Next::Cancelled,
            Verdict::Completed | Verdict::Dead { .. } => Next::Nothing,
            Verdict::Retry { .. } | Verdict::HandedBack | Verdict::Unknown => Next::Waits,
        };
        self.runs.insert(request, RunEnd { job, next, again_at: None });
        cx.effects.push(Effect::Store(StoreEffect::EndRun { request, verdict }));
    }

    pub fn noted(&mut self, request: RequestId) -> Option<(JobId, Next)> {
        self.runs.remove(&request).map(|end| (end.job, end.next))
    }

    pub fn not_noted(&mut self, cx: &mut Context, request: RequestId) {
        let Some(end) = self.runs.get_mut(&request) else { return };
        let again_at = cx.now + NOTE_PAUSE;
        end.again_at = Some(again_at);
        self.due.get_or_insert(again_at);
    }

    /// Says again what has waited long enough.
    pub fn look(&mut self, cx: &mut Context) {
        if self.due.is_none_or(|due| due > cx.now) {
            return;
        }
        let now = cx.now;
        for (request, end) in self.runs.iter_mut().filter(|(_, end)| end.again_at.is_some_and(|at| at <= now)) {
            end.again_at = None;
            cx.effects.push(Effect::Store(StoreEffect::NoteAgain { request: *request }));
        }
        self.due = self.runs.values().filter_map(|end| end.again_at).min();
    }

    /// What the store has yet to note of that job. It may have noted it and refused all the same, so it is never told anything else.
    pub fn next_of(&self, job: JobId) -> Option<Next> {
        self.runs.values().find(|end| end.job == job).map(|end| end.next)
    }
}

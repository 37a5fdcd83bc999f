//! Requests that wait for a job to end, or want to know how it stands.
//!
//! A request is registered first, then the store is asked for the state of the job. So an end between the two is not missed. It is reported to a client
//! when the store has answered.

use std::time::Duration;

use super::visitors::Visitors;
use super::watchers::{Cancelling, JobQuestion, Wants, Watchers};
use crate::context::Context;
use crate::effect::{Effect, HttpEffect, Outcome, StoreEffect};
use crate::refused::Refused;
use crate::structures::ref_counts::RefCounts;
use crate::woken::Woken;
use parkade_model::{ChannelName, Cursor, Errand, JobCaller, JobId, JobLookup, Refusal, RequestId, Then};

#[derive(Debug, Default)]
pub struct JobWaits {
    watchers: Watchers,
    visitors: Visitors,
    /// How jobs ended, as long as somebody has yet to learn it, and how many requests need each.
    results: RefCounts<JobId>,
}

/// A request that is to wait for a job.
#[derive(Debug, Clone, Copy)]
pub struct NewJobWait {
    pub request: RequestId,
    pub then: Then,
    /// How long it may take the store to say how the job stands.
    pub patience: Option<Duration>,
    /// Until the job has ended. Otherwise the request only learns how it stands: the server stops.
    pub waits: bool,
}

/// What becomes of a request about which the application was asked.
#[derive(Debug, Clone, Copy)]
pub enum Granted {
    /// How long it waits, if there is a limit.
    Waits(Option<Duration>),
    /// It may not have the job.
    Over(Outcome),
}

/// What follows from how a job stands.
#[derive(Debug, Clone, Copy)]
pub enum Found {
    Woken(Woken),
    /// The request may end the job, and wants that.
    Ends {
        request: RequestId,
        job: JobId,
    },
}

impl JobWaits {
    /// Returns how long the request waits, if anything bounds that.
    pub fn begin(
        &mut self,
        cx: &mut Context,
        new: NewJobWait,
        (job, asker): (JobId, JobCaller),
        timeout: Option<Duration>,
    ) -> Option<Duration> {
        if timeout == Some(Duration::ZERO) {
            self.watch(cx, new, JobQuestion { job, asker }, Wants::Standing);
            return new.patience;
        }
        let wants = if new.waits { Wants::End } else { Wants::Standing };
        self.watch(cx, new, JobQuestion { job, asker }, wants);
        timeout
    }

    /// At an address where clients find jobs.
    pub fn visit(&mut self, cx: &mut Context, new: NewJobWait, job: JobId, errand: Errand) -> Option<Duration> {
        self.visitors.add(new.request, job, errand.clone());
        self.begin_errand(cx, new, (job, JobCaller::Visitor), errand)
    }

    /// The application has said whether the client may have what it came for. It means the request that the worker was asked about, and the job
    /// that this one came for. `Err`: it was asked about no such thing.
    pub fn begin_granted(&mut self, cx: &mut Context, new: NewJobWait, granted: bool) -> Result<Granted, Refusal> {
        let Some((job, errand)) = self.visitors.answered(new.request).filter(|_| new.then == Then::Answer) else {
            return Err(Refusal::BadAnswer);
        };
        if granted {
            return Ok(Granted::Waits(self.begin_errand(cx, new, (job, JobCaller::Guest), errand)));
        }
        Ok(Granted::Over(Outcome::Job { job, standing: JobLookup::Missing }))
    }

    fn begin_errand(
        &mut self,
        cx: &mut Context,
        new: NewJobWait,
        (job, asker): (JobId, JobCaller),
        errand: Errand,
    ) -> Option<Duration> {
        match errand {
            Errand::Result { timeout } => self.begin(cx, new, (job, asker), timeout),
            // A client that follows a job which does not exist learns that, instead of waiting for ever.
            Errand::Events { channel, since } => {
                self.watch(cx, new, JobQuestion { job, asker }, Wants::Stream { channel, since });
                new.patience
            }
            Errand::Cancel => {
                self.watch(cx, new, JobQuestion { job, asker }, Wants::Cancel(Cancelling::Wanted));
                new.patience
            }
        }
    }

    fn watch(&mut self, cx: &mut Context, new: NewJobWait, asked: JobQuestion, wants: Wants) {
        self.watchers.add(new.request, asked, wants, new.then == Then::Answer);
        self.look_up(cx, new.request, asked);
    }

    fn look_up(&mut self, cx: &mut Context, request: RequestId, asked: JobQuestion) {
        if self.watchers.look_up(request, asked) {
            let JobQuestion { job, asker } = asked;
            cx.effects.push(Effect::Store(StoreEffect::LookUpJob { request, job, asker }));
        }
    }

    // The store answers.

    /// How the job stands.
    pub fn found(&mut self, cx: &mut Context, request: RequestId, standing: JobLookup) -> Option<Found> {
        let asked = self.looked_up(cx, request)?;
        if standing == JobLookup::Ended {
            self.results.hold(asked.job);
            self.results.release(asked.job);
        }
        let still_waits = standing == JobLookup::Pending && self.watchers.asked(request) == Some(asked);
        if still_waits && self.watchers.take_end(request) {
            // The store was asked before it had that.
            self.look_up(cx, request, asked);
            return None;
        }
        self.visitors.let_in(request);
        if still_waits && self.watchers.cancelling(request) == Some(Cancelling::Wanted) {
            self.watchers.begin_cancelling(request);
            return Some(Found::Ends { request, job: asked.job });
        }
        if still_waits && !self.watchers.is_in_a_hurry(request) {
            return None;
        }
        self.tell(cx, request, asked, Outcome::Job { job: asked.job, standing }).map(Found::Woken)
    }

    /// It is known whether the job will end that the request wants to end (`None`: the store cannot say). What its client is told is how the job
    /// stands then.
    pub fn cancel_decided(&mut self, cx: &mut Context, request: RequestId, will_end: Option<bool>) -> Option<Woken> {
        let asked = self.watchers.end_cancelling(request, will_end.unwrap_or(false))?;
        if will_end.is_some() {
            self.look_up(cx, request, asked);
            return None;
        }
        Some(Woken { request, outcome: Outcome::Refused { refusal: Refusal::StoreUnreadable } })
    }

    /// Reports the state of a job to the client whose request wanted to end it. Returns whether the request wanted that.
    pub fn answer_cancel(&self, cx: &mut Context, request: RequestId, job: JobId, standing: JobLookup) -> bool {
        let Some(cancelling) = self.watchers.cancelling(request) else { return false };
        let will_end = cancelling == Cancelling::Known { will_end: true };
        cx.effects.push(Effect::Http(HttpEffect::AnswerCancel { request, job, standing, will_end }));
        true
    }

    /// It could not say.
    pub fn not_found(&mut self, cx: &mut Context, request: RequestId) -> Option<Woken> {
        let asked = self.looked_up(cx, request)?;
        self.tell(cx, request, asked, Outcome::Refused { refusal: Refusal::StoreUnreadable })
    }

    /// It knows the job, and the application says who may have it. Returns whether the application is to be asked.
    pub fn guarded(&mut self, cx: &mut Context, request: RequestId) -> bool {
        let Some(asked) = self.looked_up(cx, request) else { return false };
        match self.watchers.asked(request) {
            Some(asks) if asks != asked => self.look_up(cx, request, asks),
            Some(_) if asked.asker == JobCaller::Visitor => return true,
            Some(_) => cx.counts.refused_events.add(Refused::OutOfTurn),
            // It has ended meanwhile.
            None => {}
        }
        false
    }

    fn looked_up(&mut self, cx: &mut Context, request: RequestId) -> Option<JobQuestion> {
        let asked = self.watchers.looked_up(request);
        if asked.is_none() {
            cx.counts.refused_events.add(Refused::Unknown);
        }
        asked
    }

    fn tell(&mut self, cx: &mut Context, request: RequestId, asked: JobQuestion, outcome: Outcome) -> Option<Woken> {
        match self.watchers.asked(request) {
            Some(asks) if asks == asked => return Some(Woken { request, outcome }),
            // It waits for another one meanwhile.
            Some(asks) => self.look_up(cx, request, asks),
            None => {}
        }
        None
    }

    // Jobs end, and so does the server.

    /// Everybody who waited for it goes on. A client does when the store has said that there is such a job for it: the application may not want
    /// clients to know.
    pub fn ended(&mut self, job: JobId) -> Vec<Woken> {
        self.results.hold(job);
        self.results.release(job);
        let outcome = Outcome::Job { job, standing: JobLookup::Ended };
        let mut woken = Vec::new();
        for request in self.watchers.of(job) {
            if self.watchers.is_client_asking(request) {
                self.watchers.note_end(request);
            } else {
                woken.push(Woken { request, outcome });
            }
        }
        woken
    }

    /// It will never end.
    pub fn dropped(&self, job: JobId) -> Vec<Woken> {
        let outcome = Outcome::Job { job, standing: JobLookup::Missing };
        self.watchers.of(job).into_iter().map(|request| Woken { request, outcome }).collect()
    }

    /// The server stops: everybody who waits has to ask for the result again. Clients learn that as soon as the store has confirmed the job.
    pub fn drain(&mut self) -> Vec<Woken> {
        let mut woken = Vec::new();
        for (request, job) in self.watchers.all() {
            if self.watchers.is_client_asking(request) {
                self.watchers.hurry(request);
            } else {
                woken.push(Woken { request, outcome: Outcome::Job { job, standing: JobLookup::Pending } });
            }
        }
        woken
    }

    /// The time is up. A client learns nothing about a job that the store has not confirmed.
    pub fn expire(&self, request: RequestId) -> Option<Outcome> {
        let job = self.watchers.job_of(request)?;
        if self.watchers.is_client_asking(request) {
            return Some(Outcome::Refused { refusal: Refusal::StoreUnreadable });
        }
        Some(Outcome::Job { job, standing: JobLookup::Pending })
    }

    /// Where the request follows the job, if there is one: on this channel, from this cursor on.
    pub fn followed(&self, request: RequestId, standing: JobLookup) -> Option<(ChannelName, Option<Cursor>)> {
        match standing {
            JobLookup::Ended | JobLookup::Pending => self.watchers.stream_of(request),
            JobLookup::Missing => None,
        }
    }

    /// The request waits no more.
    pub fn leave(&mut self, request: RequestId) {
        self.watchers.remove(request);
    }

    /// The application is asked from now on whether the request may have the job.
    pub fn ask(&mut self, request: RequestId) {
        self.visitors.ask(request);
    }

    /// The request has ended, or begins again.
    pub fn forget(&mut self, request: RequestId) {
        self.visitors.remove(request);
    }

    // Results.

    pub fn hold_result(&mut self, job: JobId) {
        self.results.hold(job);
    }

    pub fn release_result(&mut self, job: JobId) {
        self.results.release(job);
    }

    /// Whether somebody has yet to learn how the job ended.
    pub fn is_result_held(&self, job: JobId) -> bool {
        self.results.is_held(job)
    }

    /// At the end of an event: forgets the outcomes of jobs that nobody needs any more.
    pub fn drop_results(&mut self, cx: &mut Context) {
        let effects = &mut cx.effects;
        self.results.drop_unheld(|job| effects.push(Effect::Store(StoreEffect::DropJobResult { job })));
    }

    // What can be seen.

    /// Whether somebody waits for the job.
    pub fn is_watched(&self, job: JobId) -> bool {
        self.watchers.are_there(job)
    }

    /// The job that a request waits for.
    pub fn awaited_by(&self, request: RequestId) -> Option<JobId> {
        self.watchers.job_of(request)
    }

    pub fn watchers_count(&self) -> usize {
        self.watchers.count()
    }

    pub fn looked_up_count(&self) -> usize {
        self.watchers.looked_up_count()
    }

    pub fn visitors_count(&self) -> usize {
        self.visitors.count()
    }

    pub fn results_count(&self) -> usize {
        self.results.count()
    }
}

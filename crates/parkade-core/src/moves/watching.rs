//! Waiting for a job to end.
//!
//! Who waits is put down first, then the store is asked how it stands: an end that falls between the two is told all the same, to a client
//! when the store has answered.

use std::time::Duration;

use crate::core::Core;
use crate::effect::{Effect, Outcome, StoreEffect};
use crate::jobs::{Asked, Wants};
use crate::life::machine::Happening;
use crate::life::{Bell, Life, Parked, Refused, Sequel, Watch};
use crate::moves::parking::Parking;
use parkade_model::{ChannelName, Cursor, JobCaller, JobId, JobLookup, Refusal, RequestId};

impl Core {
    pub(crate) fn park_job(
        &mut self,
        parking: Parking,
        job: JobId,
        asker: JobCaller,
        timeout: Option<Duration>,
    ) -> Life {
        if timeout.is_some_and(|timeout| timeout.is_zero()) {
            return self.park_asking(parking, job, asker, Wants::Standing);
        }
        let request = parking.request;
        // A server that stops does not wait for it either; how it stands is told all the same.
        let wants = if self.staff.is_open() { Wants::End } else { Wants::Standing };
        self.look_up_for(request, Asked { job, asker }, wants);
        let alarm = timeout.map(|timeout| self.cx.timers.set(self.cx.now + timeout, Bell::Life(request)));
        Life::Parked(parking.park(Watch::Job, alarm))
    }

    /// Whoever follows a job that there is not is told so, instead of nothing for ever.
    pub(crate) fn park_follow(
        &mut self,
        parking: Parking,
        job: JobId,
        asker: JobCaller,
        channel: ChannelName,
        since: Option<Cursor>,
    ) -> Life {
        self.park_asking(parking, job, asker, Wants::Stream { channel, since })
    }

    /// It waits for the store alone, and for that no longer than for anything else that takes its time.
    fn park_asking(&mut self, mut parking: Parking, job: JobId, asker: JobCaller, wants: Wants) -> Life {
        let request = parking.request;
        self.look_up_for(request, Asked { job, asker }, wants);
        self.start_spell(request, &mut parking.journey);
        let alarm = parking.journey.alarm;
        Life::Parked(parking.park(Watch::Job, alarm))
    }

    /// There is such a job.
    pub(crate) fn follow_job(&mut self, request: RequestId, life: Parked) -> Life {
        let stream = self.jobs.watchers.stream_of(request);
        self.unwatch(request, &life);
        let (mut journey, sequel) = life.wake(self.cx.now);
        self.silence(&mut journey);
        let (channel, since) = stream.expect("who follows a job has a channel to be told on");
        self.park_stream(Parking { request, journey, sequel }, &channel, since)
    }

    fn look_up_for(&mut self, request: RequestId, asked: Asked, wants: Wants) {
        self.jobs.watchers.add(request, asked, wants);
        self.look_up(request, asked);
    }

    pub(crate) fn look_up(&mut self, request: RequestId, asked: Asked) {
        if self.jobs.watchers.look_up(request, asked) {
            let Asked { job, asker } = asked;
            self.cx.effects.push(Effect::Store(StoreEffect::LookUpJob { request, job, asker }));
        }
    }

    /// The store has said how it stands.
    pub(crate) fn job_found(&mut self, request: RequestId, standing: JobLookup) {
        let Some(asked) = self.jobs.watchers.looked_up(request) else {
            return self.cx.counts.refused_events.add(Refused::Unknown);
        };
        if standing == JobLookup::Ended {
            self.jobs.results.hold(asked.job);
            self.jobs.results.release(asked.job);
        }
        if standing == JobLookup::Pending && self.waits_for(request, asked) && self.jobs.watchers.take_end(request) {
            // The store was asked before it had that.
            return self.look_up(request, asked);
        }
        self.jobs.visitors.let_in(request);
        if standing == JobLookup::Pending
            && !self.jobs.watchers.is_in_a_hurry(request)
            && self.waits_for(request, asked)
        {
            return;
        }
        self.tell_standing(request, asked, Outcome::Job { job: asked.job, standing });
    }

    /// The store could not say it.
    pub(crate) fn job_not_looked_up(&mut self, request: RequestId) {
        match self.jobs.watchers.looked_up(request) {
            Some(asked) => {
                self.tell_standing(request, asked, Outcome::Refused { refusal: Refusal::StoreUnreadable });
            }
            None => self.cx.counts.refused_events.add(Refused::Unknown),
        }
    }

    fn tell_standing(&mut self, request: RequestId, asked: Asked, outcome: Outcome) {
        match self.jobs.watchers.asked(request) {
            Some(asks) if asks == asked => self.turn(request, Happening::Woken(outcome)),
            // It waits for another one meanwhile.
            Some(asks) => self.look_up(request, asks),
            None => {}
        }
    }

    fn waits_for(&self, request: RequestId, asked: Asked) -> bool {
        self.jobs.watchers.asked(request) == Some(asked)
    }

    /// Everybody who waited for it goes on. A client does when the store has said that there is such a job for it: the application may not want
    /// clients to know.
    pub(crate) fn job_ended(&mut self, job: JobId) {
        self.jobs.results.hold(job);
        self.jobs.results.release(job);
        for request in self.jobs.watchers.of(job) {
            if self.is_client_asking(request) {
                self.jobs.watchers.note_end(request);
            } else {
                self.turn(request, Happening::Woken(Outcome::Job { job, standing: JobLookup::Ended }));
            }
        }
    }

    /// Whether a client is to be told, and the store has not said yet what.
    fn is_client_asking(&self, request: RequestId) -> bool {
        let answers = matches!(self.lives.life(request), Some(Life::Parked(Parked { sequel: Sequel::Answer, .. })));
        answers && self.jobs.watchers.is_looked_up(request)
    }

    /// It will never end.
    pub(crate) fn job_dropped(&mut self, job: JobId) {
        for request in self.jobs.watchers.of(job) {
            self.turn(request, Happening::Woken(Outcome::Job { job, standing: JobLookup::Missing }));
        }
    }

    /// Whether somebody waits for it here.
    #[must_use]
    pub fn is_watched(&self, job: JobId) -> bool {
        self.jobs.watchers.are_there(job)
    }

    /// Whether somebody here is still to be told how the job ended.
    #[must_use]
    pub fn holds_result(&self, job: JobId) -> bool {
        self.jobs.results.is_held(job)
    }

    /// The time is up. A client is told nothing of a job that the store has said nothing of.
    pub(crate) fn job_still_pending(&mut self, request: RequestId, life: Parked) -> Life {
        let Some(job) = self.jobs.watchers.job_of(request) else { return Life::Parked(life) };
        if matches!(life.sequel, Sequel::Answer) && self.jobs.watchers.is_looked_up(request) {
            return self.wake(request, life, Outcome::Refused { refusal: Refusal::StoreUnreadable });
        }
        self.wake(request, life, Outcome::Job { job, standing: JobLookup::Pending })
    }

    /// The server stops: who waits comes back for the result. Clients are told that as soon as the store has said that there is such a job.
    pub(crate) fn end_job_waits(&mut self) {
        for (request, job) in self.jobs.watchers.all() {
            if self.is_client_asking(request) {
                self.jobs.watchers.hurry(request);
            } else {
                self.turn(request, Happening::Woken(Outcome::Job { job, standing: JobLookup::Pending }));
            }
        }
    }
}

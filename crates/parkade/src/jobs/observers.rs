//! Clients and coroutines that wait for jobs, or follow them: they get the state of a job, and learn how it ends.

use std::collections::{HashMap, HashSet};

use parkade_core::{Event, JobCaller, JobLookup, RequestId};
use parkade_jobs::{EndedJob, Reply};
use parkade_model::JobId;

use super::address;
use super::context::JobContext;
use super::declarations::{Declarations, Visibility};
use super::followers;
use super::questions::Question;
use super::results::{Results, ending};
use super::runs::Runs;
use super::store_link::StoreLink;
use crate::clients::exchange::Pending;

#[derive(Debug, Default)]
pub struct Observers {
    /// How jobs ended.
    pub results: Results,
    /// Requests for the state of a job while the store does not take commands.
    unasked: Vec<RequestId>,
    /// Followers whose job has a state that the store could not say. It is asked again within a second.
    unknown_states: HashMap<RequestId, JobId>,
    /// Jobs of other servers whose ending the store could not say. It is asked again within a second.
    unknown_endings: HashSet<JobId>,
}

impl Observers {
    /// Asks the store for the state of a job. A store that was never opened has no jobs: the core hears that in the next
    /// turn, because it has not finished with the current event.
    pub fn look_up(&mut self, store: &mut StoreLink, request: RequestId, job: JobId, caller: JobCaller) {
        if store.takes_commands() {
            store.find(Question::LookUp { request, caller }, job);
        } else {
            self.unasked.push(request);
        }
    }

    pub fn has_unasked(&self) -> bool {
        !self.unasked.is_empty()
    }

    /// Answers the requests for which the store was not asked.
    pub fn answer_unasked(&mut self, cx: &mut JobContext<'_>, store: &StoreLink) {
        for request in std::mem::take(&mut self.unasked) {
            cx.tell(if store.has_failed() {
                Event::JobNotLookedUp { request }
            } else {
                Event::JobFound { request, standing: JobLookup::Missing }
            });
        }
    }

    /// The store has looked up a job.
    pub fn found(
        &mut self,
        cx: &mut JobContext<'_>,
        (runs, declarations): (&Runs, &Declarations),
        (request, caller): (RequestId, JobCaller),
        reply: Reply,
    ) {
        let Reply::Found { job, .. } = reply else { return cx.tell(Event::JobNotLookedUp { request }) };
        let app = cx.core.app_of(request);
        let visibility = job.as_ref().map_or(Visibility::Hidden, |job| declarations.visibility(caller, app, &job.name));
        let job = match (visibility, job) {
            (Visibility::Guarded(kind), Some(job)) => {
                let event = address::guard(&mut cx.clients.exchanges, request, *job, kind);
                return cx.tell(event);
            }
            (Visibility::Visible, job) => job,
            (Visibility::Hidden | Visibility::Guarded(_), _) => None,
        };
        let mut exchange = cx.clients.exchanges.of(request);
        if let Some(exchange) = exchange.as_mut().filter(|_| caller != JobCaller::Application) {
            // Its client waits from now on, perhaps for long: the request itself is not needed.
            exchange.take_arrival();
        }
        let standing = match job.map(|job| (job.id, ending(*job))) {
            None => JobLookup::Missing,
            Some((_, Err(job))) => {
                if let Some(exchange) = exchange {
                    let told = followers::state(runs, &job);
                    let pending = Pending { told, has_address: declarations.has_address(app, &job.name) };
                    exchange.jobs_or_insert().pending = Some(pending);
                }
                JobLookup::Pending
            }
            Some((job, Ok(ending))) => {
                self.results.keep(job, ending);
                JobLookup::Ended
            }
        };
        cx.tell(Event::JobFound { request, standing });
    }

    /// The request has begun to follow the job, and was told its state.
    pub fn announced(
        &mut self,
        cx: &mut JobContext<'_>,
        runs: &Runs,
        (job, request): (JobId, RequestId),
        reply: Reply,
    ) {
        // Its client may have left, or have been told that the job has ended.
        if !followers::is_one(&cx.clients.exchanges, request, job) {
            return;
        }
        match reply {
            Reply::Found { job: Some(found), .. } => {
                let state = followers::state(runs, &found);
                if ending(*found).is_ok() {
                    followers::tell_last(cx, job, &state);
                } else {
                    followers::tell_one(cx, request, job, &state);
                }
            }
            Reply::Found { job: None, .. } => followers::tell_missing(cx, job),
            _ => {
                self.unknown_states.insert(request, job);
            }
        }
    }

    /// A job has ended for good, and the store has recorded that.
    pub fn ended(&mut self, cx: &mut JobContext<'_>, EndedJob { id: job, ending }: EndedJob) {
        followers::tell_ending(cx, job, &ending);
        if cx.core.is_watched(job) {
            self.results.keep(job, ending);
            cx.tell(Event::JobEnded { job });
        }
    }

    /// The store has looked up a job that has ended in another server.
    pub fn ending_found(&mut self, cx: &mut JobContext<'_>, job: JobId, reply: Reply) {
        match reply {
            Reply::Found { job: Some(found), .. } => {
                let id = found.id;
                if let Ok(ending) = ending(*found) {
                    self.ended(cx, EndedJob { id, ending });
                }
            }
            Reply::Found { job: None, .. } => dropped(cx, job),
            Reply::Refused { .. } => {
                self.unknown_endings.insert(job);
            }
            _ => {}
        }
    }

    /// Asks the store again for what it could not say.
    pub fn ask_again(&mut self, cx: &JobContext<'_>, store: &mut StoreLink) {
        for (request, job) in std::mem::take(&mut self.unknown_states) {
            if followers::is_one(&cx.clients.exchanges, request, job) {
                announce(store, job, request);
            }
        }
        for job in std::mem::take(&mut self.unknown_endings) {
            ended_elsewhere(cx, store, job);
        }
    }
}

/// Asks for the state of a job that the request has begun to follow.
pub fn announce(store: &mut StoreLink, job: JobId, request: RequestId) {
    store.find(Question::Announce { job, request }, job);
}

/// A job has ended for good in another server, or was dropped there. It is looked up only if a client here waits for it
/// or follows it.
pub fn ended_elsewhere(cx: &JobContext<'_>, store: &mut StoreLink, job: JobId) {
    if followers::are_there(cx, job) || cx.core.is_watched(job) {
        store.find(Question::EndedElsewhere { job }, job);
    }
}

/// A job was dropped: clients that wait for it would wait for ever.
pub fn dropped(cx: &mut JobContext<'_>, job: JobId) {
    followers::tell_missing(cx, job);
    cx.tell(Event::JobDropped { job });
}

//! Words of transactions that enqueue jobs.
//!
//! `within:a:x`: request a enqueues job x within its transaction (`within:a:x:500`: its arguments have so many bytes), `standing:open` (`opening`,
//! `refuses`): how the store stands. Answers to the statement that was asked for last: `probed:maybe` (`no`, `closed`), `enqueued:x+y` (`none`:
//! nothing is new, `elsewhere`), `lookedup:x=z` (`none`), `notopen`, `broken`.

use parkade_core::{
    CommitAnswer, CommitAsk, CommitEffect, CommitEvent, CommitFault, Event, PayloadId, PlacedJob, Probed, StoreStanding,
};

use super::{Script, jobs};

impl Script {
    pub(super) fn of_commits(&mut self, verb: &str, rest: &[&str]) -> Option<Event> {
        let event = match (verb, rest) {
            ("within", [name, job, size @ ..]) => {
                let request = self.request(name);
                let worker = Some(self.holders.get(&request).copied().unwrap_or_else(|| self.id(1)));
                let bytes = size.first().map_or(1, |size| size.parse().unwrap());
                CommitEvent::Enqueued { worker, request, job: jobs::job(job), bytes, payload: PayloadId(0) }
            }
            ("inscript", [name, job]) => {
                let (request, job) = (self.request(name), jobs::job(job));
                CommitEvent::Enqueued { worker: None, request, job, bytes: 1, payload: PayloadId(0) }
            }
            ("standing", [standing]) => CommitEvent::Store(match *standing {
                "open" => StoreStanding::Open,
                "opening" => StoreStanding::Opening,
                _ => StoreStanding::Refuses,
            }),
            ("probed", [probed]) => self.answered(CommitAnswer::Probed(match *probed {
                "maybe" => Probed::Maybe,
                "closed" => Probed::Closed,
                _ => Probed::No,
            })),
            ("enqueued", ["elsewhere"]) => self.answered(CommitAnswer::Enqueued(None)),
            ("enqueued", [placed]) => self.answered(CommitAnswer::Enqueued(Some(read(placed)))),
            ("lookedup", [placed]) => self.answered(CommitAnswer::Found(read(placed))),
            ("notopen", []) => self.answered(CommitAnswer::NotOpen),
            ("broken", []) => self.answered(CommitAnswer::Failed(PayloadId(0))),
            _ => return None,
        };
        Some(Event::Commit(event))
    }

    fn answered(&self, answer: CommitAnswer) -> CommitEvent {
        CommitEvent::Answered { statement: self.statement.expect("a statement was asked for"), answer }
    }

    pub(super) fn written_of_commits(&self, effect: &CommitEffect) -> String {
        match effect {
            CommitEffect::Keep { lease, .. } => format!("keepjob:{}", self.name(self.leases[lease])),
            CommitEffect::NoTransaction { .. } => "notransaction".into(),
            CommitEffect::Begin { commit, .. } => format!("willcommit:{}", self.query_name(*commit)),
            CommitEffect::Ask { lease, ask, .. } => {
                let name = self.name(self.leases[lease]);
                let listed = |jobs: &[_]| jobs.iter().map(|job| jobs::name(*job)).collect::<Vec<String>>().join("+");
                match ask {
                    CommitAsk::Probe => format!("probe:{name}"),
                    CommitAsk::Enqueue(jobs) => format!("enqueue:{name}:{}", listed(jobs)),
                    CommitAsk::LookUp(jobs) => format!("findkeys:{name}:{}", listed(jobs)),
                }
            }
            CommitEffect::Cancel { commit, .. } => format!("cancelstatement:{}", self.query_name(*commit)),
            CommitEffect::Commit { commit, .. } => format!("commit:{}", self.query_name(*commit)),
            CommitEffect::Fail { commit, why } => {
                let why = match why {
                    CommitFault::Statement(_) => "Statement".into(),
                    why => format!("{why:?}"),
                };
                format!("fail:{}:{why}", self.query_name(*commit))
            }
            CommitEffect::TablesClosed { .. } => "tablesclosed".into(),
            CommitEffect::Enqueued { job, id, .. } => format!("stored:{}:{}", jobs::name(*job), jobs::name(*id)),
            CommitEffect::Give { request, .. } => format!("give:{}", self.name(*request)),
            CommitEffect::Drop { lease } => format!("dropjobs:{}", self.name(self.leases[lease])),
        }
    }
}

/// `x+y=z`: x as itself, y as z.
fn read(words: &str) -> Vec<PlacedJob> {
    let placed = words.split('+').filter(|word| *word != "none").map(|word| {
        let (job, id) = word.split_once('=').unwrap_or((word, word));
        PlacedJob { job: jobs::job(job), id: jobs::job(id), wait: None }
    });
    placed.collect()
}

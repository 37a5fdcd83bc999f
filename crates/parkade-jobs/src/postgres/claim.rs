//! The best of what is ready, for this server alone.

use std::time::Instant;

use bytes::Bytes;
use parkade_sql::Parameter;
use serde::Deserialize;

use super::flight::Carried;
use super::lanes::Waiting;
use super::limits::{CLAIM_COUNT_MAX, CONTENDED};
use super::rows::{self, array, float_millis, instance, text};
use super::store::PostgresStore;
use super::texts;
use crate::cluster::ClaimNumber;
use crate::{Allowance, Claimed, Command, JobId, Reply, Wall};

/// The first half is the same in each.
#[derive(Deserialize)]
struct Row {
    now: i64,
    is_held: bool,
    more: bool,
    is_full: bool,
    next: Option<i64>,
    #[serde(deserialize_with = "rows::id_or_none")]
    id: Option<JobId>,
    name: Option<Box<str>>,
    queue: Option<Box<str>>,
    attempt: Option<u32>,
    #[serde(deserialize_with = "rows::bytes")]
    arguments: Option<Bytes>,
}

impl PostgresStore {
    pub(super) fn claim(&mut self, now: Instant, waiting: Waiting) {
        let Command::Claim { count, limited, .. } = &waiting.command else { return self.misplaced(&waiting) };
        let claim = self.member.begin_claim();
        let number = |count: u32| Parameter::Int(i32::try_from(count).unwrap_or(i32::MAX).into());
        let or_null = |number: Option<Parameter>| number.unwrap_or(Parameter::Null);
        let bound = |of: &dyn Fn(&Allowance) -> Parameter| array(limited.iter().map(of));
        let parameters = vec![
            self.clock(),
            instance(self.member.instance()),
            Parameter::Int(claim.0),
            Parameter::Int((*count).min(CLAIM_COUNT_MAX).into()),
            bound(&|allowance| text(&allowance.queue)),
            bound(&|allowance| number(allowance.count)),
            bound(&|allowance| or_null(allowance.places.map(number))),
            bound(&|allowance| or_null(allowance.rate.map(|rate| float_millis(rate.period)))),
            bound(&|allowance| or_null(allowance.rate.map(|rate| number(rate.capacity.max(1))))),
            array(self.member.instances().map(instance)),
        ];
        self.limits.asked();
        self.launch(now, Carried::Claim { waiting, claim }, &texts::CLAIM, parameters);
    }

    pub(super) fn claimed(&mut self, now: Instant, waiting: Waiting, claim: ClaimNumber, rows: &[u8]) {
        let rows = match rows::read::<Row>(rows) {
            Ok(rows) => rows,
            Err(why) => {
                // Whatever it took nobody runs.
                self.member.claim_unanswered(claim);
                return self.garbled(&[waiting], &why);
            }
        };
        let head = rows
            .first()
            .map(|row| (row.is_held, row.more, row.is_full, row.next.map(|next| (Wall(next), Wall(row.now)))));
        let Some((true, mut more, is_full, next)) = head else {
            self.member.declared_dead();
            self.maintenance.refuse_with(None);
            return self.lanes.back([waiting].into_iter());
        };
        let jobs: Vec<Claimed> = rows.into_iter().filter_map(job).collect();
        let wanted_some = matches!(waiting.command, Command::Claim { count: 1.., .. });
        if jobs.is_empty() && more && wanted_some {
            // Another server is claiming them: asked again at once, it would be asked without end.
            more = false;
            self.maintenance.look_again(now + CONTENDED);
        }
        self.has_hint |= self.limits.found(is_full);
        let next = next.map(|(next, now)| self.told(next, now));
        self.answer(&waiting, Reply::Claimed { tag: waiting.command.tag(), jobs, more, next });
    }
}

fn job(row: Row) -> Option<Claimed> {
    Some(Claimed { id: row.id?, name: row.name?, queue: row.queue?, arguments: row.arguments?, attempt: row.attempt? })
}

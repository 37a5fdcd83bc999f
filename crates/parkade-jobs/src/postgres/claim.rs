//! Claims the best ready jobs for this server.

use bytes::Bytes;
use parkade_sql::Parameter;
use serde::Deserialize;

use super::clocks::Clocks;
use super::limits::CLAIM_COUNT_MAX;
use super::rows::{self, array, float_millis, instance, text};
use super::statement::StoreStatement;
use super::texts;
use crate::cluster::{ClaimId, Member};
use crate::{Allowance, Claimed, Command, Correlation, JobId, Wall};

/// The first half is the same in all of them.
#[derive(Deserialize)]
struct ClaimRow {
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
    request_id: Option<Box<str>>,
    traceparent: Option<Box<str>>,
}

/// What a member's claim took and saw.
pub struct ClaimResult {
    pub jobs: Vec<Claimed>,
    /// Others could be claimed at once.
    pub more: bool,
    /// Other servers have the last places of a queue.
    pub is_full: bool,
    /// When others can be claimed, and the current time, both by the database's clock.
    pub next: Option<(Wall, Wall)>,
}

/// `None`: a command of another kind.
pub fn prepare(clocks: &Clocks, member: &Member, claim: ClaimId, command: &Command) -> Option<StoreStatement> {
    let Command::Claim { count, limited, .. } = command else { return None };
    let number = |count: u32| Parameter::Int(i32::try_from(count).unwrap_or(i32::MAX).into());
    let or_null = |number: Option<Parameter>| number.unwrap_or(Parameter::Null);
    let bound = |of: &dyn Fn(&Allowance) -> Parameter| array(limited.iter().map(of));
    let parameters = vec![
        clocks.parameter(),
        instance(claim.instance),
        Parameter::Int(claim.number.0),
        Parameter::Int((*count).min(CLAIM_COUNT_MAX).into()),
        bound(&|allowance| text(&allowance.queue)),
        bound(&|allowance| number(allowance.count)),
        bound(&|allowance| or_null(allowance.places.map(number))),
        bound(&|allowance| or_null(allowance.rate.map(|rate| float_millis(rate.period)))),
        bound(&|allowance| or_null(allowance.rate.map(|rate| number(rate.capacity.max(1))))),
        array(member.instances().map(instance)),
    ];
    Some(StoreStatement::new(&texts::CLAIM, parameters))
}

/// `None`: the others have declared this server dead.
pub fn read(rows: &[u8], claim: ClaimId) -> Result<Option<ClaimResult>, serde_json::Error> {
    let rows = rows::read::<ClaimRow>(rows)?;
    let Some(head) = rows.first().filter(|row| row.is_held) else { return Ok(None) };
    let (more, is_full) = (head.more, head.is_full);
    let next = head.next.map(|next| (Wall(next), Wall(head.now)));
    Ok(Some(ClaimResult { more, is_full, next, jobs: rows.into_iter().filter_map(|row| job(row, claim)).collect() }))
}

fn job(row: ClaimRow, claim: ClaimId) -> Option<Claimed> {
    let correlation = Correlation::of_texts(row.request_id.as_deref(), row.traceparent.as_deref());
    Some(Claimed {
        id: row.id?,
        name: row.name?,
        queue: row.queue?,
        arguments: row.arguments?,
        attempt: row.attempt?,
        claim,
        correlation,
    })
}

//! The steps of this server's membership as statements.

use std::time::Duration;

use parkade_sql::Parameter;
use serde::Deserialize;

use super::rows::{array, first, instance, millis};
use super::statement::StoreStatement;
use super::texts;
use crate::cluster::{ClaimNumber, HeartbeatAnswer, Member, MemberStep};

#[derive(Deserialize)]
struct HeartbeatRow {
    is_known: bool,
    lost: u64,
    now: i64,
}

#[derive(Deserialize)]
struct JoinRow {
    now: i64,
}

#[derive(Deserialize)]
struct RescueRow {
    rescued: u64,
}

pub fn prepare(step: MemberStep, member: &Member, dead_after: Duration) -> StoreStatement {
    let own = instance(member.instance());
    match step {
        MemberStep::Join => StoreStatement::new(&texts::ARRIVE, vec![own]),
        MemberStep::Heartbeat { instance: beats, judges_after } => {
            let judges_after = judges_after.map_or(Parameter::Null, Parameter::Int);
            StoreStatement::new(&texts::HEARTBEAT, vec![instance(beats), millis(dead_after), judges_after])
        }
        MemberStep::Fence(ClaimNumber(claim)) => StoreStatement::new(&texts::FENCE, vec![own, Parameter::Int(claim)]),
        MemberStep::HandBack(ClaimNumber(claim)) => {
            StoreStatement::new(&texts::HAND_BACK, vec![own, Parameter::Int(claim)])
        }
        MemberStep::Rescue | MemberStep::HandOver => StoreStatement::new(&texts::RESCUE, vec![own]),
        MemberStep::Leave => StoreStatement::new(&texts::LEAVE, vec![array(member.instances().map(instance))]),
    }
}

pub fn read_heartbeat(rows: &[u8]) -> Result<Option<HeartbeatAnswer>, serde_json::Error> {
    let answer =
        |row: HeartbeatRow| HeartbeatAnswer { is_member: row.is_known, declared_dead: row.lost, now_ms: row.now };
    Ok(first(rows)?.map(answer))
}

/// The database's clock, in ms.
pub fn read_join(rows: &[u8]) -> Result<Option<i64>, serde_json::Error> {
    Ok(first::<JoinRow>(rows)?.map(|row| row.now))
}

/// How many jobs are ready again.
pub fn read_rescue(rows: &[u8]) -> Result<u64, serde_json::Error> {
    Ok(first::<RescueRow>(rows)?.map_or(0, |row| row.rescued))
}

//! A request whose wait is over: what components return, and the core carries to its life.

use crate::effect::Outcome;
use parkade_model::RequestId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Woken {
    pub request: RequestId,
    pub outcome: Outcome,
}

//! What databases share: a query, its rows as JSON, its outcome. No clock, no I/O but the folder of a file, nothing specific to Parkade.
//!
//! | question | where |
//! |---|---|
//! | the work of a database | `query` |
//! | its events, and how it ended | `event`, `failure` |
//! | rows as JSON text, piece by piece | `rows`, `json` |
//! | its status | `status` |
//! | the folder of its file | `folder` |

mod event;
mod failure;
pub mod folder;
pub mod json;
mod query;
mod rows;
mod status;

pub use event::{Column, QueryEnd, QueryEvent, Summary};
pub use failure::{Certainty, FailureKind, QueryFailure};
pub use parkade_model::{IdMap, Int8, Isolation, LeaseId, Parameter, QueryId, Shape, TransactionMode};
pub use query::{DatabaseWork, Query, RowFormat};
pub use rows::{Columns, RowWriter};
pub use status::{Availability, ConnectionTotals, DatabaseStatus, SlotState, SlotStatus};

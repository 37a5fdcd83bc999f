//! Names of things. All are plain numbers, so that the core holds no handle of the outside world.

/// A request. Minted by the shell: `slot` is reused after [`Effect::Forget`](crate::Effect::Forget), then with another
/// generation. That comes round after four thousand million requests in one slot. Nobody has a name for so long after it was forgotten: the shell drops its own in the
/// same turn, and a stream that was cancelled keeps it only until its worker has answered or is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub slot: u32,
    pub generation: u32,
}

/// A worker process. Minted by the core, upwards from 1, never reused: starts back off, and ten a second last 13 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkerId(pub u32);

/// A route table. Equal tables have one id, whichever worker told them. Minted by the shell through [`Core::learn_routes`](crate::Core::learn_routes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// A published message. Minted by the shell, never reused (as all of 64 bits here: a billion a second last 500 years); the shell keeps its bytes until [`Effect::DropMessage`](crate::Effect::DropMessage).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u64);

/// A database. Minted by the shell, for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DatabaseId(pub u16);

/// What a database was asked to do once. Minted by the core, never reused; the shell keeps its result until [`Effect::DropResult`](crate::Effect::DropResult).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueryId(pub u64);

/// A job. Minted by whoever enqueues it, for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u128);

/// A queue of jobs. Minted by the shell, for good, upwards from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueueId(pub u64);

/// A transaction of a request. Minted by the core, never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

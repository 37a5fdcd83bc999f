//! The monotonic clock, in nanoseconds: the same for all processes of a machine, unlike `std::time::Instant`.

use rustix::time::{ClockId, Timespec, clock_gettime};

pub type Nanos = u64;

pub fn now() -> Nanos {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    tv_sec.unsigned_abs() * 1_000_000_000 + tv_nsec.unsigned_abs()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "durations of a run: positive, far below 2^53 ns"
)]
pub fn nanos(seconds: f64) -> Nanos {
    (seconds * 1e9) as Nanos
}

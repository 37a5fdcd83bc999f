//! When a connection that nobody uses ends, and when a silent client is asked whether it is still there. No I/O.

use std::time::Duration;

use tokio::time::Instant;

use crate::http::limits::{H2_PING_TIMEOUT, HttpLimits};

/// A connection without streams first gets GOAWAY, and is closed after its client has had time to read the rest. A
/// client that says nothing is pinged, whether it has streams or not.
#[derive(Debug)]
pub struct Upkeep {
    /// How long a connection may be without streams, and its client silent.
    idle_time: Duration,
    time_to_leave: Duration,
    /// When it got GOAWAY.
    told: Option<Instant>,
    /// When it was pinged, if nothing has come since.
    asked: Option<Instant>,
}

/// What is known of a connection.
#[derive(Debug, Clone, Copy)]
pub struct ConnectionSigns {
    /// Since when it has had no stream, if it has none.
    idle_since: Option<Instant>,
    /// When bytes last came.
    heard: Instant,
}

/// What is to be done with it.
#[derive(Debug, PartialEq, Eq)]
pub enum ConnectionDuty {
    SayGoodbye,
    Ping,
    /// Its client had time to leave.
    Close,
    /// Its client is gone.
    BreakOff,
}

impl ConnectionSigns {
    pub const fn new(idle_since: Option<Instant>, heard: Instant) -> Self {
        Self { idle_since, heard }
    }
}

impl Upkeep {
    pub const fn new(limits: &HttpLimits) -> Self {
        Self { idle_time: limits.idle_time, time_to_leave: limits.write_stall, told: None, asked: None }
    }

    /// To be called until there is nothing to do.
    pub fn check(&mut self, signs: ConnectionSigns, now: Instant) -> Option<ConnectionDuty> {
        if signs.idle_since.is_some() && now >= self.idle_until(signs, now) {
            return Some(match self.told.replace(now) {
                None => ConnectionDuty::SayGoodbye,
                Some(_) => ConnectionDuty::Close,
            });
        }
        self.asked = self.asked.filter(|asked| signs.heard < *asked);
        if now < self.silent_until(signs) {
            return None;
        }
        Some(match self.asked.replace(now) {
            None => ConnectionDuty::Ping,
            Some(_) => ConnectionDuty::BreakOff,
        })
    }

    /// When to check again.
    pub fn due(&self, signs: ConnectionSigns, now: Instant) -> Instant {
        self.idle_until(signs, now).min(self.silent_until(signs))
    }

    fn idle_until(&self, signs: ConnectionSigns, now: Instant) -> Instant {
        let since = signs.idle_since.unwrap_or(now);
        match self.told {
            None => since + self.idle_time,
            Some(told) => since.max(told) + self.time_to_leave,
        }
    }

    fn silent_until(&self, signs: ConnectionSigns) -> Instant {
        match self.asked {
            None => signs.heard + self.idle_time,
            Some(asked) => asked + H2_PING_TIMEOUT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::connection::tests::LIMITS;

    const IDLE: u64 = LIMITS.idle_time.as_secs();
    const LEAVE: u64 = LIMITS.write_stall.as_secs();
    const PING: u64 = H2_PING_TIMEOUT.as_secs();

    /// What is done and when, in seconds, within an hour. `signs`: since when there has been no stream, and when the
    /// client was last heard, at that second.
    fn check(signs: impl Fn(u64) -> (Option<u64>, u64)) -> Vec<(u64, ConnectionDuty)> {
        let (began, mut upkeep, mut duties) = (Instant::now(), Upkeep::new(&LIMITS), Vec::new());
        let at = |second| began + Duration::from_secs(second);
        let mut now = began;
        while now < at(3_600) {
            let second = (now - began).as_secs();
            let (idle, heard) = signs(second);
            let signs = ConnectionSigns::new(idle.map(at), at(heard));
            while let Some(duty) = upkeep.check(signs, now) {
                let is_end = matches!(duty, ConnectionDuty::Close | ConnectionDuty::BreakOff);
                duties.push((second, duty));
                if is_end {
                    return duties;
                }
            }
            let due = upkeep.due(signs, now);
            assert!(due > now, "it spins at {second}");
            now = due;
        }
        duties
    }

    #[test]
    fn a_connection_without_streams_is_told_and_closed() {
        let told = check(|now| (Some(0), now));
        assert_eq!(told, [(IDLE, ConnectionDuty::SayGoodbye), (IDLE + LEAVE, ConnectionDuty::Close)]);
    }

    #[test]
    fn one_that_has_been_told_and_has_streams_nevertheless_stays_until_they_have_ended() {
        let (busy, end) = (IDLE + 1..IDLE + 500, IDLE + 500);
        let told = check(|now| {
            let idle = if busy.contains(&now) {
                None
            } else if now < end {
                Some(0)
            } else {
                Some(end)
            };
            (idle, now)
        });
        assert_eq!(told[0], (IDLE, ConnectionDuty::SayGoodbye));
        assert_eq!(told[1..].iter().map(|(_, duty)| duty).collect::<Vec<_>>(), [&ConnectionDuty::Close]);
        assert!((end + LEAVE..end + 2 * LEAVE).contains(&told[1].0), "{told:?}");
    }

    #[test]
    fn a_client_that_speaks_is_left_alone_while_it_has_streams() {
        assert_eq!(check(|now| (None, now)), []);
    }

    #[test]
    fn a_silent_client_with_streams_is_pinged_and_then_dropped() {
        let told = check(|_| (None, 0));
        assert_eq!(told, [(IDLE, ConnectionDuty::Ping), (IDLE + PING, ConnectionDuty::BreakOff)]);
    }

    #[test]
    fn a_client_that_answers_pings_is_pinged_again_after_the_idle_time() {
        // It answers each a second later.
        let told = check(|now| (None, if now < IDLE + 1 { 0 } else { (now - 1) / (IDLE + 1) * (IDLE + 1) }));
        assert!(told.len() > 3 && told.iter().all(|(_, duty)| *duty == ConnectionDuty::Ping), "{told:?}");
        let seconds: Vec<_> = told.iter().map(|(second, _)| *second).collect();
        assert!(seconds.windows(2).all(|pair| pair[1] - pair[0] >= IDLE), "{seconds:?}");
    }
}

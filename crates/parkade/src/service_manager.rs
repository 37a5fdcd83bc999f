//! Reports to systemd, or another service manager (`sd_notify(3)`): the server is ready, reloads, stops, and is alive.
//!
//! The thread that decides sends the reports, so a core that hangs misses its watchdog.

use std::time::Duration;

use parkade_core::Moment;
use sd_notify::NotifyState;

#[derive(Debug)]
pub struct ServiceManager {
    /// The phase that was reported last; `None` if there is no service manager.
    told: Option<ServicePhase>,
    watchdog: Option<Watchdog>,
}

/// What the server is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServicePhase {
    Starting,
    Serving,
    Reloading,
    Stopping,
}

#[derive(Debug, Clone, Copy)]
struct Watchdog {
    interval: Duration,
    due: Moment,
}

impl ServiceManager {
    /// As configured in the environment (`NOTIFY_SOCKET`, `WATCHDOG_USEC`).
    #[must_use]
    pub fn from_environment() -> Self {
        let is_there = std::env::var_os("NOTIFY_SOCKET").is_some();
        let allowed = sd_notify::watchdog_enabled().filter(|allowed| is_there && !allowed.is_zero());
        Self {
            told: is_there.then_some(ServicePhase::Starting),
            // Twice as often as required, as systemd advises.
            watchdog: allowed.map(|allowed| Watchdog { interval: allowed / 2, due: Moment::default() }),
        }
    }

    /// When the next report that the server is alive is due.
    #[must_use]
    pub fn due(&self) -> Option<Moment> {
        self.watchdog.map(|watchdog| watchdog.due)
    }

    #[must_use]
    pub fn is_there(&self) -> bool {
        self.told.is_some()
    }

    /// Reports what has changed. `status`: in words, called only if it is needed.
    pub fn tell(&mut self, phase: ServicePhase, now: Moment, status: impl FnOnce() -> String) {
        let Some(told) = self.told else { return };
        if phase != told {
            let status = one_line(&status());
            let status = NotifyState::Status(&status);
            match phase {
                // The service manager has been waiting for this since it started the server.
                ServicePhase::Starting => {}
                ServicePhase::Serving => send(&[NotifyState::Ready, status]),
                ServicePhase::Reloading => match NotifyState::monotonic_usec_now() {
                    Ok(since) => send(&[NotifyState::Reloading, since, status]),
                    Err(_) => send(&[NotifyState::Reloading, status]),
                },
                ServicePhase::Stopping => send(&[NotifyState::Stopping, status]),
            }
            self.told = Some(phase);
        }
        if let Some(watchdog) = self.watchdog.as_mut().filter(|watchdog| watchdog.due <= now) {
            watchdog.due = now + watchdog.interval;
            send(&[NotifyState::Watchdog]);
        }
    }
}

/// A service manager that cannot be reached decides by itself what follows.
fn send(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot report to the service manager: {error}");
    }
}

/// A line break would begin another assignment.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

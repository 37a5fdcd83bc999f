//! Sends the password in the way that the server requests.

use std::fmt;
use std::sync::Arc;

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use super::DialRefusal;
use crate::limits::SCRAM_ROUNDS_MAX;
use crate::settings::Secret;

pub(crate) struct Authentication {
    password: Option<Secret>,
    scram: Option<ScramSha256>,
    /// The computation of a proof, until another thread takes it.
    due: Option<Computation>,
    /// Set while a proof is being computed: until then the connection must not be accepted.
    proving: Option<Asker>,
}

/// Identifies who requested a computation. The result for an address that timed out may arrive after the next attempt
/// has begun.
type Asker = Arc<()>;

/// The answer to a challenge that takes long to compute.
pub(crate) struct Computation {
    asker: Asker,
    scram: ScramSha256,
    challenge: Box<[u8]>,
}

/// The result of a computation.
pub(crate) struct Computed {
    asker: Asker,
    proof: Result<ScramSha256, String>,
}

impl Computation {
    /// Blocks for as long as the server's choice of rounds requires: up to 50 ms.
    pub(crate) fn run(mut self) -> Computed {
        let proof = self.scram.update(&self.challenge).map(|()| self.scram).map_err(|error| error.to_string());
        Computed { asker: self.asker, proof }
    }
}

impl fmt::Debug for Computed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Computed").finish_non_exhaustive()
    }
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authentication").finish_non_exhaustive()
    }
}

impl Authentication {
    pub(crate) fn new(password: Option<Secret>) -> Self {
        Self { password, scram: None, due: None, proving: None }
    }

    /// Returns whether the server has logged us in.
    pub(crate) fn hear(&mut self, kind: i32, data: &[u8], user: &str, out: &mut BytesMut) -> Result<bool, DialRefusal> {
        match kind {
            0 => return self.let_in(),
            3 => send(frontend::password_message(self.password()?.reveal().as_bytes(), out))?,
            5 => {
                let salt = data.try_into().map_err(|_| DialRefusal::unreachable("a salt of the wrong size"))?;
                let hash = md5_hash(user.as_bytes(), self.password()?.reveal().as_bytes(), salt);
                send(frontend::password_message(hash.as_bytes(), out))?;
            }
            10 => self.begin_scram(data, out)?,
            11 => {
                let scram = self.scram.take().ok_or_else(out_of_turn)?;
                let asker = Asker::default();
                let computation = Computation { asker: asker.clone(), scram, challenge: data.into() };
                self.proving = Some(asker);
                if rounds(data) > SCRAM_ROUNDS_MAX {
                    self.due = Some(computation);
                } else {
                    self.computed(computation.run(), out)?;
                }
            }
            12 => {
                let mut scram = self.scram.take().ok_or_else(out_of_turn)?;
                let forged = |_| {
                    DialRefusal::denied(
                        "SCRAM: the server could not prove that it knows the password: it may be an impostor",
                    )
                };
                scram.finish(data).map_err(forged)?;
            }
            7..=9 => return Err(DialRefusal::denied("the server asks for GSSAPI or SSPI, which are not supported")),
            _ => return Err(DialRefusal::denied("the server asks for an unknown authentication method")),
        }
        Ok(false)
    }

    /// A computation for the caller, who passes the result to [`computed`](Self::computed).
    pub(crate) fn take_due(&mut self) -> Option<Computation> {
        self.due.take()
    }

    /// A result that belongs to another attempt is ignored.
    pub(crate) fn computed(&mut self, computed: Computed, out: &mut BytesMut) -> Result<(), DialRefusal> {
        if !self.proving.as_ref().is_some_and(|asker| Arc::ptr_eq(asker, &computed.asker)) {
            return Ok(());
        }
        self.proving = None;
        let scram = computed.proof.map_err(|error| DialRefusal::denied(format!("SCRAM: {error}")))?;
        send(frontend::sasl_response(scram.message(), out))?;
        self.scram = Some(scram);
        Ok(())
    }

    /// A server that skips the proof that it knows the password is refused.
    fn let_in(&self) -> Result<bool, DialRefusal> {
        if self.scram.is_some() || self.proving.is_some() {
            return Err(DialRefusal::denied("SCRAM: the server has not proved that it knows the password"));
        }
        Ok(true)
    }

    fn begin_scram(&mut self, mechanisms: &[u8], out: &mut BytesMut) -> Result<(), DialRefusal> {
        if !mechanisms.split(|byte| *byte == 0).any(|mechanism| mechanism == SCRAM_SHA_256.as_bytes()) {
            return Err(DialRefusal::denied("the server offers no SCRAM-SHA-256"));
        }
        // Channel binding is not offered: the certificate is checked according to `sslmode`.
        let scram = ScramSha256::new(self.password()?.reveal().as_bytes(), ChannelBinding::unsupported());
        send(frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out))?;
        self.scram = Some(scram);
        Ok(())
    }

    fn password(&self) -> Result<&Secret, DialRefusal> {
        self.password.as_ref().ok_or_else(|| DialRefusal::denied("the server asks for a password, but none was given"))
    }
}

/// How many rounds a challenge asks for (RFC 5802, section 7: `r=…,s=…,i=4096`). An invalid challenge is refused when
/// it is computed.
fn rounds(challenge: &[u8]) -> u32 {
    let text = std::str::from_utf8(challenge).unwrap_or_default();
    text.split(',').find_map(|part| part.strip_prefix("i=")?.parse().ok()).unwrap_or(u32::MAX)
}

fn out_of_turn() -> DialRefusal {
    DialRefusal::denied("SCRAM: an unexpected message")
}

fn send(written: std::io::Result<()>) -> Result<(), DialRefusal> {
    written.map_err(|_| DialRefusal::denied("the password contains a NUL"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages up to the challenge, with this many rounds.
    fn challenged(rounds: u32) -> (Authentication, BytesMut, Result<bool, DialRefusal>) {
        let mut out = BytesMut::new();
        let mut authentication = Authentication::new(Some(Secret::new("pw")));
        authentication.hear(10, b"SCRAM-SHA-256\0\0", "me", &mut out).unwrap();
        let said = String::from_utf8_lossy(&out).into_owned();
        let nonce = said.split_once("n=,r=").unwrap().1.to_owned();
        out.clear();
        let challenge = format!("r={nonce}more,s=c2FsdHNhbHQ=,i={rounds}");
        let heard = authentication.hear(11, challenge.as_bytes(), "me", &mut out);
        (authentication, out, heard)
    }

    #[test]
    fn few_rounds_are_computed_at_once() {
        let (mut authentication, out, heard) = challenged(4096);
        assert_eq!((heard, out.is_empty()), (Ok(false), false));
        assert!(authentication.take_due().is_none());
    }

    #[test]
    fn many_rounds_are_for_somebody_else_and_nobody_is_let_in_meanwhile() {
        let (mut authentication, mut out, heard) = challenged(SCRAM_ROUNDS_MAX + 1);
        assert!(matches!(heard, Ok(false)) && out.is_empty());
        let computation = authentication.take_due().unwrap();
        assert!(authentication.hear(0, &[], "me", &mut out).is_err(), "the server has proved nothing");
        authentication.computed(computation.run(), &mut out).unwrap();
        assert!(!out.is_empty());
        assert!(
            authentication.hear(0, &[], "me", &mut out).is_err(),
            "it has still to prove that it knows the password"
        );
    }

    #[test]
    fn what_somebody_else_has_asked_for_changes_nothing() {
        let (mut late, ..) = challenged(SCRAM_ROUNDS_MAX + 1);
        let (mut authentication, mut out, _) = challenged(SCRAM_ROUNDS_MAX + 1);
        let stranger = late.take_due().unwrap().run();
        assert_eq!((authentication.computed(stranger, &mut out), out.is_empty()), (Ok(()), true));
        let own = authentication.take_due().unwrap().run();
        assert_eq!((authentication.computed(own, &mut out), out.is_empty()), (Ok(()), false));
    }

    #[test]
    fn more_rounds_than_anybody_computes_are_refused() {
        let (mut authentication, mut out, _) = challenged(10_000_000);
        let computed = authentication.take_due().unwrap().run();
        assert!(authentication.computed(computed, &mut out).is_err());
    }
}

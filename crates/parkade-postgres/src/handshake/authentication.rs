//! The password, told in the way that the server asks for.

use std::fmt;

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use super::Refusal;
use crate::settings::Secret;

pub(crate) struct Authentication {
    password: Option<Secret>,
    scram: Option<ScramSha256>,
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authentication").finish_non_exhaustive()
    }
}

impl Authentication {
    pub(crate) fn new(password: Option<Secret>) -> Self {
        Self { password, scram: None }
    }

    /// Whether the server has let us in.
    pub(crate) fn hear(&mut self, kind: i32, data: &[u8], user: &str, out: &mut BytesMut) -> Result<bool, Refusal> {
        match kind {
            0 => return self.let_in(),
            3 => send(frontend::password_message(self.password()?.reveal().as_bytes(), out))?,
            5 => {
                let salt = data.try_into().map_err(|_| Refusal::unreachable("a salt of the wrong size"))?;
                let hash = md5_hash(user.as_bytes(), self.password()?.reveal().as_bytes(), salt);
                send(frontend::password_message(hash.as_bytes(), out))?;
            }
            10 => self.begin_scram(data, out)?,
            11 => {
                let scram = self.scram.as_mut().ok_or_else(out_of_turn)?;
                scram.update(data).map_err(|error| Refusal::denied(format!("SCRAM: {error}")))?;
                send(frontend::sasl_response(scram.message(), out))?;
            }
            12 => {
                let mut scram = self.scram.take().ok_or_else(out_of_turn)?;
                let forged = |_| {
                    Refusal::denied("SCRAM: the server does not know the password either: it is not the one it says")
                };
                scram.finish(data).map_err(forged)?;
            }
            7..=9 => return Err(Refusal::denied("the server asks for GSSAPI or SSPI, which are not supported")),
            _ => return Err(Refusal::denied("the server asks for an unknown way of authentication")),
        }
        Ok(false)
    }

    /// One that skips the proof that it knows the password is not let through.
    fn let_in(&self) -> Result<bool, Refusal> {
        if self.scram.is_some() {
            return Err(Refusal::denied("SCRAM: the server has not proved that it knows the password"));
        }
        Ok(true)
    }

    fn begin_scram(&mut self, mechanisms: &[u8], out: &mut BytesMut) -> Result<(), Refusal> {
        if !mechanisms.split(|byte| *byte == 0).any(|mechanism| mechanism == SCRAM_SHA_256.as_bytes()) {
            return Err(Refusal::denied("the server offers no SCRAM-SHA-256"));
        }
        // Channel binding is not offered: the certificate is checked by `sslmode`.
        let scram = ScramSha256::new(self.password()?.reveal().as_bytes(), ChannelBinding::unsupported());
        send(frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), out))?;
        self.scram = Some(scram);
        Ok(())
    }

    fn password(&self) -> Result<&Secret, Refusal> {
        self.password.as_ref().ok_or_else(|| Refusal::denied("the server asks for a password, and none is given"))
    }
}

fn out_of_turn() -> Refusal {
    Refusal::denied("SCRAM: a message out of turn")
}

fn send(written: std::io::Result<()>) -> Result<(), Refusal> {
    written.map_err(|_| Refusal::denied("the password contains a NUL"))
}

//! Errors and notices of the server.

use parkade_sql::{Certainty, FailureKind, QueryFailure};

use super::ProtocolViolation;
use super::reader::MessageReader;

/// An `ErrorResponse` or a `NoticeResponse`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// The server closes the connection after it.
    pub(crate) is_fatal: bool,
    pub(crate) code: Box<str>,
    pub(crate) message: Box<str>,
    /// The function of the server that raised it.
    pub(crate) routine: Box<str>,
}

const QUERY_CANCELED: &str = "57014";

impl ServerError {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ProtocolViolation> {
        let mut reader = MessageReader(body);
        let (mut severity, mut code, mut message, mut detail, mut routine) = (None, None, None, None, None);
        loop {
            let field = match reader.u8()? {
                0 => break,
                b'V' => &mut severity,
                b'C' => &mut code,
                b'M' => &mut message,
                b'D' => &mut detail,
                b'R' => &mut routine,
                _ => &mut None,
            };
            *field = Some(String::from_utf8_lossy(reader.until_nul()?).into_owned());
        }
        let mut message = message.unwrap_or_default();
        if let Some(detail) = detail {
            message = format!("{message} ({detail})");
        }
        Ok(Self {
            is_fatal: matches!(severity.as_deref(), Some("FATAL" | "PANIC")),
            code: code.unwrap_or_default().into(),
            message: message.into(),
            routine: routine.unwrap_or_default().into(),
        })
    }

    pub(crate) fn is_cancel(&self) -> bool {
        &*self.code == QUERY_CANCELED
    }

    /// The message after a cancel, by us or by others: in English.
    pub(crate) fn is_cancel_by_request(&self) -> bool {
        self.is_cancel() && self.message.contains("user request")
    }

    /// The message of the server's own timeout, which has the same code: in English.
    pub(crate) fn is_time_out(&self) -> bool {
        self.is_cancel() && self.message.contains("timeout")
    }

    /// The plan of a prepared statement no longer matches its tables, or the statement does not exist: it has to be
    /// prepared again.
    pub(crate) fn is_stale_statement(&self) -> bool {
        match &*self.code {
            "26000" => true,
            _ => self.is_stale_plan(),
        }
    }

    /// A table has changed: the prepared statements of other connections are stale too.
    pub(crate) fn is_stale_plan(&self) -> bool {
        &*self.code == "0A000" && (&*self.routine == "RevalidateCachedQuery" || self.message.contains("cached plan"))
    }

    /// The server closes this connection, and has rolled back what ran on it.
    pub(crate) fn is_shutdown(&self) -> bool {
        matches!(&*self.code, "57P01" | "57P02" | "57P03" | "57P05" | "25P03")
    }

    pub(crate) fn into_failure(self) -> QueryFailure {
        let kind = match &*self.code {
            "08P01" if self.message.starts_with("bind message supplies") => FailureKind::ParameterCount,
            _ if self.is_shutdown() => FailureKind::Lost,
            _ => FailureKind::Refused,
        };
        QueryFailure { kind, sqlstate: Some(self.code), message: self.message, certainty: Certainty::NotDone }
    }
}

//! From an open socket to a connection that is ready: start-up, authentication, settings, identification of the server
//! process.

mod authentication;

use parkade_sql::FailureKind;

use crate::settings::{Secret, Settings, Target};
use crate::transport::Setback;
use crate::wire::error::ServerError;
use crate::wire::message::BackendMessage;
use crate::wire::{ProtocolViolation, Wire, write};
use authentication::Authentication;
pub(crate) use authentication::{Computation, Computed};

/// What is sent at the start of every connection.
#[derive(Debug)]
pub(crate) struct Terms {
    pub(crate) user: String,
    pub(crate) database: String,
    pub(crate) application_name: String,
    pub(crate) options: Option<String>,
    pub(crate) target: Target,
    pub(crate) check_interval_millis: u128,
}

impl Terms {
    pub(crate) fn new(settings: &Settings, options: &crate::Options) -> Self {
        Self {
            user: settings.user.clone(),
            database: settings.database.clone(),
            application_name: settings.application_name.clone().unwrap_or_else(|| options.application_name.clone()),
            options: settings.options.clone(),
            target: settings.target,
            check_interval_millis: options.check_interval.as_millis(),
        }
    }
}

/// The server process at the other end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BackendIdentity {
    pub(crate) pid: i32,
    pub(crate) secret: Option<i32>,
    /// Together with `pid` it identifies a process for ever: a `pid` alone may be reused.
    pub(crate) backend_start: Box<str>,
    pub(crate) postmaster_start: Box<str>,
    pub(crate) version: Box<str>,
    /// A pooler stands between, which may use a different server process for each transaction.
    pub(crate) is_pooled: bool,
}

/// Why a connection was not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DialRefusal {
    /// `Denied` or `Unreachable`.
    pub(crate) kind: FailureKind,
    pub(crate) why: String,
    /// The kind of attempt that may succeed instead.
    pub(crate) next: Option<Setback>,
}

#[derive(Debug)]
pub(crate) struct Handshake {
    stage: HandshakeStage,
    identity: BackendIdentity,
    major_version: u32,
    refused: Option<ServerError>,
}

#[derive(Debug)]
enum HandshakeStage {
    Authenticating(Box<Authentication>),
    /// Logged in; `ParameterStatus` and `BackendKeyData` follow.
    Starting,
    /// The statement that identifies the server process has been sent.
    Identifying {
        answer: Option<Vec<Option<Box<str>>>>,
        sets_interval: bool,
    },
}

/// The effect of a message.
#[derive(Debug)]
pub(crate) enum HandshakeStep {
    Going,
    Ready(BackendIdentity),
}

const IDENTIFY: &str = "select pg_backend_pid(), a.backend_start, pg_postmaster_start_time(), pg_is_in_recovery(), \
     current_setting('transaction_read_only') from (select) one left join pg_stat_activity a on a.pid = pg_backend_pid()";

impl Handshake {
    /// Sends the start-up message.
    pub(crate) fn begin(terms: &Terms, password: Option<Secret>, wire: &mut Wire) -> Result<Self, DialRefusal> {
        let mut parameters = vec![
            ("user", &*terms.user),
            ("database", &terms.database),
            ("application_name", &terms.application_name),
            ("client_encoding", "UTF8"),
            ("DateStyle", "ISO"),
            ("TimeZone", "UTC"),
        ];
        parameters.extend(terms.options.as_deref().map(|options| ("options", options)));
        postgres_protocol::message::frontend::startup_message(parameters, &mut wire.out)
            .map_err(|error| DialRefusal::denied(format!("the settings cannot be sent: {error}")))?;
        Ok(Self {
            stage: HandshakeStage::Authenticating(Box::new(Authentication::new(password))),
            identity: BackendIdentity::default(),
            major_version: 0,
            refused: None,
        })
    }

    pub(crate) fn hear(
        &mut self,
        message: BackendMessage<'_>,
        terms: &Terms,
        wire: &mut Wire,
    ) -> Result<HandshakeStep, DialRefusal> {
        match (&mut self.stage, message) {
            (_, BackendMessage::Notice(notice)) => {
                tracing::debug!(sqlstate = %notice.code, "notice: {}", notice.message);
            }
            (_, BackendMessage::Setting { name: "server_version", value }) => self.learn_version(value),
            (HandshakeStage::Authenticating(stage), BackendMessage::Authentication { kind, data }) => {
                let is_let_in = stage.hear(kind, data, &terms.user, &mut wire.out)?;
                self.stage = if is_let_in { HandshakeStage::Starting } else { return Ok(HandshakeStep::Going) };
            }
            (HandshakeStage::Starting, BackendMessage::Key { pid, secret }) => {
                self.identity.pid = pid;
                self.identity.secret = Some(secret);
            }
            (HandshakeStage::Starting, BackendMessage::Ready(_)) => {
                self.identify(terms, self.major_version >= 14, wire);
            }
            (HandshakeStage::Identifying { answer, .. }, BackendMessage::Row(mut row))
                if answer.is_none() && row.count() == 5 =>
            {
                let value = |value: Option<&[u8]>| value.map(|value| String::from_utf8_lossy(value).into());
                let values: Result<Vec<_>, _> = (0..5).map(|_| row.next_value().map(value)).collect();
                *answer = Some(values.map_err(DialRefusal::broken)?);
            }
            (HandshakeStage::Identifying { .. }, BackendMessage::Error(error)) => self.refused = Some(error),
            (HandshakeStage::Identifying { .. }, BackendMessage::Ready(_)) => return self.identified(terms, wire),
            (_, BackendMessage::Error(error)) => return Err(DialRefusal::from(error)),
            _ => {}
        }
        Ok(HandshakeStep::Going)
    }

    /// A computation that takes long, for another thread.
    pub(crate) fn take_due(&mut self) -> Option<Computation> {
        match &mut self.stage {
            HandshakeStage::Authenticating(stage) => stage.take_due(),
            HandshakeStage::Starting | HandshakeStage::Identifying { .. } => None,
        }
    }

    pub(crate) fn computed(&mut self, computed: Computed, wire: &mut Wire) -> Result<(), DialRefusal> {
        match &mut self.stage {
            HandshakeStage::Authenticating(stage) => stage.computed(computed, &mut wire.out),
            HandshakeStage::Starting | HandshakeStage::Identifying { .. } => Ok(()),
        }
    }

    fn learn_version(&mut self, version: &str) {
        self.major_version =
            version.split(['.', ' ', 'b', 'r', 'd']).next().and_then(|major| major.parse().ok()).unwrap_or(0);
        self.identity.version = version.into();
    }

    /// Identifies the server process. The settings of the session make sense only for a process of our own: behind a
    /// pooler the second statement does nothing.
    fn identify(&mut self, terms: &Terms, sets_interval: bool, wire: &mut Wire) {
        let mut settings = vec![("IntervalStyle", "postgres".to_owned()), ("bytea_output", "hex".to_owned())];
        settings.push(("extra_float_digits", "1".to_owned()));
        if sets_interval {
            settings.push(("client_connection_check_interval", terms.check_interval_millis.to_string()));
        }
        let settings: Vec<_> =
            settings.iter().map(|(name, value)| format!("set_config('{name}', '{value}', false)")).collect();
        let pid = self.identity.pid;
        let text = format!("{IDENTIFY}; select {} where pg_backend_pid() = {pid}", settings.join(", "));
        write::simple(&mut wire.out, &text).expect("the statement is short and has no NUL");
        self.stage = HandshakeStage::Identifying { answer: None, sets_interval };
    }

    fn identified(&mut self, terms: &Terms, wire: &mut Wire) -> Result<HandshakeStep, DialRefusal> {
        let HandshakeStage::Identifying { answer, sets_interval } = &mut self.stage else {
            return Ok(HandshakeStep::Going);
        };
        let (answer, sets_interval) = (answer.take(), *sets_interval);
        match (self.refused.take(), answer) {
            // A platform that cannot detect a lost client refuses that setting.
            (Some(_), Some(_)) if sets_interval => {
                self.identify(terms, false, wire);
                Ok(HandshakeStep::Going)
            }
            (Some(error), _) if error.is_shutdown() => Err(error.into()),
            (_, Some(answer)) => self.check(terms, &answer),
            // It does not answer like PostgreSQL itself: there is a pooler.
            (_, None) => {
                self.identity.is_pooled = true;
                Ok(HandshakeStep::Ready(self.identity.clone()))
            }
        }
    }

    fn check(&mut self, terms: &Terms, answer: &[Option<Box<str>>]) -> Result<HandshakeStep, DialRefusal> {
        let [pid, backend_start, postmaster_start, is_in_recovery, is_read_only] = answer else {
            return Err(DialRefusal::broken(ProtocolViolation("an unexpected number of columns")));
        };
        let is = |value: &Option<Box<str>>, expected| value.as_deref() == Some(expected);
        let identity = &mut self.identity;
        let pid: Option<i32> = pid.as_deref().and_then(|pid| pid.parse().ok());
        identity.is_pooled = pid != Some(identity.pid) || backend_start.is_none() || postmaster_start.is_none();
        identity.backend_start = backend_start.clone().unwrap_or_default();
        identity.postmaster_start = postmaster_start.clone().unwrap_or_default();
        match unsuitable(terms.target, is(is_in_recovery, "t"), is(is_read_only, "on")) {
            Some(wanted) => {
                let why = format!("the server does not match target_session_attrs: {wanted}");
                Err(DialRefusal { kind: FailureKind::Unreachable, why, next: Some(Setback::OtherTarget) })
            }
            None => Ok(HandshakeStep::Ready(identity.clone())),
        }
    }
}

/// The error if the server is not of the required kind.
fn unsuitable(target: Target, is_in_recovery: bool, is_read_only: bool) -> Option<&'static str> {
    match target {
        Target::Any => None,
        Target::ReadWrite => is_read_only.then_some("read-write"),
        Target::ReadOnly => (!is_read_only).then_some("read-only"),
        Target::Primary => is_in_recovery.then_some("primary"),
        Target::Standby => (!is_in_recovery).then_some("standby"),
    }
}

impl DialRefusal {
    pub(crate) fn denied(why: impl Into<String>) -> Self {
        Self { kind: FailureKind::Denied, why: why.into(), next: None }
    }

    pub(crate) fn unreachable(why: impl Into<String>) -> Self {
        Self { kind: FailureKind::Unreachable, why: why.into(), next: None }
    }

    pub(crate) fn broken(broken: ProtocolViolation) -> Self {
        Self::unreachable(broken.to_string())
    }
}

impl From<ServerError> for DialRefusal {
    fn from(error: ServerError) -> Self {
        let denied = matches!(&*error.code, "28P01" | "28000" | "3D000" | "42501");
        let kind = if denied { FailureKind::Denied } else { FailureKind::Unreachable };
        let next = match &*error.code {
            "28000" => Some(Setback::Refused),
            "57P03" => Some(Setback::NoConnection),
            _ => None,
        };
        Self { kind, why: error.message.into(), next }
    }
}

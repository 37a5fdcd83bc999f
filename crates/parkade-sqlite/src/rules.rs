//! Refuses statements that would change a connection for its next user.
//!
//! SQLite asks during preparation. Only the application's own texts are checked, because VACUUM, for example, attaches
//! a file while it runs.

use std::cell::Cell;

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// With or without a value they only read, or change the file and not the connection.
const PRAGMAS: &[&str] = &[
    "application_id",
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "optimize",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
    "user_version",
];

/// Without a value they only read.
const PRAGMAS_READ: &[&str] = &[
    "auto_vacuum",
    "busy_timeout",
    "cache_size",
    "collation_list",
    "compile_options",
    "data_version",
    "database_list",
    "encoding",
    "foreign_keys",
    "freelist_count",
    "function_list",
    "journal_mode",
    "journal_size_limit",
    "module_list",
    "page_count",
    "page_size",
    "pragma_list",
    "query_only",
    "schema_version",
    "synchronous",
    "wal_autocheckpoint",
];

const TRANSACTION: &str = "BEGIN, COMMIT, ROLLBACK and SAVEPOINT are not supported as statements: use a transaction";
const ATTACH: &str = "ATTACH and DETACH are not supported: declare the other file as a separate database";
const PRAGMA: &str = "this PRAGMA is not supported: it would change a connection that others share";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trial {
    Off,
    On,
    Refused(&'static str),
}

thread_local! {
    static TRIAL: Cell<Trial> = const { Cell::new(Trial::Off) };
}

/// Prepares a text of the application. Returns the reason if these rules refuse it.
pub fn judged<T>(prepare: impl FnOnce() -> T) -> (T, Option<&'static str>) {
    TRIAL.set(Trial::On);
    let prepared = prepare();
    match TRIAL.replace(Trial::Off) {
        Trial::Refused(why) => (prepared, Some(why)),
        Trial::Off | Trial::On => (prepared, None),
    }
}

/// SQLite's authorizer.
pub fn judge(context: AuthContext<'_>) -> Authorization {
    match refusal(&context.action) {
        Some(why) if TRIAL.get() != Trial::Off => {
            TRIAL.set(Trial::Refused(why));
            Authorization::Deny
        }
        Some(_) | None => Authorization::Allow,
    }
}

fn refusal(action: &AuthAction<'_>) -> Option<&'static str> {
    match action {
        AuthAction::Transaction { .. } | AuthAction::Savepoint { .. } => Some(TRANSACTION),
        AuthAction::Attach { .. } | AuthAction::Detach { .. } => Some(ATTACH),
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let is_in = |list: &[&str]| list.iter().any(|name| name.eq_ignore_ascii_case(pragma_name));
            let is_allowed = is_in(PRAGMAS) || pragma_value.is_none() && is_in(PRAGMAS_READ);
            (!is_allowed).then_some(PRAGMA)
        }
        _ => None,
    }
}

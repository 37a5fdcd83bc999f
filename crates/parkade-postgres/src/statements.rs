//! The prepared statements of a connection, by their text. That one is stale is noticed in `slot/session`, and
//! `slot/backend` forgets it; `pool/server_facts` tells the other connections.

use std::collections::HashMap;
use std::sync::Arc;

use parkade_sql::{Column, Columns, Int8};

use crate::json::{Types, ValueWriter};
use crate::limits::STATEMENTS_COUNT_MAX;
use crate::wire::message::Field;

/// The server's description of a statement, and how its rows are written.
#[derive(Debug)]
pub(crate) struct Statement {
    /// Its name on the connection; empty if it has none.
    pub(crate) name: Box<str>,
    pub(crate) parameters: usize,
    pub(crate) columns: Columns,
    /// Some of its types were not looked up: they are written as strings.
    pub(crate) is_guessed: bool,
    as_numbers: Vec<ValueWriter>,
    as_text: Vec<ValueWriter>,
}

impl Statement {
    pub(crate) fn new(name: Box<str>, parameters: usize, fields: Vec<Field>, types: &Types) -> Self {
        let writers = |int8| fields.iter().map(|field| types.writer(field.oid, int8)).collect();
        let (as_numbers, as_text) = (writers(Int8::Number), writers(Int8::Text));
        let is_guessed = !types.unknown(fields.iter().map(|field| field.oid)).is_empty();
        let column = |field: Field| Column { name: field.name, kind: types.name(field.oid).into() };
        let columns = Columns::new(fields.into_iter().map(column).collect());
        Self { name, parameters, columns, is_guessed, as_numbers, as_text }
    }

    pub(crate) fn writers(&self, int8: Int8) -> &[ValueWriter] {
        match int8 {
            Int8::Number => &self.as_numbers,
            Int8::Text => &self.as_text,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Statements {
    by_text: HashMap<Arc<str>, Used>,
    names: u64,
    uses: u64,
    /// Dropped here, but not yet on the server.
    closing: Vec<Box<str>>,
}

#[derive(Debug)]
struct Used {
    statement: Arc<Statement>,
    last: u64,
}

impl Statements {
    pub(crate) fn find(&mut self, text: &str) -> Option<Arc<Statement>> {
        self.uses += 1;
        let used = self.by_text.get_mut(text)?;
        used.last = self.uses;
        Some(Arc::clone(&used.statement))
    }

    /// A name that was never used on this connection.
    pub(crate) fn name(&mut self) -> Box<str> {
        self.names += 1;
        format!("s{}", self.names).into()
    }

    pub(crate) fn remember(&mut self, text: &Arc<str>, statement: Arc<Statement>) {
        if self.by_text.len() >= STATEMENTS_COUNT_MAX {
            self.forget_oldest();
        }
        self.uses += 1;
        self.by_text.insert(Arc::clone(text), Used { statement, last: self.uses });
    }

    pub(crate) fn forget(&mut self, text: &str) {
        let forgotten = self.by_text.remove(text).map(|used| used.statement.name.clone());
        self.closing.extend(forgotten.filter(|name| !name.is_empty()));
    }

    /// No prepared statement may be used again.
    pub(crate) fn forget_all(&mut self) {
        let names = self.by_text.drain().map(|(_, used)| used.statement.name.clone());
        self.closing.extend(names.filter(|name| !name.is_empty()));
    }

    /// The names that the next flight has to close.
    pub(crate) fn take_closing(&mut self) -> impl Iterator<Item = Box<str>> {
        self.closing.drain(..)
    }

    fn forget_oldest(&mut self) {
        let oldest = self.by_text.iter().min_by_key(|(_, used)| used.last).map(|(text, _)| Arc::clone(text));
        if let Some(oldest) = oldest {
            self.forget(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_not_used_for_longest_is_closed() {
        let mut statements = Statements::default();
        let statement = |number: usize| Arc::new(Statement::new(format!("s{number}").into(), 0, vec![], &Types::new()));
        for number in 0..STATEMENTS_COUNT_MAX {
            statements.remember(&format!("{number}").into(), statement(number));
        }
        assert!(statements.find("0").is_some());
        statements.remember(&"another".into(), statement(1000));
        assert_eq!(statements.take_closing().collect::<Vec<_>>(), ["s1".into()]);
        assert!(statements.find("1").is_none() && statements.find("0").is_some());
    }
}

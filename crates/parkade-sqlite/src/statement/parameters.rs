//! Binds the parameters of a statement.
//!
//! `?` is the next parameter, `?2` and `$2` are the second. To SQLite `$2` is a name, numbered by its first occurrence.

use parkade_sql::{FailureKind, Parameter, QueryFailure};
use rusqlite::types::Null;
use rusqlite::{CachedStatement, Statement};

use crate::failures::StopReason;

pub fn bind(statement: &mut CachedStatement<'_>, parameters: &[Parameter]) -> Result<(), StopReason> {
    let numbers = numbers(statement)?;
    let wanted = numbers.iter().copied().max().unwrap_or(0);
    if wanted != parameters.len() {
        let message = format!("placeholders in the statement: {wanted}, parameters given: {}", parameters.len());
        return Err(QueryFailure::new(FailureKind::ParameterCount, message).into());
    }
    for (index, number) in numbers.into_iter().enumerate() {
        bind_one(statement, index + 1, &parameters[number - 1])?;
    }
    Ok(())
}

/// The number of the parameter, from 1, for each of SQLite's indices.
fn numbers(statement: &Statement<'_>) -> Result<Vec<usize>, QueryFailure> {
    let number = |index| match statement.parameter_name(index) {
        None => Ok(index),
        Some(name) => match name.strip_prefix(['$', '?']).and_then(|digits| digits.parse().ok()) {
            Some(number) if number > 0 => Ok(number),
            Some(_) | None => {
                let message = format!("the placeholder {name} is not supported: write $1, $2…");
                Err(QueryFailure::new(FailureKind::Unsupported, message))
            }
        },
    };
    (1..=statement.parameter_count()).map(number).collect()
}

fn bind_one(statement: &mut CachedStatement<'_>, index: usize, parameter: &Parameter) -> Result<(), StopReason> {
    match parameter {
        Parameter::Null => statement.raw_bind_parameter(index, Null)?,
        Parameter::Bool(value) => statement.raw_bind_parameter(index, value)?,
        Parameter::Int(value) => statement.raw_bind_parameter(index, value)?,
        Parameter::Float(value) => statement.raw_bind_parameter(index, value)?,
        Parameter::Text(text) | Parameter::Json(text) => statement.raw_bind_parameter(index, &**text)?,
        Parameter::Blob(bytes) => statement.raw_bind_parameter(index, &**bytes)?,
        Parameter::Array(_) => {
            let message = "SQLite has no arrays: give a JSON document and use json_each";
            return Err(QueryFailure::new(FailureKind::Unsupported, message).into());
        }
    }
    Ok(())
}

//! Reads the waits for a database. As with all waits, a fault after the name is not a violation (see `park::wait`).

use parkade_model::{Int8, Isolation, Parameter, Shape};

use super::read::{Reader, Value};
use crate::error::PayloadFault;
use crate::limits::{ARRAY_DEPTH_MAX, PARAMETERS_COUNT_MAX, SHARED_KEY_BYTES_MAX, STATEMENT_BYTES_MAX};
use crate::query::{Begin, QueryOptions, QueryRequest};
use crate::wait::WaitRequest;

/// `["query", text, parameters, options]`
pub(super) fn query(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(4, |reader| {
        reader.skip(1)?;
        let text = statement(reader)?.into();
        let parameters = parameters(reader)?;
        Ok(WaitRequest::Query(Box::new(QueryRequest { text, parameters, options: query_options(reader)? })))
    })
}

/// `["begin", options]`
pub(super) fn begin(reader: &mut Reader) -> Result<WaitRequest, PayloadFault> {
    reader.array(2, |reader| {
        reader.skip(1)?;
        let mut begin = Begin::default();
        reader.map(|reader, key| {
            match key {
                "database" => begin.database = Some(database(reader)?),
                "isolation" => begin.mode.isolation = reader.optional(isolation)?,
                "read_only" => begin.mode.is_read_only = reader.boolean("read_only is a boolean")?,
                "deadline" => begin.deadline = reader.optional(Reader::seconds)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(WaitRequest::Begin(Box::new(begin)))
    })
}

/// `["commit", options]` or `["rollback", options]`: this version knows no options.
pub(super) fn end(reader: &mut Reader) -> Result<(), PayloadFault> {
    reader.array(2, |reader| {
        reader.skip(1)?;
        reader.map(|_, _| Ok(false))
    })
}

fn statement<'a>(reader: &mut Reader<'a>) -> Result<&'a str, PayloadFault> {
    let text = reader.text("a query is text")?;
    if text.is_empty() || text.len() > STATEMENT_BYTES_MAX {
        return Err(PayloadFault::payload("a query has 1 to 262,144 bytes"));
    }
    if text.as_bytes().contains(&0) {
        return Err(PayloadFault::payload("a query has no NUL"));
    }
    Ok(text)
}

fn parameters(reader: &mut Reader) -> Result<Vec<Parameter>, PayloadFault> {
    match reader.any()? {
        Value::Array(length) if length as usize > PARAMETERS_COUNT_MAX => {
            Err(PayloadFault::payload("a query has at most 65,535 parameters"))
        }
        Value::Array(length) => values(reader, length, 0),
        _ => Err(PayloadFault::payload("parameters are an array")),
    }
}

/// The wait is complete, so everything it claims is there: the memory can be reserved at once.
fn values(reader: &mut Reader, length: u32, depth: usize) -> Result<Vec<Parameter>, PayloadFault> {
    let mut values = Vec::with_capacity(length as usize);
    for _ in 0..length {
        values.push(parameter(reader, depth)?);
    }
    Ok(values)
}

fn parameter(reader: &mut Reader, depth: usize) -> Result<Parameter, PayloadFault> {
    Ok(match reader.any()? {
        Value::Nil => Parameter::Null,
        Value::Boolean(value) => Parameter::Bool(value),
        Value::Integer(value) => Parameter::Int(value),
        Value::Float(value) => Parameter::Float(value),
        Value::Text(value) => Parameter::Text(value.into()),
        Value::Binary(value) => Parameter::Blob(value.into()),
        Value::Array(_) if depth == ARRAY_DEPTH_MAX => {
            return Err(PayloadFault::payload("a parameter has at most 6 arrays in one another"));
        }
        Value::Array(length) => Parameter::Array(values(reader, length, depth + 1)?),
        Value::Map(length) => Parameter::Json(json(reader, length)?),
    })
}

fn json(reader: &mut Reader, length: u32) -> Result<Box<str>, PayloadFault> {
    let mut json = None;
    reader.pairs(length, |reader, key| match key {
        "json" => reader.text("a JSON document is text").map(|text| json = Some(text.into())).map(|()| true),
        _ => Ok(false),
    })?;
    json.ok_or(PayloadFault::payload("a parameter that is a map has json"))
}

fn query_options(reader: &mut Reader) -> Result<QueryOptions, PayloadFault> {
    let mut options = QueryOptions::default();
    reader.map(|reader, key| {
        match key {
            "database" => options.database = Some(database(reader)?),
            "shape" => options.shape = shape(reader)?,
            "deadline" => options.deadline = reader.optional(Reader::seconds)?,
            "int8" => options.int8 = int8(reader)?,
            "shared" => options.shared = reader.optional(key_of_shared)?,
            "ttl" => options.ttl = reader.seconds()?,
            "within" => options.within = reader.boolean("within is a boolean")?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    match options {
        QueryOptions { shared: None, ttl, .. } if ttl > 0.0 => Err(PayloadFault::payload("a ttl goes with shared")),
        QueryOptions { shared: Some(_), within: true, .. } => {
            Err(PayloadFault::payload("shared does not go with within"))
        }
        options => Ok(options),
    }
}

fn database(reader: &mut Reader) -> Result<Box<str>, PayloadFault> {
    reader.text("a database's name is text").map(Into::into)
}

fn shape(reader: &mut Reader) -> Result<Shape, PayloadFault> {
    Shape::of(reader.text("shape is text")?).ok_or(PayloadFault::payload("shape is rows, one or value"))
}

fn int8(reader: &mut Reader) -> Result<Int8, PayloadFault> {
    Int8::of(reader.text("int8 is text")?).ok_or(PayloadFault::payload("int8 is number or string"))
}

fn key_of_shared(reader: &mut Reader) -> Result<Box<str>, PayloadFault> {
    let key = reader.text("shared is text")?;
    if key.is_empty() || key.len() > SHARED_KEY_BYTES_MAX {
        return Err(PayloadFault::payload("shared has 1 to 200 bytes"));
    }
    Ok(key.into())
}

fn isolation(reader: &mut Reader) -> Result<Isolation, PayloadFault> {
    let level = Isolation::of(reader.text("isolation is text")?);
    level.ok_or(PayloadFault::payload("isolation is read committed, repeatable read or serializable"))
}

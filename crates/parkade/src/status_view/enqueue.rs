//! `parkade enqueue`: a job from the command line.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parkade_model::JobId;
use parkade_wire::limits::ARGUMENTS_BYTES_MAX;
use rmpv::Value;
use serde::Deserialize;
use serde_json::json;

use super::{AdminAddress, AskError, CommandError};
use crate::cli::EnqueueArgs;
use crate::job_id::minted;
use crate::terminal;

/// Characters of a refused argument in the error.
const SHOWN_CHARACTERS_MAX: usize = 60;
/// The version of the arguments' encoding, for workers.
const ARGUMENTS_VERSION: u8 = 1;

#[derive(Deserialize)]
struct EnqueuedJob {
    id: String,
    state: String,
}

/// Prints the id of the stored job.
pub fn enqueue(args: &EnqueueArgs) -> Result<(), CommandError> {
    let address = AdminAddress::find(&args.whom)?;
    let id = JobId::new(minted()).to_string();
    let body = body(args, &id)?;
    let answer = address.ask("POST", "/jobs", "application/json", body.to_string().as_bytes())?;
    let no_sense = |_| AskError::NoSense { place: address.to_string() };
    let enqueued: EnqueuedJob = serde_json::from_slice(&answer).map_err(no_sense)?;
    if enqueued.id != id {
        eprintln!("parkade: a job with this key exists already, and is {}; this is its id", enqueued.state);
    }
    Ok(terminal::print(&enqueued.id)?)
}

fn body(args: &EnqueueArgs, id: &str) -> Result<serde_json::Value, CommandError> {
    let arguments = packed(&args.arguments, &args.keyword)?;
    if arguments.len() > ARGUMENTS_BYTES_MAX {
        return Err(CommandError::Arguments { count: arguments.len(), max: ARGUMENTS_BYTES_MAX });
    }
    Ok(json!({
        "id": id,
        "name": args.name,
        "arguments": STANDARD.encode(arguments),
        "delay": args.delay.map(|delay| delay.as_secs_f64()),
        "priority": args.priority,
        "queue": args.queue,
        "key": args.key,
        "known": !args.force,
    }))
}

/// The MessagePack of `[1, [argument…], {name: argument…}]`. If a name is given twice, the last one counts.
fn packed(arguments: &[String], keywords: &[(String, String)]) -> Result<Vec<u8>, CommandError> {
    let mut named: Vec<(Value, Value)> = Vec::new();
    for (name, text) in keywords {
        named.retain(|(known, _)| known.as_str() != Some(name));
        named.push((name.as_str().into(), value(text)?));
    }
    let arguments = arguments.iter().map(|text| value(text)).collect::<Result<_, _>>()?;
    let all = Value::Array(vec![ARGUMENTS_VERSION.into(), Value::Array(arguments), Value::Map(named)]);
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &all).expect("a vector takes all that is written to it");
    Ok(bytes)
}

/// The value of an argument: JSON if it parses as JSON, otherwise text. A number that MessagePack cannot represent is
/// refused instead of rounded.
fn value(text: &str) -> Result<Value, CommandError> {
    let number = || CommandError::Number(shortened(text));
    match serde_json::from_str(text) {
        Ok(_) if has_large_integer(text) => Err(number()),
        Ok(json) => Ok(of_json(json)),
        Err(error) if error.to_string().starts_with("number out of range") => Err(number()),
        Err(_) => Ok(text.into()),
    }
}

/// Whether an integer in this JSON does not fit into 64 bits: `serde_json` would make it a float.
fn has_large_integer(json: &str) -> bool {
    let (mut is_text, mut is_escaped, mut number) = (false, false, String::new());
    for character in json.chars().chain([' ']) {
        let begins = matches!(character, '0'..='9' | '-');
        let goes_on = begins || !number.is_empty() && matches!(character, '+' | '.' | 'e' | 'E');
        if is_text {
            is_text = is_escaped || character != '"';
            is_escaped = character == '\\' && !is_escaped;
        } else if goes_on {
            number.push(character);
        } else {
            let is_integer = !number.is_empty() && !number.contains(['.', 'e', 'E']);
            if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
                return true;
            }
            number.clear();
            is_text = character == '"';
        }
    }
    false
}

/// Shortened for the terminal.
fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn of_json(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::Nil,
        serde_json::Value::Bool(boolean) => boolean.into(),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(signed), _) => signed.into(),
            (None, Some(unsigned)) => unsigned.into(),
            (None, None) => number.as_f64().map_or(Value::Nil, Into::into),
        },
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(values) => Value::Array(values.into_iter().map(of_json).collect()),
        serde_json::Value::Object(pairs) => {
            Value::Map(pairs.into_iter().map(|(key, value)| (key.into(), of_json(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job_values::shown;

    fn told(arguments: &[&str], keywords: &[(&str, &str)]) -> String {
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let keywords: Vec<_> = keywords.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
        shown(&packed(&arguments, &keywords).unwrap().into()).unwrap()
    }

    #[test]
    fn an_argument_is_json_where_it_can_be_and_else_text() {
        assert_eq!(told(&[], &[]), "[1,[],{}]");
        let arguments =
            ["7", "-1.5", "null", "true", "\"7\"", "text", "{\"a\":[1]}", "{a}", "", "18446744073709551615"];
        let expected = r#"[1,[7,-1.5,null,true,"7","text",{"a":[1]},"{a}","",18446744073709551615],{}]"#;
        assert_eq!(told(&arguments, &[]), expected);
    }

    #[test]
    fn a_number_that_has_no_64_bits_is_refused_instead_of_rounded() {
        let long = "9".repeat(400);
        for text in [
            "18446744073709551616",
            "-9223372036854775809",
            "[1, {\"a\": [18446744073709551616]}]",
            "{\"\\\"\": 18446744073709551616}",
            &long,
            &format!("[{long}]"),
            "1e999",
        ] {
            assert!(matches!(value(text), Err(CommandError::Number(_))), "{text}");
        }
        let said = value(&long).unwrap_err().to_string();
        let expected = "the number in 999999999999999999999999999999999999999999999999999999999999… does not fit into 64 bits: \
                        pass it as text, '\"…\"'";
        assert_eq!(said, expected);
    }

    #[test]
    fn numbers_that_have_64_bits_and_texts_are_what_they_are() {
        let arguments = [
            "-9223372036854775808",
            "1e3",
            "150000000000000000000.5",
            "\"18446744073709551616\"",
            "{\"18446744073709551616\": \"\\\\\"}",
            "00018446744073709551616",
            "+491701234567890123456789",
            "text 18446744073709551616",
            "[-0, true, false]",
        ];
        let expected = r#"[1,[-9223372036854775808,1000.0,1.5e+20,"18446744073709551616",{"18446744073709551616":"\\"},"00018446744073709551616","+491701234567890123456789","text 18446744073709551616",[-0.0,true,false]],{}]"#;
        assert_eq!(told(&arguments, &[]), expected);
    }

    #[test]
    fn keywords_have_their_names_and_the_last_of_a_name_counts() {
        assert_eq!(told(&["x"], &[("b", "1"), ("a", "y"), ("b", "2")]), r#"[1,["x"],{"a":"y","b":2}]"#);
    }
}

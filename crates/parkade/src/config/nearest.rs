//! Finds the known name that a misspelt one was probably meant to be.

/// The nearest of `known`, unless none is close enough.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const NEAR: f64 = 0.7; // clap's own threshold for flags
    let wrong = wrong.to_lowercase().replace('_', "-");
    let scored = known.into_iter().map(|name| (strsim::jaro(&wrong, &name.to_lowercase().replace('_', "-")), name));
    let (_, name) = scored.filter(|(score, _)| *score > NEAR).max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(name)
}

/// The advice after a refused name: the nearest known one, else all of them.
pub fn advice(wrong: &str, known: &[String]) -> String {
    match nearest(wrong, known.iter().map(String::as_str)) {
        Some(name) => format!("did you mean `{name}`?"),
        None => format!("the known ones are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_name_that_was_meant() {
        let known = ["deadline", "max-requests", "max-memory", "keep-alive"];
        for (wrong, meant) in [
            ("deadlin", Some("deadline")),
            ("max_requests", Some("max-requests")),
            ("maxmemory", Some("max-memory")),
            ("keepalive", Some("keep-alive")),
            ("zzz", None),
        ] {
            assert_eq!(nearest(wrong, known), meant, "{wrong}");
        }
    }
}

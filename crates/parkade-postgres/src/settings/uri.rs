//! Parses the address form, `postgres://user:password@host:port,host2/database?key=value`, as libpq does.

use super::error::SettingsError;

/// The text after `postgres://` or `postgresql://`, if it has this form.
pub fn behind_scheme(text: &str) -> Option<&str> {
    text.strip_prefix("postgres://").or_else(|| text.strip_prefix("postgresql://"))
}

/// Each setting in the order of the text; later ones override earlier ones.
pub fn pairs(rest: &str) -> Result<Vec<(String, String)>, SettingsError> {
    let mut pairs = Vec::new();
    let rest = match rest.find(['@', '/']).filter(|at| rest[*at..].starts_with('@')) {
        Some(at) => {
            credentials(&rest[..at], &mut pairs)?;
            &rest[at + 1..]
        }
        None => rest,
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    // This @ was meant as a part of a password. Otherwise its rest would be taken for a host or a database, which are
    // shown.
    if place.contains('@') {
        return Err(SettingsError::Reserved);
    }
    let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
    netloc(hosts, &mut pairs)?;
    add(&mut pairs, "dbname", database)?;
    parameters(query, &mut pairs)?;
    Ok(pairs)
}

fn credentials(text: &str, pairs: &mut Vec<(String, String)>) -> Result<(), SettingsError> {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    add(pairs, "user", user)?;
    add(pairs, "password", password)
}

/// Hosts and ports become lists with commas, as in the other form.
fn netloc(text: &str, pairs: &mut Vec<(String, String)>) -> Result<(), SettingsError> {
    let each = text.split(',').map(host_port).collect::<Result<Vec<_>, _>>()?;
    let (hosts, ports): (Vec<_>, Vec<_>) = each.into_iter().unzip();
    if hosts.iter().any(|host| !host.is_empty()) {
        add(pairs, "host", &hosts.join(","))?;
    }
    if ports.iter().any(|port| !port.is_empty()) {
        add(pairs, "port", &ports.join(","))?;
    }
    Ok(())
}

fn host_port(text: &str) -> Result<(&str, &str), SettingsError> {
    let Some(bracketed) = text.strip_prefix('[') else {
        return Ok(text.split_once(':').unwrap_or((text, "")));
    };
    let (host, behind) = bracketed.split_once(']').ok_or(SettingsError::Bracket)?;
    match behind.strip_prefix(':') {
        Some(port) => Ok((host, port)),
        None if behind.is_empty() => Ok((host, "")),
        None => Err(SettingsError::Bracket),
    }
}

fn parameters(query: &str, pairs: &mut Vec<(String, String)>) -> Result<(), SettingsError> {
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (key, value) = parameter.split_once('=').ok_or(SettingsError::Form)?;
        match (&*decoded(key)?, value) {
            // JDBC's spelling, which libpq accepts too.
            ("ssl", "true") => pairs.push(("sslmode".into(), "require".into())),
            (key, _) => pairs.push((key.to_owned(), decoded(value)?)),
        }
    }
    Ok(())
}

fn add(pairs: &mut Vec<(String, String)>, key: &str, value: &str) -> Result<(), SettingsError> {
    if !value.is_empty() {
        pairs.push((key.to_owned(), decoded(value)?));
    }
    Ok(())
}

fn decoded(text: &str) -> Result<String, SettingsError> {
    let is_encoded = |behind: &str| behind.len() >= 2 && behind.bytes().take(2).all(|byte| byte.is_ascii_hexdigit());
    if !text.split('%').skip(1).all(is_encoded) {
        return Err(SettingsError::Percent);
    }
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8().map_err(|_| SettingsError::Percent)?;
    Ok(decoded.into_owned())
}

//! The password file: `host:port:database:user:password` in each line; the first match counts.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::hosts::{Host, HostPlace, SOCKET_FOLDERS};
use super::secret::Secret;

/// The text of the file; `None` if it does not exist, or if other users may read it.
pub fn read(path: &Path) -> Option<String> {
    let metadata = std::fs::metadata(path).ok()?;
    if !metadata.is_file() {
        tracing::warn!(path = %path.display(), "the password file is ignored: it is not a plain file");
        return None;
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        tracing::warn!(path = %path.display(), "the password file is ignored: others can read it; chmod 0600 it");
        return None;
    }
    match std::fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the password file cannot be read");
            None
        }
    }
}

/// Where it is, unless a setting says otherwise.
pub fn usual(home: &Path) -> PathBuf {
    home.join(".pgpass")
}

/// The password of the first matching line.
pub fn password(text: &str, host: &Host, database: &str, user: &str) -> Option<Secret> {
    let port = host.port.to_string();
    let wanted = [name(host), &port, database, user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let rest = wanted.iter().try_fold(line, |rest, wanted| fits(rest, wanted))?;
        Some(rest).filter(|password| !password.is_empty()).map(|password| Secret::new(unescaped(password)))
    })
}

/// The default sockets are called localhost here.
fn name(host: &Host) -> &str {
    match &host.place {
        HostPlace::Unix(_) if SOCKET_FOLDERS.contains(&&*host.name) => "localhost",
        HostPlace::Unix(_) | HostPlace::Address(_) | HostPlace::Name => &host.name,
    }
}

/// The text after the first field, if that field matches or is `*`.
fn fits<'a>(line: &'a str, wanted: &str) -> Option<&'a str> {
    let (field, rest) = line.split_at(end(line)?);
    (field == "*" || unescaped(field) == wanted).then(|| &rest[1..])
}

/// The first colon without a backslash before it.
fn end(line: &str) -> Option<usize> {
    let mut letters = line.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            ':' => return Some(at),
            '\\' => drop(letters.next()),
            _ => {}
        }
    }
    None
}

/// Like libpq, the password ends at the next unescaped colon.
fn unescaped(field: &str) -> String {
    let field = &field[..end(field).unwrap_or(field.len())];
    let mut letters = field.chars();
    let mut text = String::with_capacity(field.len());
    while let Some(letter) = letters.next() {
        text.push(if letter == '\\' { letters.next().unwrap_or(letter) } else { letter });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# shop:5432:*:*:comment\n\
        db:5432:shop:kim:plain\n\
        db:5432:*:kim:any database\n\
        d\\:b:*:sh\\\\op:kim:es\\:ca\\\\ped\n\
        localhost:*:*:*:by socket\n\
        empty:*:*:*:\n\
        *:6000:*:*:any host:not this\n\
        /srv/pg:*:*:*:other socket\n";

    fn host(name: &str, port: u16) -> Host {
        let place = if name.starts_with('/') { HostPlace::Unix(name.into()) } else { HostPlace::Name };
        Host { name: name.into(), port, place, password: None }
    }

    #[test]
    fn the_first_line_that_fits_counts() {
        for (name, port, database, user, found) in [
            ("db", 5432, "shop", "kim", Some("plain")),
            ("db", 5432, "other", "kim", Some("any database")),
            ("db", 5432, "shop", "lee", None),
            ("db", 5433, "shop", "kim", None),
            ("d:b", 1, "sh\\op", "kim", Some("es:ca\\ped")),
            ("localhost", 1, "x", "y", Some("by socket")),
            ("/var/run/postgresql", 5432, "x", "y", Some("by socket")),
            ("/tmp", 5432, "x", "y", Some("by socket")),
            ("/srv/pg", 5432, "x", "y", Some("other socket")),
            ("empty", 5432, "x", "y", None),
            ("shop", 6000, "x", "y", Some("any host")),
            ("shop", 5432, "x", "y", None),
        ] {
            let found = found.map(Secret::new);
            let password = password(FILE, &host(name, port), database, user);
            assert!(password == found, "{name}:{port}:{database}:{user}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_is_ignored() {
        let path = std::env::temp_dir().join(format!("parkade-pgpass-{}", std::process::id()));
        std::fs::write(&path, FILE).unwrap();
        for (mode, is_read) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(read(&path).is_some(), is_read, "{mode:o}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read(&path), None);
        assert_eq!(read(&std::env::temp_dir()), None);
    }
}

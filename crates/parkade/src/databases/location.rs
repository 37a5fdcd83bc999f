//! Where a database is: the value of `--database`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The database of queries that name none.
const DEFAULT: &str = "default";
/// The file of the embedded database in the state folder.
const EMBEDDED_FILE: &str = "default.db";

/// A database and the name that applications use for it.
#[derive(Clone, PartialEq, Eq)]
pub struct Location {
    name: String,
    place: DatabaseLocation,
    is_embedded: bool,
}

#[derive(Clone, PartialEq, Eq)]
pub enum DatabaseLocation {
    /// A connection string. It may contain a password, so it is never printed.
    Postgres(String),
    Sqlite(PathBuf),
}

impl Location {
    pub fn embedded(state: &Path) -> Self {
        let place = DatabaseLocation::Sqlite(state.join(EMBEDDED_FILE));
        Self { name: DEFAULT.into(), place, is_embedded: true }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn place(&self) -> &DatabaseLocation {
        &self.place
    }

    /// Whether it is there because no `--database` is called `default`.
    pub fn is_embedded(&self) -> bool {
        self.is_embedded
    }

    pub fn is_default(&self) -> bool {
        self.name == DEFAULT
    }

    pub fn is_postgres(&self) -> bool {
        matches!(self.place, DatabaseLocation::Postgres(_))
    }
}

impl FromStr for Location {
    type Err = String;

    /// `postgres://…`, `sqlite:///file.db`, or either after `name=`.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, url) = match text.split_once('=') {
            Some((name, url)) if is_name(name) => (name, url),
            Some(_) | None => (DEFAULT, text),
        };
        let place = match url.split_once(':') {
            Some(("postgres" | "postgresql", _)) => DatabaseLocation::Postgres(url.to_owned()),
            Some(("sqlite", path)) => DatabaseLocation::Sqlite(sqlite_file(path)?),
            Some(_) | None => return Err(HOW_TO_WRITE_A_DATABASE.into()),
        };
        Ok(Self { name: name.to_owned(), place, is_embedded: false })
    }
}

/// Shows only the name, because the URL may contain a password.
impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.name)
    }
}

const HOW_TO_WRITE_A_DATABASE: &str =
    "write postgres://user@host/name or sqlite:///folder/file.db, with name= before it when there are several";

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// `///folder/file.db` and `//folder/file.db`, as usual: three slashes before a relative path, four for an absolute
/// one. A bare path is accepted, too.
fn sqlite_file(path: &str) -> Result<PathBuf, String> {
    let file = path.strip_prefix("///").unwrap_or(path);
    if file.is_empty() || file.starts_with("//") {
        return Err(
            "write sqlite:///file.db for a file in this folder, sqlite:////var/lib/file.db for an absolute path".into(),
        );
    }
    Ok(file.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_has_a_name_and_a_place() {
        let sqlite = |file: &str| DatabaseLocation::Sqlite(file.into());
        let postgres = |url: &str| DatabaseLocation::Postgres(url.into());
        for (text, name, place) in [
            ("postgres://a@b/c", "default", postgres("postgres://a@b/c")),
            ("shop=postgresql://a@b/c?x=y", "shop", postgres("postgresql://a@b/c?x=y")),
            ("postgres:///c?host=/run", "default", postgres("postgres:///c?host=/run")),
            ("sqlite:///file.db", "default", sqlite("file.db")),
            ("log=sqlite:////var/lib/file.db", "log", sqlite("/var/lib/file.db")),
            ("sqlite:file.db", "default", sqlite("file.db")),
        ] {
            let location: Location = text.parse().unwrap();
            assert_eq!((location.name(), location.place() == &place), (name, true), "{text}");
        }
    }

    #[test]
    fn what_is_no_database_is_refused_without_being_repeated() {
        for text in ["mysql://root:secret@localhost/shop", "", "shop", "shop=", "sqlite:", "sqlite://host/file.db"] {
            let refusal = text.parse::<Location>().unwrap_err();
            assert!(refusal.starts_with("write ") && !refusal.contains("secret"), "{text}: {refusal}");
        }
    }
}

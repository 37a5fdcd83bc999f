//! Which files count as the application's.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::own_files::OwnFiles;
use crate::language::Language;

/// A folder with many files, none of them the application's own. Others depend on its language.
const IGNORED_FOLDER: &str = "node_modules";
/// Settings, templates, and what pages are made of, in any language: applications read these at their start. Code is known by
/// its language.
const WATCHED_ENDINGS: [&str; 11] = ["toml", "ini", "yaml", "yml", "conf", "html", "htm", "css", "js", "mjs", "svg"];
/// What applications read at their start, but also write.
const DATA_ENDINGS: [&str; 5] = ["json", "txt", "md", "sql", "xml"];
/// The one hidden file that counts.
const SETTINGS_FILE: &str = ".env";

/// What the operator says in addition, and what the application writes itself.
#[derive(Debug, Clone, Default)]
pub struct Patterns {
    pub watch: Vec<String>,
    pub ignore: Vec<String>,
    pub own: OwnFiles,
    /// Nobody tells which files the application writes. Then data does not count: an application that writes it would be
    /// loaded anew by each request, or without end.
    pub leaves_out_data: bool,
}

impl Patterns {
    /// Folders that are watched in addition to the application's.
    pub fn folders(&self) -> impl Iterator<Item = PathBuf> + '_ {
        self.watch.iter().map(PathBuf::from).filter(|path| path.is_dir())
    }

    /// By its last name, or by its path: what lies in an ignored folder is not watched.
    pub fn is_ignored(&self, path: &Path) -> bool {
        let name = name(path);
        let is_hidden = name.starts_with('.') && name != SETTINGS_FILE;
        let is_usual = is_hidden && !matches(&self.watch, path);
        is_usual || is_left_out(name) || matches(&self.ignore, path)
    }

    pub fn is_watched(&self, path: &Path) -> bool {
        let ending = path.extension().and_then(OsStr::to_str);
        let is_usual = ending.is_some_and(|ending| self.is_of_application(ending)) || name(path) == SETTINGS_FILE;
        is_usual || matches(&self.watch, path)
    }

    fn is_of_application(&self, ending: &str) -> bool {
        WATCHED_ENDINGS.contains(&ending)
            || !self.leaves_out_data && DATA_ENDINGS.contains(&ending)
            || Language::all().any(|facts| facts.watched_endings.contains(&ending))
    }

    /// Whether the application has opened it to write it.
    pub fn is_own(&self, path: &Path) -> bool {
        self.own.contains(path)
    }
}

fn is_left_out(name: &str) -> bool {
    name == IGNORED_FOLDER || Language::all().any(|facts| facts.ignored_folders.contains(&name))
}

fn name(path: &Path) -> &str {
    path.file_name().and_then(OsStr::to_str).unwrap_or_default()
}

/// A pattern with a slash is about the path as it is seen from the present folder, any other about the name.
fn matches(patterns: &[String], path: &Path) -> bool {
    let here = std::env::current_dir().unwrap_or_default();
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.into());
    let relative = absolute.strip_prefix(&here).unwrap_or(&absolute).to_string_lossy();
    patterns.iter().any(|pattern| {
        let pattern = pattern.strip_prefix("./").unwrap_or(pattern).trim_end_matches('/');
        if pattern.contains('/') {
            fits(pattern.as_bytes(), relative.as_bytes())
        } else {
            fits(pattern.as_bytes(), name(path).as_bytes())
        }
    })
}

/// A `*` is any text. Of two ways to fit the shorter is tried first; a pattern is the operator's, so its cost is, too.
fn fits(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skipped| fits(rest, &text[skipped..])),
        Some((first, rest)) => text.split_first().is_some_and(|(letter, text)| letter == first && fits(rest, text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(patterns: &Patterns, path: &str) -> bool {
        patterns.is_watched(Path::new(path)) && !patterns.is_ignored(Path::new(path))
    }

    #[test]
    fn only_what_belongs_to_the_application_counts() {
        for (path, expected) in [
            ("shop/app.py", true),
            ("parkade.toml", true),
            ("templates/page.html", true),
            ("page.css", true),
            ("page.js", true),
            ("settings.yaml", true),
            (".env", true),
            ("bin/app.psgi", true),
            ("lib/Shop.pm", true),
            ("t/basic.t", true),
            ("templates/page.html.ep", true),
            ("views/page.mt", true),
            ("views/page.tt", true),
            ("views/page.tx", true),
            ("shop.conf", true),
            ("shop/app.pyc", false),
            ("shop/.app.py.swp", false),
            ("shop/.#app.py", false),
            ("shop.log", false),
            ("data.sqlite", false),
        ] {
            assert_eq!(counts(&Patterns::default(), path), expected, "{path}");
        }
        for folder in [".venv", ".git", "__pycache__", "site-packages", "node_modules", "local", "blib"] {
            assert!(Patterns::default().is_ignored(&Path::new("shop").join(folder)), "{folder}");
        }
    }

    #[test]
    fn patterns_add_and_leave_out() {
        let patterns = Patterns {
            watch: vec!["*.graphql".into(), "data/*.csv".into(), ".flags".into()],
            ignore: vec!["*.txt".into(), "./cache/".into(), "build/gen*".into()],
            ..Patterns::default()
        };
        for (path, expected) in [
            ("api/shop.graphql", true),
            ("data/x.csv", true),
            ("other/x.csv", false),
            (".flags", true),
            ("notes.txt", false),
            ("app.py", true),
            ("build/generated.py", false),
            ("build/app.py", true),
        ] {
            assert_eq!(counts(&patterns, path), expected, "{path}");
        }
        assert!(patterns.is_ignored(Path::new("shop/cache")), "a folder");
    }

    #[test]
    fn data_does_not_count_if_nobody_tells_who_writes_it() {
        let told = Patterns::default();
        let untold = Patterns { leaves_out_data: true, watch: vec!["prices.json".into()], ..Patterns::default() };
        for data in ["data.json", "visits.txt", "notes.md", "dump.sql", "feed.xml"] {
            assert_eq!((counts(&told, data), counts(&untold, data)), (true, false), "{data}");
        }
        for path in ["app.psgi", "config.yml", "page.html", "prices.json"] {
            assert!(counts(&untold, path), "{path}");
        }
    }

    #[test]
    fn a_star_is_any_text() {
        for (pattern, text, expected) in [
            ("*.py", "app.py", true),
            ("*", "", true),
            ("a*b*c", "a--b-b-c", true),
            ("a*b", "abc", false),
            ("app.py", "app.pyc", false),
        ] {
            assert_eq!(fits(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }
}

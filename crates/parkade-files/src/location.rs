//! Which file of a folder a request's path names. What is not plainly below the folder names nothing.

use percent_encoding::percent_decode_str;

/// How a path names a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LocationRules {
    /// So many segments of the path come before those of the file.
    pub depth: usize,
    /// Names that begin with a dot count, too.
    pub with_hidden: bool,
}

/// A file of a folder, or a folder in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLocation {
    /// Names with slashes between them; empty: the folder itself.
    pub path: String,
    /// The path ends with a slash, so only a folder can be meant.
    pub is_folder: bool,
    /// The last segment of the request's path, as sent.
    last: String,
}

impl FileLocation {
    /// `path`: a request's path, as sent. `None`: it names nothing.
    #[must_use]
    pub fn of(path: &str, rules: LocationRules) -> Option<Self> {
        let mut segments: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        if segments.len() < rules.depth {
            return None;
        }
        let last = (*segments.iter().rev().find(|segment| !segment.is_empty()).unwrap_or(&"")).to_owned();
        let mut segments = segments.split_off(rules.depth);
        let is_folder = segments.last().is_some_and(|segment| segment.is_empty());
        if is_folder {
            segments.pop();
        }
        let names: Option<Vec<String>> = segments.into_iter().map(|segment| name(segment, rules.with_hidden)).collect();
        Some(Self { path: names?.join("/"), is_folder, last })
    }

    /// Where the client finds the folder whose slash it left out: relative to its own request, and with its query.
    #[must_use]
    pub fn with_slash(&self, query: &str) -> String {
        // The dot keeps a colon in the name from being read as a scheme.
        let slash = format!("./{}/", self.last);
        if query.is_empty() { slash } else { format!("{slash}?{query}") }
    }

    /// The name of the file, without its folders.
    #[must_use]
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }
}

/// The name that a segment stands for, if it is one of a file: it is decoded once, and leads nowhere else on any system.
fn name(segment: &str, with_hidden: bool) -> Option<String> {
    let name = percent_decode_str(segment).decode_utf8().ok()?;
    let is_plain = !name.is_empty() && !matches!(&*name, "." | "..") && !name.contains(['/', '\\']);
    let is_visible = with_hidden || !name.starts_with('.');
    (is_plain && is_visible && !name.chars().any(char::is_control)).then(|| name.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever is put together of such pieces, a name is never one that leads elsewhere.
    #[test]
    fn no_path_leads_out_of_the_folder() {
        let pieces = ["/", ".", "..", "%2e", "%2f", "%5c", "\\", "%00", "a", "%c3", "%", "%25"];
        let count = pieces.len();
        for number in 0..count.pow(5) {
            let text: String =
                (0..5).scan(number, |rest, _| Some(pieces[std::mem::replace(rest, *rest / count) % count])).collect();
            let Some(found) = FileLocation::of(&format!("/{text}"), LocationRules { depth: 0, with_hidden: true })
            else {
                continue;
            };
            assert!(!found.path.starts_with('/') && !found.path.contains(['\\', '\0']), "{text}: {found:?}");
            assert!(found.path.split('/').all(|name| !matches!(name, "." | "..")), "{text}: {found:?}");
            // What a hook has been shown: the path as a whole, decoded once.
            let shown = percent_decode_str(&text).decode_utf8_lossy();
            assert_eq!(found.path, shown.strip_suffix('/').unwrap_or(&shown), "{text}: {found:?}");
        }
    }
}

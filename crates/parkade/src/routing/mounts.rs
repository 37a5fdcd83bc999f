//! Which application a path belongs to: the one with the longest prefix that ends at the border of a segment.
//!
//! The prefixes are those of the settings, and the server's applications are numbered in their order. A server without
//! mounts has one application, which has all paths.

use parkade_model::AppId;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What a link has not as it is.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Where the applications of a server are.
#[derive(Debug, Clone)]
pub struct Mounts {
    /// Of all applications: without a slash at the end, so that of `/` is empty.
    prefixes: Vec<Box<str>>,
    /// The settings mount none: there is one, for all paths.
    is_alone: bool,
}

impl Default for Mounts {
    fn default() -> Self {
        Self::alone("")
    }
}

impl Mounts {
    pub fn new(prefixes: impl IntoIterator<Item = String>) -> Self {
        Self { prefixes: prefixes.into_iter().map(Into::into).collect(), is_alone: false }
    }

    /// A single application, which has the paths below its prefix, and all others, too: a proxy may have removed it.
    pub fn alone(prefix: &str) -> Self {
        Self { prefixes: vec![prefix.into()], is_alone: true }
    }

    /// The application of a path, as it was sent. `None`: nothing is mounted there.
    pub fn find(&self, path: &str) -> Option<AppId> {
        if self.is_alone {
            return Some(AppId(0));
        }
        let mounts = (0..).map(AppId).zip(&self.prefixes);
        let matching = mounts.filter(|(_, prefix)| below(path, prefix).is_some());
        matching.max_by_key(|(_, prefix)| prefix.len()).map(|(app, _)| app)
    }

    /// Where in the path that follows begins which the application's own routes match.
    pub fn start_below(&self, app: AppId, path: &str) -> usize {
        below(path, self.prefix(app)).map_or(0, |rest| path.len() - rest.len())
    }

    /// Empty for `/`.
    pub fn prefix(&self, app: AppId) -> &str {
        self.prefixes.get(usize::from(app.0)).map_or("", |prefix| prefix)
    }

    /// As a link of the application has it.
    pub fn link(&self, app: AppId) -> Box<str> {
        utf8_percent_encode(self.prefix(app), ENCODED).to_string().into()
    }

    /// As people write the prefix. `None`: the server has a single application, for all paths.
    pub fn name(&self, app: AppId) -> Option<&str> {
        let prefix = self.prefix(app);
        (!self.is_alone).then_some(if prefix.is_empty() { "/" } else { prefix })
    }

    /// Whether there is a single application, for all paths: then whose a path is does not depend on who resolves it.
    pub const fn is_alone(&self) -> bool {
        self.is_alone
    }

    pub fn count(&self) -> usize {
        self.prefixes.len()
    }
}

/// The path that the routes of a mounted application see. Its prefix alone is the application's `/`.
pub fn seen(below: &str) -> &str {
    if below.is_empty() { "/" } else { below }
}

/// What follows the prefix in a path, if that is nothing or begins with a slash. A path may have any character escaped;
/// an escaped slash is no border, and part of no prefix.
fn below<'a>(path: &'a str, prefix: &str) -> Option<&'a str> {
    let mut rest = path.as_bytes();
    for wanted in prefix.bytes() {
        let (byte, length) = match rest {
            [b'%', high, low, ..] => (escaped(*high, *low).filter(|byte| *byte != b'/')?, 3),
            [byte, ..] => (*byte, 1),
            [] => return None,
        };
        if byte != wanted {
            return None;
        }
        rest = &rest[length..];
    }
    let rest = &path[path.len() - rest.len()..];
    (prefix.is_empty() || rest.is_empty() || rest.starts_with('/')).then_some(rest)
}

fn escaped(high: u8, low: u8) -> Option<u8> {
    let digit = |digit: u8| char::from(digit).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mounts(prefixes: &[&str]) -> Mounts {
        Mounts::new(prefixes.iter().map(|prefix| (*prefix).to_owned()))
    }

    #[test]
    fn the_longest_prefix_has_a_path() {
        let mounts = mounts(&["", "/live", "/live/admin"]);
        for (path, app) in [
            ("/", 0),
            ("/live", 1),
            ("/live/", 1),
            ("/live/x", 1),
            ("/lively", 0),
            ("/liv", 0),
            ("/live/admin", 2),
            ("/live/admin/x", 2),
            ("/live/administrator", 1),
            ("/x/live", 0),
            ("*", 0),
        ] {
            assert_eq!(mounts.find(path), Some(AppId(app)), "{path}");
        }
    }

    #[test]
    fn a_path_below_no_prefix_belongs_to_nobody() {
        let mounts = mounts(&["/a", "/b"]);
        assert_eq!((mounts.find("/"), mounts.find("/c"), mounts.find("/b/c")), (None, None, Some(AppId(1))));
    }

    #[test]
    fn a_character_may_be_escaped_and_an_escaped_slash_is_no_border() {
        let mounts = mounts(&["", "/live", "/café"]);
        for (path, app) in [
            ("/l%69ve/x", 1),
            ("/%6Cive", 1),
            ("/live%2Fx", 0),
            ("%2Flive", 0),
            ("/liv%", 0),
            ("/live%zz", 0),
            ("/caf%C3%A9/x", 2),
        ] {
            assert_eq!(mounts.find(path), Some(AppId(app)), "{path}");
        }
    }

    #[test]
    fn routes_see_what_follows_the_prefix() {
        let mounts = mounts(&["", "/live"]);
        let seen_by = |app, path: &'static str| seen(&path[mounts.start_below(AppId(app), path)..]);
        assert_eq!(seen_by(1, "/live/bids"), "/bids");
        assert_eq!((seen_by(1, "/l%69ve/bids"), seen_by(1, "/live"), seen_by(1, "/live/")), ("/bids", "/", "/"));
        assert_eq!((seen_by(0, "/live/bids"), seen_by(0, "*")), ("/live/bids", "*"));
    }

    #[test]
    fn a_single_application_has_paths_with_its_prefix_and_without() {
        let one = Mounts::alone("/shop");
        let seen_of = |path: &'static str| seen(&path[one.start_below(AppId(0), path)..]);
        assert_eq!(
            (seen_of("/shop/x"), seen_of("/x"), seen_of("/shop"), seen_of("/shops")),
            ("/x", "/x", "/", "/shops")
        );
        assert_eq!((one.find("/shop/x"), one.find("/x")), (Some(AppId(0)), Some(AppId(0))));
        assert_eq!((one.name(AppId(0)), &*one.link(AppId(0))), (None, "/shop"));
    }

    #[test]
    fn a_link_has_the_prefix_encoded() {
        assert_eq!(&*mounts(&["/cafés and bars"]).link(AppId(0)), "/caf%C3%A9s%20and%20bars");
    }

    #[test]
    fn a_mount_has_a_name_and_a_single_application_has_none() {
        let one = Mounts::default();
        assert_eq!((one.name(AppId(0)), one.count(), one.find("/x")), (None, 1, Some(AppId(0))));
        assert_eq!(mounts(&[""]).name(AppId(0)), Some("/"));
        let mounts = mounts(&["/live", ""]);
        assert_eq!((&*mounts.link(AppId(0)), &*mounts.link(AppId(1))), ("/live", ""));
        assert_eq!((mounts.name(AppId(0)), mounts.name(AppId(1))), (Some("/live"), Some("/")));
    }
}

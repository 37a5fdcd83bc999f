//! What tells one state of a file from another: `ETag` and `Last-Modified`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::encoding::Encoding;

/// What a file is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFacts {
    pub length: u64,
    pub modified: SystemTime,
}

/// A date is a strong validator only if the file cannot have changed twice within it (RFC 9110, section 8.8.2.2).
const STRONG_AFTER: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Validators {
    /// With its quotes. Strong: the time has nanoseconds.
    pub etag: String,
    /// In whole seconds; `None` for a time that HTTP cannot express.
    pub modified: Option<SystemTime>,
    is_date_strong: bool,
}

impl Validators {
    /// Servers that have the same file with the same time give the same tag. `now`: a file is never newer than the answer.
    pub fn of(facts: &FileFacts, encoding: Option<Encoding>, now: SystemTime) -> Self {
        let since = |moment: SystemTime| moment.duration_since(UNIX_EPOCH).ok();
        let nanos = since(facts.modified).map_or(0, |modified| modified.as_nanos());
        let suffix = encoding.map_or("", Encoding::suffix);
        let etag = format!("\"{:x}-{nanos:x}{suffix}\"", facts.length);
        let modified =
            since(facts.modified.min(now)).map(|modified| UNIX_EPOCH + Duration::from_secs(modified.as_secs()));
        // Years of more than four digits cannot be written.
        let modified = modified.filter(|modified| *modified < UNIX_EPOCH + Duration::from_secs(253_402_300_800));
        let is_date_strong = now.duration_since(facts.modified).is_ok_and(|age| age >= STRONG_AFTER);
        Self { etag, modified, is_date_strong }
    }

    /// Whether the file has not changed since this moment. `None`: it has no date, and a condition about it is ignored
    /// (RFC 9110, sections 13.1.3 and 13.1.4).
    #[must_use]
    pub fn is_unmodified_since(&self, date: SystemTime) -> Option<bool> {
        self.modified.map(|modified| modified <= date)
    }

    /// Whether a list of entity tags has ours (`*`: any). `weakly`: `W/"x"` is `"x"`.
    #[must_use]
    pub fn is_among(&self, tags: &str, weakly: bool) -> bool {
        tags.trim() == "*" || entity_tags(tags).any(|(is_weak, tag)| tag == self.etag && (weakly || !is_weak))
    }

    /// Whether the client of an `If-Range` has this state of the file.
    #[must_use]
    pub fn is_range_of_it(&self, condition: &str) -> bool {
        let condition = condition.trim();
        if condition.starts_with(['"', 'W']) && condition.ends_with('"') {
            return condition == self.etag;
        }
        self.is_date_strong && self.modified.is_some() && httpdate::parse_http_date(condition).ok() == self.modified
    }
}

/// The tags of a list, with their quotes, and whether each is weak. What is no tag ends the list.
fn entity_tags(mut list: &str) -> impl Iterator<Item = (bool, &str)> {
    std::iter::from_fn(move || {
        list = list.trim_start_matches([' ', '\t', ',']);
        let strong = list.strip_prefix("W/");
        let rest = strong.unwrap_or(list);
        let end = rest.strip_prefix('"')?.find('"')? + 2;
        let (tag, after) = rest.split_at(end);
        list = after;
        Some((strong.is_some(), tag))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(nanos: u64) -> FileFacts {
        FileFacts { length: 255, modified: UNIX_EPOCH + Duration::from_nanos(nanos) }
    }

    fn validators(nanos: u64, now: u64) -> Validators {
        Validators::of(&file(nanos), None, UNIX_EPOCH + Duration::from_secs(now))
    }

    #[test]
    fn a_tag_changes_with_length_time_and_encoding() {
        let now = UNIX_EPOCH + Duration::from_secs(9);
        let base = Validators::of(&file(1_000_000_001), None, now).etag;
        assert_eq!(base, "\"ff-3b9aca01\"");
        let other = FileFacts { length: 256, ..file(1_000_000_001) };
        let others = [
            Validators::of(&file(1_000_000_002), None, now).etag,
            Validators::of(&other, None, now).etag,
            Validators::of(&file(1_000_000_001), Some(Encoding::Brotli), now).etag,
            Validators::of(&file(1_000_000_001), Some(Encoding::Gzip), now).etag,
        ];
        assert!(others.iter().all(|other| *other != base), "{others:?}");
    }

    #[test]
    fn a_file_is_never_newer_than_its_answer() {
        let told = validators(5_999_999_999, 3);
        assert_eq!(told.modified, Some(UNIX_EPOCH + Duration::from_secs(3)));
        assert_eq!(validators(5_999_999_999, 9).modified, Some(UNIX_EPOCH + Duration::from_secs(5)));
        let old = FileFacts { length: 1, modified: UNIX_EPOCH - Duration::from_secs(1) };
        assert_eq!(Validators::of(&old, None, UNIX_EPOCH).modified, None);
    }
}

//! Which statements change the session, so that the next user of the connection would notice.
//!
//! It looks at the first words only. A change that the server reports (`ParameterStatus`) counts as well; changes
//! without a trace, such as `set_config` and advisory locks, are not detected.

/// Statements that begin with one of these.
const CHANGING: [&[u8]; 8] = [b"set", b"reset", b"listen", b"load", b"discard", b"deallocate", b"prepare", b"declare"];
/// After `set`: these end with the transaction.
const PASSING: [&[u8]; 3] = [b"local", b"transaction", b"constraints"];
const TEMPORARY: [&[u8]; 2] = [b"temp", b"temporary"];
const SCOPES: [&[u8]; 2] = [b"local", b"global"];

/// Whether the statement changes the connection beyond its transaction.
pub(crate) fn is_changed_by(text: &str) -> bool {
    let (first, rest) = word(text.as_bytes());
    if is_one_of(first, &CHANGING) {
        return !(first.eq_ignore_ascii_case(b"set") && is_one_of(word(rest).0, &PASSING));
    }
    if !first.eq_ignore_ascii_case(b"create") {
        return false;
    }
    let (mut kind, behind) = word(rest);
    if is_one_of(kind, &SCOPES) {
        kind = word(behind).0;
    }
    is_one_of(kind, &TEMPORARY) && !text.to_ascii_lowercase().contains("on commit drop")
}

fn is_one_of(word: &[u8], words: &[&[u8]]) -> bool {
    words.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Whether a text may be a COMMIT that the application has written itself.
pub(crate) fn ends_transaction(text: &str) -> bool {
    is_one_of(word(text.as_bytes()).0, &[b"commit", b"end", b"prepare"])
}

/// The first word, and the text after it. Whitespace, brackets and comments before it are skipped.
fn word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = behind_comments(text);
    let end = text.iter().position(|byte| !byte.is_ascii_alphabetic()).unwrap_or(text.len());
    text.split_at(end)
}

fn behind_comments(mut text: &[u8]) -> &[u8] {
    loop {
        text = text.trim_ascii_start();
        text = text.strip_prefix(b"(").unwrap_or(text);
        let end = match text {
            [b'-', b'-', ..] => memchr::memchr(b'\n', text).map(|at| at + 1),
            [b'/', b'*', ..] => comment_end(text),
            [b'(' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c, ..] => continue,
            _ => return text,
        };
        text = end.map_or(&[], |end| &text[end..]);
    }
}

/// The length of the comment at the beginning of the text; such comments may be nested.
fn comment_end(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(pair) = text.get(at..at + 2) {
        let step = match pair {
            b"/*" => {
                depth += 1;
                2
            }
            b"*/" => {
                depth -= 1;
                2
            }
            _ => 1,
        };
        at += step;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_the_session_is_known_by_its_first_words() {
        for (text, is) in [
            ("select 1", false),
            ("/* set */ select 1", false),
            ("-- a\n  /* b */ SET role other", true),
            ("set local role other", false),
            ("Set Transaction read only", false),
            ("reset all", true),
            ("settle()", false),
            ("discard all", true),
            ("create table a (b int)", false),
            ("create temp table a (b int)", true),
            ("create local temporary table a (b int)", true),
            ("create temp table a (b int) ON COMMIT DROP", false),
            ("/*", false),
            ("--", false),
            ("", false),
        ] {
            assert_eq!(is_changed_by(text), is, "{text}");
        }
    }

    #[test]
    fn a_commit_is_known_whatever_stands_before_it() {
        for (text, is) in [
            ("commit", true),
            (" \n\tEND", true),
            ("-- done\ncommit", true),
            ("/* a /* b */ c */ commit", true),
            ("/* a /* b */ commit", false),
            ("/*/ commit */ select 1", false),
            ("(( commit", true),
            ("prepare transaction 'x'", true),
            ("committed()", false),
            ("select 1 -- commit", false),
            ("--", false),
            ("/**/end", true),
        ] {
            assert_eq!(ends_transaction(text), is, "{text}");
        }
    }
}

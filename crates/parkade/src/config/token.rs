//! The token of `--admin-writes token`: of the server, and of the commands that ask it.

use std::path::{Path, PathBuf};

/// Shorter ones can be guessed.
const CHARACTERS_MIN: usize = 16;

/// Why there is no usable token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error(
        "--admin-writes token needs a token: `openssl rand -hex 32` makes one; give it with --admin-token-file or the \
         variable PARKADE_ADMIN_TOKEN"
    )]
    Missing,
    #[error("give the admin token either itself or with --admin-token-file, not both")]
    Both,
    #[error("an admin token without --admin-writes token has no effect: add that, or remove the token")]
    Unused,
    #[error("the admin token must have at least {CHARACTERS_MIN} characters, all of them visible ASCII")]
    Weak,
    #[error("cannot read the admin token in {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
}

/// The token that was given, itself or in a file, whose last line end does not count.
pub fn given(text: Option<&str>, file: Option<&Path>) -> Result<Option<String>, TokenError> {
    let token = match (text, file) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => return Err(TokenError::Both),
        (Some(text), None) => text.to_owned(),
        (None, Some(path)) => std::fs::read_to_string(path)
            .map_err(|source| TokenError::Unreadable { path: path.into(), source })?
            .trim_end()
            .to_owned(),
    };
    let is_strong = token.len() >= CHARACTERS_MIN && token.bytes().all(|byte| byte.is_ascii_graphic());
    if is_strong { Ok(Some(token)) } else { Err(TokenError::Weak) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_long_and_comes_from_one_place() {
        let strong = "0123456789abcdef";
        assert_eq!(given(None, None).unwrap(), None);
        assert_eq!(given(Some(strong), None).unwrap().as_deref(), Some(strong));
        for weak in ["", "0123456789abcde", "0123456789 abcdef", "0123456789abcdefé"] {
            assert!(matches!(given(Some(weak), None), Err(TokenError::Weak)), "{weak}");
        }
        let nowhere = Path::new("/nowhere/token");
        assert!(matches!(given(None, Some(nowhere)), Err(TokenError::Unreadable { .. })));
        assert!(matches!(given(Some(strong), Some(nowhere)), Err(TokenError::Both)));
    }
}

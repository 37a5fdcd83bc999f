//! The folder of a database file, made by whoever opens it first.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes a folder that only its user can enter, but none above it. A hidden one (`.parkade`) is nobody's source code: it tells
/// git to ignore it.
pub fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(folder)?;
    if folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b".")) {
        // If this fails, git shows a folder more than needed.
        let _ = fs::write(folder.join(".gitignore"), "# Made by parkade: what it keeps between two starts.\n*\n");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_hidden_folder_is_ignored_by_git_and_entered_by_its_user_alone() {
        let place = std::env::temp_dir().join(format!("parkade-folder-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        let (hidden, shown) = (place.join(".parkade"), place.join("data"));
        for folder in [&hidden, &shown] {
            make(folder).unwrap();
            assert_eq!(fs::metadata(folder).unwrap().permissions().mode() & 0o777, 0o700);
            assert_eq!(make(folder).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        }
        assert!(fs::read_to_string(hidden.join(".gitignore")).unwrap().ends_with("\n*\n"));
        assert!(!shown.join(".gitignore").exists());
        fs::remove_dir_all(place).unwrap();
    }
}

//! The user of this process, for the defaults that depend on it.

use std::path::PathBuf;

/// The operating system's name for the user of this process.
pub fn user(environment: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let variable = |name| environment(name).filter(|value: &String| !value.is_empty());
    variable("USER").or_else(|| variable("LOGNAME")).or_else(|| Some(entry()?.0))
}

/// Where `.pgpass` and `.postgresql/` are.
pub fn home(environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let variable = environment("HOME").filter(|value| !value.is_empty());
    variable.or_else(|| Some(entry()?.1)).map(PathBuf::from)
}

fn entry() -> Option<(String, String)> {
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    find(&accounts, rustix::process::geteuid().as_raw())
}

/// Name and home of a user, from the text of `passwd(5)`.
fn find(accounts: &str, user: u32) -> Option<(String, String)> {
    accounts.lines().find_map(|line| {
        let fields: Vec<_> = line.split(':').collect();
        match fields[..] {
            [name, _, id, _, _, home, _] if id.parse() == Ok(user) => Some((name.to_owned(), home.to_owned())),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number() {
        let accounts = "root:x:0:0:root:/root:/bin/sh\n# comment\nshop:x:1000:1000:,,,:/home/shop:/bin/sh\n";
        assert_eq!(find(accounts, 1000), Some(("shop".into(), "/home/shop".into())));
        assert_eq!(find(accounts, 7), None);
    }
}

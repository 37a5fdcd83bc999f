//! The mode and the group of a socket file.

use std::str::FromStr;

/// The permissions of a file, of owner, group and others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mode(u32);

/// A group of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SocketGroup(u32);

const HOW_TO_WRITE_A_MODE: &str = "write it in octal as 600 (the server's user alone), 660 (its group too) or 666 \
                                   (everybody); the owner has 6 or 7";

impl Mode {
    /// For the server's user alone.
    pub const OWNER: Self = Self(0o600);

    pub fn bits(self) -> u32 {
        self.0
    }
}

impl SocketGroup {
    pub fn number(self) -> u32 {
        self.0
    }
}

impl FromStr for Mode {
    type Err = &'static str;

    /// `660` or `0660`. A mode without permissions for the owner is refused: that is what TOML makes of a number
    /// written in octal (`0o660`).
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.trim();
        let digits = digits.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(digits);
        let is_octal = digits.len() == 3 && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
        let bits = is_octal.then(|| u32::from_str_radix(digits, 8).ok()).flatten();
        bits.filter(|bits| bits & 0o600 == 0o600).map(Self).ok_or(HOW_TO_WRITE_A_MODE)
    }
}

impl FromStr for SocketGroup {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if let Ok(number) = text.parse() {
            // This number means "leave the group unchanged".
            return if number == u32::MAX { Err("no group has this number".into()) } else { Ok(Self(number)) };
        }
        let known = uzers::get_group_by_name(text).map(|group| Self(group.gid()));
        known.ok_or_else(|| "this machine has no such group: `getent group` lists them".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_octal_and_has_its_owner() {
        for (text, bits) in [("600", 0o600), ("0660", 0o660), (" 666 ", 0o666), ("777", 0o777)] {
            assert_eq!(text.parse(), Ok(Mode(bits)), "{text}");
        }
        // The last two are what 0o660 and 0o600 are in decimal.
        for text in ["", "66", "6600", "1660", "00660", "668", "060", "0o660", "u=rw", "-660", "432", "384"] {
            assert_eq!(text.parse::<Mode>(), Err(HOW_TO_WRITE_A_MODE), "{text}");
        }
    }

    #[test]
    fn a_group_has_a_name_or_a_number() {
        assert_eq!("root".parse(), Ok(SocketGroup(0)));
        assert_eq!("33".parse(), Ok(SocketGroup(33)));
        assert!("no-such-group".parse::<SocketGroup>().unwrap_err().contains("no such group"));
        assert!("4294967295".parse::<SocketGroup>().is_err());
    }
}

//! Files that are stored compressed next to the file itself, and which of them a client accepts.

/// The best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Brotli,
    Zstd,
    Gzip,
}

impl Encoding {
    pub const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// As `Content-Encoding` has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// What follows the name of the file.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The encodings that a client accepts. A file as it is is always acceptable.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Encodings {
    accepted: u8,
    /// Those that a client has named; `*` is for the others.
    named: u8,
}

impl Encodings {
    /// With what this line of `Accept-Encoding` accepts, too.
    #[must_use]
    pub fn and(mut self, line: &str) -> Self {
        for item in line.split(',') {
            let (name, weight) = item.split_once(';').unwrap_or((item, ""));
            let is_accepted = !is_zero(weight);
            let name = name.trim();
            let meant = Encoding::ALL.into_iter().filter(|encoding| is_called(*encoding, name));
            if name == "*" {
                let others = Encoding::ALL.into_iter().map(Encoding::bit).sum::<u8>() & !self.named;
                self.accepted = if is_accepted { self.accepted | others } else { self.accepted & !others };
            }
            for encoding in meant {
                self.named |= encoding.bit();
                self.accepted &= !encoding.bit();
                self.accepted |= if is_accepted { encoding.bit() } else { 0 };
            }
        }
        self
    }

    /// The best first.
    pub fn iter(self) -> impl Iterator<Item = Encoding> {
        Encoding::ALL.into_iter().filter(move |encoding| self.accepted & encoding.bit() != 0)
    }
}

fn is_called(encoding: Encoding, name: &str) -> bool {
    name.eq_ignore_ascii_case(encoding.name()) || encoding == Encoding::Gzip && name.eq_ignore_ascii_case("x-gzip")
}

/// Whether a weight is `q=0`, with or without decimals.
fn is_zero(weight: &str) -> bool {
    let value = weight.trim().strip_prefix(['q', 'Q']).and_then(|rest| rest.trim_start().strip_prefix('='));
    let decimals = value.and_then(|value| value.trim().strip_prefix('0'));
    let is_zeros = |digits: &str| digits.bytes().all(|digit| digit == b'0');
    decimals.is_some_and(|decimals| decimals.is_empty() || decimals.strip_prefix('.').is_some_and(is_zeros))
}

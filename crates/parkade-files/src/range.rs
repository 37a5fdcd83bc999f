//! A range of bytes (RFC 9110, section 14). Whether the answer is 206 or 416 is decided in `answer`.

/// The only range of a request. Several ranges may be answered with the whole, and are no range here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    From { first: u64, last: Option<u64> },
    Last(u64),
}

/// What a range selects of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Selected {
    Part {
        first: u64,
        length: u64,
    },
    Whole,
    /// 416
    Nothing,
}

impl ByteRange {
    /// `None`: the field counts for nothing, because it is malformed, of another unit, or has several ranges.
    pub fn parse(text: &str) -> Option<Self> {
        let (unit, set) = text.split_once('=')?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (first, last) = set.trim().split_once('-')?;
        if first.is_empty() {
            return number(last).map(Self::Last);
        }
        let first = number(first)?;
        let last = if last.is_empty() { None } else { Some(number(last)?) };
        last.is_none_or(|last| last >= first).then_some(Self::From { first, last })
    }

    /// Of a file of this length.
    #[must_use]
    pub fn select(self, length: u64) -> Selected {
        match self {
            Self::From { first, .. } if first >= length => Selected::Nothing,
            Self::From { first, last } => {
                let last = last.unwrap_or(u64::MAX).min(length - 1);
                Selected::Part { first, length: last - first + 1 }
            }
            Self::Last(0) => Selected::Nothing,
            // A part of nothing cannot be described.
            Self::Last(_) if length == 0 => Selected::Whole,
            Self::Last(count) => {
                let count = count.min(length);
                Selected::Part { first: length - count, length: count }
            }
        }
    }
}

/// A number that is too large for us is larger than any file.
fn number(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every range of every small file: the bytes that the standard selects, and no others.
    #[test]
    fn a_range_selects_the_bytes_that_it_names() {
        for length in 0..6_u64 {
            let file: Vec<u64> = (0..length).collect();
            let of = |selected| match selected {
                Selected::Part { first, length } => {
                    assert!(length > 0, "a part is never empty");
                    Some(file[usize::try_from(first).unwrap()..][..usize::try_from(length).unwrap()].to_vec())
                }
                Selected::Whole => Some(file.clone()),
                Selected::Nothing => None,
            };
            for first in 0..8 {
                for last in (first..9).map(Some).chain([None, Some(u64::MAX)]) {
                    let named: Vec<u64> =
                        file.iter().copied().filter(|at| *at >= first && last.is_none_or(|last| *at <= last)).collect();
                    let told = of(ByteRange::From { first, last }.select(length));
                    assert_eq!(told, (!named.is_empty()).then_some(named), "{first}-{last:?} of {length}");
                }
            }
            for count in (0..8).chain([u64::MAX]) {
                let skipped = usize::try_from(length.saturating_sub(count)).unwrap();
                let told = of(ByteRange::Last(count).select(length));
                assert_eq!(told, (count > 0).then(|| file[skipped..].to_vec()), "-{count} of {length}");
            }
        }
    }
}

//! Parses values of settings: durations, sizes, counts. Every refusal says what to write instead.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use parkade_jobs::sqlite::Durability;
use parkade_wire::limits::{LONG_MESSAGE_BYTES_MAX, THREADS_MAX};

use super::OriginPattern;

/// A value where zero, as text, means that there is none.
///
/// An alias, because clap makes a flag optional if its field has the type `Option` by name.
pub type OrNone<T> = Option<T>;

/// Longer than any useful wait, and short enough that no sum of moments overflows.
const DURATION_DAYS_MAX: u64 = 365; // then: refused at start

const HOW_TO_WRITE_A_DURATION: &str = "write a duration as 30, 30s, 500ms, 2m, 1h or 7d";
const HOW_TO_WRITE_A_SIZE: &str = "write a size as 65536, 64KiB, 16MiB or 1GiB";

/// `30` and `30s` are seconds; also `500ms`, `2m`, `1h`, `7d`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split_unit(text);
    let seconds: f64 = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        _ => return Err(HOW_TO_WRITE_A_DURATION.into()),
    };
    let number: f64 = number.parse().map_err(|_| "write a duration as 30, 30s, 500ms, 2m, 1h or 7d")?;
    let longest = Duration::from_secs(DURATION_DAYS_MAX * 86_400);
    Duration::try_from_secs_f64(number * seconds)
        .ok()
        .filter(|duration| *duration <= longest)
        .ok_or_else(|| format!("the longest duration is {DURATION_DAYS_MAX}d"))
}

/// A duration that cannot be zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    duration_or_none(text)?
        .ok_or_else(|| "zero would leave no time at all: write a duration such as 500ms or 10s".into())
}

/// A duration; 0 means none.
pub fn duration_or_none(text: &str) -> Result<OrNone<Duration>, String> {
    duration(text).map(|duration| (!duration.is_zero()).then_some(duration))
}

/// What an acknowledged job survives, as a word.
pub fn durability() -> impl TypedValueParser<Value = Durability> {
    let words = PossibleValuesParser::new(Durability::ALL.map(Durability::word));
    words.try_map(|word| Durability::of(&word).ok_or("no such durability"))
}

/// Bytes: `65536`, `64KiB`, `16MiB`, `1GiB`, or the decimal `kB`, `MB`, `GB`.
pub fn size(text: &str) -> Result<usize, String> {
    let (number, unit) = split_unit(text);
    let bytes: usize = match unit {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(HOW_TO_WRITE_A_SIZE.into()),
    };
    let number: usize = number.parse().map_err(|_| "write a size as 65536, 64KiB, 16MiB or 1GiB")?;
    number.checked_mul(bytes).ok_or_else(|| "that is more memory than can be addressed: write a smaller size".into())
}

/// A size; 0 means no limit.
pub fn size_or_none(text: &str) -> Result<OrNone<usize>, String> {
    size(text).map(|size| (size > 0).then_some(size))
}

/// A request's head has to fit into one frame, which has at most 1 MiB.
const HEAD_BYTES_MAX: usize = 512 * 1024; // then: refused at start

/// Heads are parsed on the stack.
pub const HEADER_COUNT_MAX: usize = 256; // then: refused at start

/// The size of a request's head.
pub fn head_size(text: &str) -> Result<usize, String> {
    size(text).and_then(|size| {
        if size <= HEAD_BYTES_MAX {
            Ok(size)
        } else {
            Err("write 512KiB or less: it has to fit into a worker's frame".into())
        }
    })
}

/// The size of a message of a WebSocket.
pub fn message_size(text: &str) -> Result<usize, String> {
    size(text).and_then(|size| {
        if (1..=LONG_MESSAGE_BYTES_MAX).contains(&size) {
            Ok(size)
        } else {
            Err("write 64MiB or less: a message is kept whole until the application has it".into())
        }
    })
}

/// An origin whose pages may open WebSockets.
pub fn origin(text: &str) -> Result<OriginPattern, String> {
    OriginPattern::parse(text).map_err(Into::into)
}

/// The maximum number of fields in a head.
pub fn header_count(text: &str) -> Result<usize, String> {
    count(text).and_then(|count| {
        if count <= HEADER_COUNT_MAX { Ok(count) } else { Err(format!("write {HEADER_COUNT_MAX} or less")) }
    })
}

/// A whole number, at least 1.
pub fn count(text: &str) -> Result<usize, String> {
    count_or_none(text)?.ok_or_else(|| "write a whole number, 1 or more".into())
}

/// A whole number; 0 means none.
pub fn count_or_none(text: &str) -> Result<OrNone<usize>, String> {
    whole(text).map(|number| (number > 0).then_some(number))
}

/// A whole number, at least 0.
pub fn whole(text: &str) -> Result<usize, String> {
    text.trim().replace('_', "").parse().map_err(|_| "write a whole number such as 1000".into())
}

/// The number of workers for requests; `auto` is the number of cores.
pub fn workers(text: &str) -> Result<usize, String> {
    let workers = match text.trim() {
        "auto" => cores(),
        number => {
            number.parse().ok().filter(|workers| *workers > 0).ok_or("write `auto` or a whole number, 1 or more")?
        }
    };
    bounded(workers)
}

/// The number of workers for jobs; `auto` is half the number of cores, because jobs use the time that requests leave.
pub fn job_workers(text: &str) -> Result<usize, String> {
    let workers = match text.trim() {
        "auto" => (cores() / 2).max(1),
        number => number.parse().map_err(|_| "write `auto` or a whole number, 0 or more")?,
    };
    bounded(workers)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

fn bounded(workers: usize) -> Result<usize, String> {
    const WORKERS_MAX: usize = 1_024; // Each is a process. Then: refused at start.
    if workers > WORKERS_MAX { Err(format!("at most {WORKERS_MAX} workers: each is a process")) } else { Ok(workers) }
}

/// The prefix of an application's paths, decoded, without a slash at its end.
pub fn root_path(text: &str) -> Result<String, String> {
    let path = text.trim_end_matches('/');
    let is_path = path.is_empty() || path.starts_with('/');
    if !is_path || path.starts_with("//") || path.contains(|letter: char| letter.is_control() || "?#%".contains(letter))
    {
        return Err(BAD_PATH.into());
    }
    Ok(path.into())
}

const BAD_PATH: &str = "write the path as a browser shows it, with a slash at its beginning, such as /shop";

/// Where an application is mounted: the same, for `/` too.
pub fn mount_prefix(text: &str) -> Result<String, String> {
    // No client's path has such parts, and metrics have it as a label.
    let is_odd = |part: &str| matches!(part, "" | "." | "..") || part.contains(['"', '\\']);
    let is_prefix = text.starts_with('/') && !text.trim_end_matches('/').split('/').skip(1).any(is_odd);
    if is_prefix { root_path(text) } else { Err(format!("{BAD_PATH}, or / for whatever has no other prefix")) }
}

/// The store gives the jobs of all applications alike, so none can do without workers for its own.
pub fn mount_job_workers(text: &str) -> Result<usize, String> {
    if text.trim() == "0" {
        return Err("a server that runs jobs runs those of all its applications; for none, write job-workers = 0 above the first [[mount]]".into());
    }
    job_workers(text)
}

/// Threads in addition to an event loop.
pub fn threads(text: &str) -> Result<u32, String> {
    let threads = text.trim().parse().ok().filter(|threads| (1..=THREADS_MAX).contains(threads));
    threads.ok_or_else(|| format!("write a whole number, 1 to {THREADS_MAX}"))
}

/// A percentage: `10` or `10%`.
pub fn percent(text: &str) -> Result<u8, String> {
    let number = text.trim().trim_end_matches('%').parse().ok();
    number.filter(|percent| *percent <= 100).ok_or_else(|| "write a share between 0% and 100%".into())
}

pub fn ratio(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok();
    number
        .filter(|ratio| (0.0..=1.0).contains(ratio))
        .ok_or_else(|| "write a number between 0 and 1, such as 0.05".into())
}

fn split_unit(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim_start())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_units() {
        for (text, milliseconds) in
            [("30", 30_000), ("30s", 30_000), ("500ms", 500), ("2m", 120_000), ("1.5", 1_500), ("1 h", 3_600_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(milliseconds)), "{text}");
        }
        assert_eq!(duration_or_none("0"), Ok(None));
        assert_eq!(duration_or_none("0ms"), Ok(None));
    }

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in [("65536", 65_536), ("64KiB", 65_536), ("300MiB", 300 << 20), ("16 MB", 16_000_000)] {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        assert_eq!(size_or_none("0"), Ok(None));
    }

    #[test]
    fn every_bad_value_says_what_to_write() {
        let check = |refusal: Result<(), String>, advice: &str| assert_eq!(refusal.unwrap_err(), advice);
        let units = "write a duration as 30, 30s, 500ms, 2m, 1h or 7d";
        check(duration("3 weeks").map(drop), units);
        check(duration("-5").map(drop), units);
        check(duration("").map(drop), units);
        check(duration("1.2.3s").map(drop), units);
        check(duration("9000d").map(drop), "the longest duration is 365d");
        check(duration("99999999999999999999999999d").map(drop), "the longest duration is 365d");
        check(
            positive_duration("0").map(drop),
            "zero would leave no time at all: write a duration such as 500ms or 10s",
        );
        check(size("300megs").map(drop), "write a size as 65536, 64KiB, 16MiB or 1GiB");
        check(size("1.5MiB").map(drop), "write a size as 65536, 64KiB, 16MiB or 1GiB");
        check(
            size("99999999999999999GiB").map(drop),
            "that is more memory than can be addressed: write a smaller size",
        );
        check(count("0").map(drop), "write a whole number, 1 or more");
        check(count("many").map(drop), "write a whole number such as 1000");
        check(workers("0").map(drop), "write `auto` or a whole number, 1 or more");
        check(job_workers("some").map(drop), "write `auto` or a whole number, 0 or more");
        check(workers("5000").map(drop), "at most 1024 workers: each is a process");
        check(percent("101%").map(drop), "write a share between 0% and 100%");
    }
}

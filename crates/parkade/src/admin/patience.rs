//! `?wait=20`: how long a client is willing to wait for an end.

use std::time::Duration;

use super::limits::WAIT_TIME_MAX;
use super::percent::pairs;

/// Zero, unless the query string has another value.
pub fn patience(query: Option<&str>) -> Result<Duration, String> {
    let mut patience = Duration::ZERO;
    for (name, value) in pairs(query.unwrap_or_default())? {
        if name != "wait" {
            return Err(format!("unknown option {name:?}; the only option is wait"));
        }
        let seconds = value.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
        let seconds = seconds.ok_or("wait must be a number of seconds")?;
        patience = Duration::from_secs_f64(seconds.min(WAIT_TIME_MAX.as_secs_f64()));
    }
    Ok(patience)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_longer_than_a_minute() {
        assert_eq!(patience(None), Ok(Duration::ZERO));
        for (query, expected) in [("", 0), ("wait=20", 20), ("wait=0", 0), ("wait=61", 60), ("wait=1e300", 60)] {
            assert_eq!(patience(Some(query)), Ok(Duration::from_secs(expected)), "{query}");
        }
        for query in ["wait=soon", "wait=-1", "wait=NaN", "wait=inf", "wait"] {
            assert_eq!(patience(Some(query)), Err("wait must be a number of seconds".into()), "{query}");
        }
        assert_eq!(patience(Some("timeout=1")), Err("unknown option \"timeout\"; the only option is wait".into()));
    }
}

//! The five fields of a crontab.

use super::BadTimetable;

/// The matching minutes, hours and days: a bit for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    pub minutes: u64,
    pub hours: u64,
    pub days: u64,
    pub months: u64,
    /// Sunday is 0.
    pub weekdays: u64,
    /// If both kinds of days are given, one match is enough, as in every crontab.
    pub is_either_day: bool,
}

struct CronField {
    word: &'static str,
    first: u64,
    last: u64,
    names: &'static [&'static str],
}

const MINUTE: CronField = CronField { word: "minute", first: 0, last: 59, names: &[] };
const HOUR: CronField = CronField { word: "hour", first: 0, last: 23, names: &[] };
const DAY: CronField = CronField { word: "day of the month", first: 1, last: 31, names: &[] };
const MONTH: CronField = CronField {
    word: "month",
    first: 1,
    last: 12,
    names: &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"],
};
/// 7 is Sunday too.
const WEEKDAY: CronField =
    CronField { word: "day of the week", first: 0, last: 7, names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"] };

/// The maximum number of days of each month.
const LENGTHS: [u64; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

impl Fields {
    pub fn parse(text: &str) -> Result<Self, BadTimetable> {
        let parts: Vec<&str> = text.split_ascii_whitespace().collect();
        let [minute, hour, day, month, weekday] = *parts else {
            return Err(BadTimetable::FieldsCount(parts.len()));
        };
        let weekdays = WEEKDAY.parse(weekday)?;
        let fields = Self {
            minutes: MINUTE.parse(minute)?,
            hours: HOUR.parse(hour)?,
            days: DAY.parse(day)?,
            months: MONTH.parse(month)?,
            weekdays: (weekdays | (weekdays >> 7)) & 0x7f,
            is_either_day: !day.starts_with('*') && !weekday.starts_with('*'),
        };
        if fields.is_ever() { Ok(fields) } else { Err(BadTimetable::Never) }
    }

    pub fn has_day(&self, month: u64, day: u64, weekday: u64) -> bool {
        let (is_day, is_weekday) = (has(self.days, day), has(self.weekdays, weekday));
        has(self.months, month) && if self.is_either_day { is_day || is_weekday } else { is_day && is_weekday }
    }

    fn is_ever(&self) -> bool {
        let mut months = (1..).zip(LENGTHS).filter(|(month, _)| has(self.months, *month));
        self.is_either_day || months.any(|(_, length)| (1..=length).any(|day| has(self.days, day)))
    }
}

pub const fn has(set: u64, number: u64) -> bool {
    set >> number & 1 == 1
}

impl CronField {
    fn parse(&self, text: &str) -> Result<u64, BadTimetable> {
        text.split(',').try_fold(0, |set, part| self.part(part).map(|more| set | more))
    }

    /// `*`, `7`, `1-5`, each optionally followed by `/2`.
    fn part(&self, part: &str) -> Result<u64, BadTimetable> {
        let (range, step) = part.split_once('/').map_or((part, None), |(range, step)| (range, Some(step)));
        let bounds = match (range.split_once('-'), step) {
            _ if range == "*" => Some((self.first, self.end())),
            (Some((from, to)), _) => self.number(from).zip(self.number(to)),
            (None, None) => self.number(range).map(|number| (number, number)),
            // From there to the end.
            (None, Some(_)) => self.number(range).map(|number| (number, self.end())),
        };
        let step = step.map_or(Some(1), |step| number(step).filter(|step| *step > 0));
        match (bounds, step) {
            (Some((from, to)), Some(step)) if from <= to => Ok((from..=to)
                .filter(|number| (number - from).is_multiple_of(step))
                .fold(0, |set, number| set | 1 << number)),
            _ => Err(self.bad(part)),
        }
    }

    /// Of `*`: Sunday is not counted twice.
    const fn end(&self) -> u64 {
        if self.last == 7 { 6 } else { self.last }
    }

    fn number(&self, text: &str) -> Option<u64> {
        let by_name = self.names.iter().position(|name| text.eq_ignore_ascii_case(name));
        let number = by_name.map(|place| place as u64 + self.first).or_else(|| number(text));
        number.filter(|number| (self.first..=self.last).contains(number))
    }

    fn bad(&self, part: &str) -> BadTimetable {
        let names = match self.names {
            [first, .., last] => format!(" or {first} to {last}"),
            _ => String::new(),
        };
        let expected = format!(
            "give *, a number from {} to {}{names}, a range such as 1-5, a step such as */2, or a list of these with commas",
            self.first, self.last
        );
        BadTimetable::Field { field: self.word, part: part.to_owned(), expected }
    }
}

/// Only digits: no sign, no whitespace.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(set: u64) -> Vec<u64> {
        (0..64).filter(|number| has(set, *number)).collect()
    }

    #[test]
    fn ranges_lists_steps_and_names_are_read() {
        for (text, expected) in [
            ("5", vec![5]),
            ("1-4", vec![1, 2, 3, 4]),
            ("1-10/3", vec![1, 4, 7, 10]),
            ("*/20", vec![0, 20, 40]),
            ("50/5", vec![50, 55]),
            ("3,1,2-3", vec![1, 2, 3]),
        ] {
            assert_eq!(numbers(Fields::parse(&format!("{text} * * * *")).unwrap().minutes), expected, "{text}");
        }
        let fields = Fields::parse("0 0 * Jan-mar,DEC fri-7").unwrap();
        assert_eq!(numbers(fields.months), [1, 2, 3, 12]);
        assert_eq!(numbers(fields.weekdays), [0, 5, 6]);
        assert_eq!(numbers(Fields::parse("0 0 * * *").unwrap().weekdays), [0, 1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (text, part) in [
            ("60 * * * *", "60"),
            ("* 24 * * *", "24"),
            ("* * 0 * *", "0"),
            ("* * * 13 *", "13"),
            ("* * * foo *", "foo"),
            ("* * * * 8", "8"),
            ("*/0 * * * *", "*/0"),
            ("5-1 * * * *", "5-1"),
            ("1,,2 * * * *", ""),
            ("+1 * * * *", "+1"),
            ("1-2-3 * * * *", "1-2-3"),
            ("*/ * * * *", "*/"),
            ("99999999999999999999 * * * *", "99999999999999999999"),
        ] {
            match Fields::parse(text) {
                Err(BadTimetable::Field { part: named, .. }) => assert_eq!(named, part),
                other => panic!("{text}: {other:?}"),
            }
        }
        assert_eq!(Fields::parse("* * * *"), Err(BadTimetable::FieldsCount(4)));
        assert_eq!(Fields::parse("@daily"), Err(BadTimetable::FieldsCount(1)));
        assert_eq!(Fields::parse("0 0 30 feb *"), Err(BadTimetable::Never));
        Fields::parse("0 0 29 feb *").unwrap();
        Fields::parse("0 0 31 feb mon").unwrap();
    }
}

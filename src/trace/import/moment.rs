//! Times as traces write them: numbers in some unit, strings of numbers, dates.

/// What a number of a time stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl TimeUnit {
    /// Every unit with its name.
    pub const ALL: [(&'static str, TimeUnit); 4] = [
        ("s", TimeUnit::Seconds),
        ("ms", TimeUnit::Milliseconds),
        ("us", TimeUnit::Microseconds),
        ("ns", TimeUnit::Nanoseconds),
    ];

    /// The unit of a name.
    pub fn from_name(name: &str) -> Option<TimeUnit> {
        TimeUnit::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, unit)| unit)
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        TimeUnit::ALL[self as usize].0
    }

    /// How many of it are in a second.
    pub fn per_second(self) -> f64 {
        [1.0, 1e3, 1e6, 1e9][self as usize]
    }

    /// The unit that a first time is in, by its size: a clock that counts from 1970 had passed 10⁹ s in 2001, and
    /// nothing else has numbers that large.
    pub fn of_size(time: f64) -> TimeUnit {
        match time.abs() {
            t if t >= 1e17 => TimeUnit::Nanoseconds,
            t if t >= 1e14 => TimeUnit::Microseconds,
            t if t >= 1e11 => TimeUnit::Milliseconds,
            _ => TimeUnit::Seconds,
        }
    }
}

/// A time as it is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// A number.
    Number(f64),
    /// A date and time of day, in nanoseconds since 1970.
    Date(i64),
}

impl Moment {
    /// What is wanted, in words.
    pub const WANTED: &'static str =
        "a number, or a date such as 2024-05-10 00:00:00.25 or 2024-05-10T00:00:00Z";

    /// Reads a number (finite) or a date (years 1678 to 2261; fractions of a second are good to the nanosecond).
    pub fn parse(text: &str) -> Option<Moment> {
        let text = text.trim();
        if text.len() > 64 {
            return None;
        }
        match text.parse::<f64>() {
            Ok(number) => number.is_finite().then_some(Moment::Number(number)),
            Err(_) => date(text).map(Moment::Date),
        }
    }
}

fn number(text: &str, digits: usize) -> Option<i64> {
    (text.len() == digits && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// `YYYY-MM-DD`, and optionally a time `HH:MM:SS`, a fraction, and a zone `Z` or `±HH:MM`.
fn date(text: &str) -> Option<i64> {
    let (day, rest) = (text.get(..10)?, text.get(10..)?);
    let (year, month, day_of_month) = (day.get(..4)?, day.get(5..7)?, day.get(8..10)?);
    let marks = day.as_bytes();
    if marks[4] != marks[7] || !matches!(marks[4], b'-' | b'/') {
        return None;
    }
    let (year, month, day) = (number(year, 4)?, number(month, 2)?, number(day_of_month, 2)?);
    if !(1678..=2261).contains(&year)
        || !(1..=12).contains(&month)
        || !(1..=days_in(year, month)).contains(&day)
    {
        return None;
    }
    let mut seconds = days(year, month, day) * 86_400;
    let mut nanoseconds = 0;
    if !rest.is_empty() {
        let time = rest.strip_prefix([' ', 'T', 't'])?;
        let (h, m, s) = (time.get(..2)?, time.get(3..5)?, time.get(6..8)?);
        if time.as_bytes()[2] != b':' || time.as_bytes()[5] != b':' {
            return None;
        }
        let (h, m, s) = (number(h, 2)?, number(m, 2)?, number(s, 2)?);
        // A leap second is there: 60.
        if h > 23 || m > 59 || s > 60 {
            return None;
        }
        seconds += h * 3600 + m * 60 + s;
        let mut rest = time.get(8..)?;
        if let Some(fraction) = rest.strip_prefix(['.', ',']) {
            let digits = fraction.bytes().take_while(u8::is_ascii_digit).count();
            if digits == 0 {
                return None;
            }
            let kept = &fraction[..digits.min(9)];
            nanoseconds = kept.parse::<i64>().ok()?
                * [1, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1000, 100, 10, 1][kept.len()];
            rest = &fraction[digits..];
        }
        seconds -= zone(rest.trim_start())?;
    }
    seconds.checked_mul(1_000_000_000)?.checked_add(nanoseconds)
}

/// Seconds that a zone is ahead.
fn zone(text: &str) -> Option<i64> {
    if matches!(text, "" | "Z" | "z" | "UTC") {
        return Some(0);
    }
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (h, m) = match rest.len() {
        5 if rest.as_bytes()[2] == b':' => (rest.get(..2)?, rest.get(3..)?),
        4 => (rest.get(..2)?, rest.get(2..)?),
        2 => (rest, "00"),
        _ => return None,
    };
    let (h, m) = (number(h, 2)?, number(m, 2)?);
    (h <= 14 && m <= 59).then_some(sign * (h * 3600 + m * 60))
}

fn is_leap(year: i64) -> bool {
    (year % 4 == 0 && year % 100 != 0) || year % 400 == 0
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 of a date in the Gregorian calendar. Years are counted from March, so that the leap day is
/// the last of one; 400 of them are 146,097 days.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_since_1970() {
        let seconds = |text: &str| match Moment::parse(text) {
            Some(Moment::Date(ns)) => ns as f64 / 1e9,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(seconds("1970-01-01"), 0.0);
        assert_eq!(seconds("2000-03-01 00:00:00"), 951_868_800.0);
        assert_eq!(seconds("2024-02-29T12:00:00Z"), 1_709_208_000.0);
        assert_eq!(seconds("2024-02-29T14:00:00+02:00"), 1_709_208_000.0);
        assert_eq!(seconds("1969-12-31 23:59:59.5"), -0.5);
        let azure = Moment::parse("2023-11-16 18:15:46.6805900");
        assert_eq!(azure, Some(Moment::Date(1_700_158_546_680_590_000)));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for bad in [
            "",
            "x",
            "nan",
            "NaN",
            "inf",
            "-infinity",
            "1e999",
            "2024-13-01",
            "2023-02-29",
            "2024-1-1",
            "2024-01-01 25:00:00",
            "2024-01-01 10:00",
            "2024-01-01 10:00:00.",
            "2024-01-01 10:00:00+99:00",
            "9999-01-01",
            "é024-01-01 ",
            "2024-01-0é",
            &"1".repeat(65),
        ] {
            assert_eq!(Moment::parse(bad), None, "{bad}");
        }
        assert_eq!(Moment::parse(" 1e308 "), Some(Moment::Number(1e308)));
        assert_eq!(Moment::parse("-3.5"), Some(Moment::Number(-3.5)));
    }

    #[test]
    fn a_unit_is_told_by_the_size_of_a_time() {
        let units = [0.0, 1.7e9, 1.7e12, 1.7e15, 1.7e18].map(|t| TimeUnit::of_size(t).name());
        assert_eq!(units, ["s", "s", "ms", "us", "ns"]);
        assert_eq!(TimeUnit::from_name("ms"), Some(TimeUnit::Milliseconds));
    }
}

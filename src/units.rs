//! Quantities that must not be mixed up: instants, spans, bytes and rates.
//!
//! Simulated time is a whole number of picoseconds in a `u64` (213 days), so that a sum of times
//! does not depend on the order of its terms.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Picoseconds in a second.
pub const PICOS_PER_SECOND: u64 = 1_000_000_000_000;

/// The longest time that fits, in whole seconds (213 days).
pub const MAX_SECONDS: f64 = (u64::MAX / PICOS_PER_SECOND) as f64;

/// An instant: picoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of simulated time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// Whole picoseconds of a number of seconds, or `None` where it is negative, not a number or too
/// long for the clock.
fn picos(seconds: f64) -> Option<u64> {
    (0.0..MAX_SECONDS).contains(&seconds).then(|| (seconds * PICOS_PER_SECOND as f64).round() as u64)
}

fn seconds(picos: u64) -> f64 {
    picos as f64 / PICOS_PER_SECOND as f64
}

impl Time {
    /// The start of a run.
    pub const ZERO: Time = Time(0);

    /// The instant so many seconds after the start; `None` where the clock cannot hold it.
    pub fn from_seconds(seconds: f64) -> Option<Time> {
        picos(seconds).map(Time)
    }

    /// Seconds since the start.
    pub fn seconds(self) -> f64 {
        seconds(self.0)
    }

    /// The instant so much later; `None` where the clock cannot hold it.
    pub fn after(self, span: Span) -> Option<Time> {
        self.0.checked_add(span.0).map(Time)
    }

    /// The time since an earlier instant.
    pub fn since(self, earlier: Time) -> Span {
        Span(self.0.checked_sub(earlier.0).expect("simulated time never runs backwards"))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// The shortest time that a step takes.
    pub const GRAIN: Span = Span(1);

    /// So many seconds; `None` where the clock cannot hold it.
    pub fn from_seconds(seconds: f64) -> Option<Span> {
        picos(seconds).map(Span)
    }

    /// The span in seconds.
    pub fn seconds(self) -> f64 {
        seconds(self.0)
    }

    /// So many times as long; saturates at the end of the clock, past which [`Time::after`] gives no
    /// instant.
    pub fn times(self, n: u64) -> Span {
        Span(self.0.saturating_mul(n))
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0.checked_sub(other.0).expect("a shorter span is taken from a longer one"))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} s", self.seconds())
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Bytes(pub f64);

/// A transfer rate, in bytes a second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct BytesPerSecond(pub f64);

impl Bytes {
    /// How long these bytes take at a rate, in seconds.
    pub fn seconds_at(self, rate: BytesPerSecond) -> f64 {
        self.0 / rate.0
    }
}

/// A number with so many significant digits, without an exponent: 4.59, 232, 0.00334.
pub fn significant(x: f64, digits: usize) -> String {
    if x == 0.0 || !x.is_finite() {
        return x.to_string();
    }
    // Rounded in scientific notation first: 9.999 has its point elsewhere once it is 10.0.
    let rounded = format!("{x:.*e}", digits - 1);
    let (_, exponent) = rounded.split_once('e').expect("scientific notation has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a whole number");
    let decimals = (digits as i32 - 1 - exponent).max(0) as usize;
    let rounded: f64 = rounded.parse().expect("what was just written reads back");
    format!("{rounded:.decimals$}")
}

/// The same without zeros at the end: 3.5, 64, 0.5.
pub fn trimmed(x: f64, digits: usize) -> String {
    let text = significant(x, digits);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_round_to_the_nearest_picosecond() {
        assert_eq!(Time::from_seconds(0.125), Some(Time(125_000_000_000)));
        assert_eq!(Span::from_seconds(1e-12), Some(Span(1)));
        assert_eq!(Span::from_seconds(0.4e-12), Some(Span(0)));
    }

    #[test]
    fn what_the_clock_cannot_hold_is_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e308, MAX_SECONDS] {
            assert_eq!(Time::from_seconds(bad), None, "{bad}");
        }
        assert!(Time::from_seconds(MAX_SECONDS - 1.0).is_some());
    }

    #[test]
    fn three_digits_are_three_digits() {
        let cases =
            [(4.588_7, "4.59"), (231.9, "232"), (0.003_336, "0.00334"), (9.999, "10.0"), (0.25, "0.250")];
        for (x, text) in cases {
            assert_eq!(significant(x, 3), text);
        }
        assert_eq!(significant(12_345.0, 3), "12300");
        assert_eq!(significant(0.0, 3), "0");
    }
}

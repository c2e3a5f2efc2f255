//! Virtual time and durations, in picoseconds, with text forms such as `1.2us` and `39.72ns`.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

/// An instant of virtual time, or a duration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(u64);

/// Time units with their lengths in picoseconds, largest first.
const UNITS: [(&str, u64); 5] = [
    ("s", 1_000_000_000_000),
    ("ms", 1_000_000_000),
    ("us", 1_000_000),
    ("ns", 1_000),
    ("ps", 1),
];

/// The two Unicode characters for micro: the micro sign, and the Greek letter mu.
const MICRO: [char; 2] = ['\u{b5}', '\u{3bc}'];

impl Time {
    /// Power-on, or a zero duration.
    pub const ZERO: Self = Self(0);

    /// Returns a duration of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Self(ps)
    }

    /// Returns a duration of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns.saturating_mul(1000))
    }

    /// Returns the time in picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }

    /// Returns the time in nanoseconds, rounded down.
    pub const fn ns(self) -> u64 {
        self.0 / 1000
    }

    /// Returns the time in microseconds.
    pub fn us(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns `self + factor * other`; a negative sum becomes zero.
    pub fn plus_scaled(self, other: Self, factor: f64) -> Self {
        Self((self.0 as f64 + other.0 as f64 * factor).round() as u64)
    }

    /// Returns `factor * self`, rounded to a picosecond.
    pub fn scaled(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor).round() as u64)
    }
}

impl Add for Time {
    type Output = Self;

    /// Adds with saturation; the engine reports a saturated time as a run that is too long.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Time {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, size) = UNITS
            .into_iter()
            .find(|&(_, size)| self.0 >= size)
            .unwrap_or(("s", UNITS[0].1));
        // Three decimals suffice in a table.
        let number = format!("{:.3}", self.0 as f64 / size as f64);
        let text = format!(
            "{}{unit}",
            number.trim_end_matches('0').trim_end_matches('.')
        );
        f.pad(&text)
    }
}

/// The error for a text that is not a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadTime(String);

impl fmt::Display for BadTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is no time: write a number and a unit, as in 1.2us, 40ns, 3ms",
            self.0
        )
    }
}

impl std::error::Error for BadTime {}

impl FromStr for Time {
    type Err = BadTime;

    fn from_str(text: &str) -> Result<Self, BadTime> {
        let bad = || BadTime(text.to_owned());
        // Accepts both characters for micro: the micro sign and the Greek letter mu.
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || MICRO.contains(&c));
        let unit = text[digits.len()..].replace(MICRO, "u");
        let number = digits.parse::<f64>();
        let size = UNITS
            .into_iter()
            .find(|&(name, _)| name == unit)
            .map(|(_, size)| size);
        match (number, size) {
            (Ok(number), Some(size)) if number >= 0.0 && number.is_finite() => {
                Ok(Self(size).scaled(number))
            }
            // "0" needs no unit.
            (Ok(0.0), None) if unit.is_empty() => Ok(Self::ZERO),
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written_with_their_unit() {
        for (text, ps) in [
            ("0", 0),
            ("1ps", 1),
            ("39.72ns", 39_720),
            ("1.2us", 1_200_000),
            ("1\u{b5}s", 1_000_000),
            ("1.2\u{3bc}s", 1_200_000),
            ("2s", 2_000_000_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Time(ps)));
        }
        for text in ["0s", "39.72ns", "1.2us", "3ms", "2s"] {
            assert_eq!(
                text.parse::<Time>().map(|t| t.to_string()),
                Ok(text.to_owned())
            );
        }
    }

    #[test]
    fn what_is_no_time_is_refused_with_an_example() {
        for text in ["", "us", "1", "-1us", "1 us", "1h", "nan", "infs", "1e400s"] {
            let refused = text.parse::<Time>().expect_err(text).to_string();
            assert_eq!(
                refused,
                format!("'{text}' is no time: write a number and a unit, as in 1.2us, 40ns, 3ms")
            );
        }
    }
}

//! Parsing of parameter values: one implementation of [`Value`] for each type of parameter.

use super::{Selection, SelectionError};
use crate::text;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The kind of a parameter's values, as printed in listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// True or false.
    /// The texts 1 and 0, yes and no, on and off, enabled and disabled are accepted, too.
    Bool,
    /// A signed integer.
    Int,
    /// An unsigned integer.
    Unsigned,
    /// A number of bytes, with an optional binary unit.
    Size,
    /// A floating-point number.
    Double,
    /// A time, with an optional unit.
    Duration,
    /// Any text.
    Text,
    /// A list of components; see [`Selection`](super::Selection).
    Selection,
    /// One word of this list of words.
    OneOf(&'static [&'static str]),
}

impl fmt::Display for Kind {
    /// Prints the name of the kind in `ompi_info`, if `ompi_info` has this kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Bool => "bool",
            Kind::Int => "int",
            Kind::Unsigned => "unsigned_int",
            Kind::Size => "size_t",
            Kind::Double => "double",
            Kind::Duration => "duration",
            Kind::Text => "string",
            Kind::Selection => "selection",
            Kind::OneOf(_) => "enumerator",
        })
    }
}

impl Kind {
    /// Checks that a text is a value of this kind.
    /// The error is the expected syntax, as in [`Value::parse`].
    pub fn check(self, text: &str) -> Result<(), String> {
        match self {
            Kind::Bool => bool::parse(text).map(drop),
            Kind::Int => i32::parse(text).map(drop),
            Kind::Unsigned => u32::parse(text).map(drop),
            Kind::Size => usize::parse(text).map(drop),
            Kind::Double => f64::parse(text).map(drop),
            Kind::Duration => Duration::parse(text).map(drop),
            Kind::Selection => <Selection as Value>::parse(text).map(drop),
            Kind::Text => Ok(()),
            Kind::OneOf(words) if words.contains(&text) => Ok(()),
            Kind::OneOf(words) => Err(format!("one of {}", words.join(", "))),
        }
    }
}

/// A type that a parameter can have.
pub trait Value: Sized {
    /// The kind of this type's values, for `mpi-info`.
    const KIND: Kind;

    /// Parses a value; the error is the expected syntax, as the subject of "… is expected".
    fn parse(text: &str) -> Result<Self, String>;
}

impl Value for bool {
    const KIND: Kind = Kind::Bool;

    fn parse(text: &str) -> Result<Self, String> {
        let is_one_of = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
        if is_one_of(&["1", "true", "yes", "on", "enabled"]) {
            Ok(true)
        } else if is_one_of(&["0", "false", "no", "off", "disabled"]) {
            Ok(false)
        } else {
            Err("true or false (also 1, 0, yes, no, on, off)".into())
        }
    }
}

impl Value for i32 {
    const KIND: Kind = Kind::Int;

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| format!("a whole number from {} to {}", i32::MIN, i32::MAX))
    }
}

impl Value for u32 {
    const KIND: Kind = Kind::Unsigned;

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| format!("a whole number from 0 to {}", u32::MAX))
    }
}

/// The number of a TCP port.
impl Value for u16 {
    const KIND: Kind = Kind::Unsigned;

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| format!("a whole number from 0 to {}", u16::MAX))
    }
}

/// A number of bytes or a count, with an optional binary suffix k, M, G or T.
impl Value for usize {
    const KIND: Kind = Kind::Size;

    fn parse(text: &str) -> Result<Self, String> {
        let expected = || "a size such as 4096, 64k, 1M or 2G".to_string();
        let (digits, shift) = match text.as_bytes().last() {
            Some(b'k' | b'K') => (&text[..text.len() - 1], 10),
            Some(b'm' | b'M') => (&text[..text.len() - 1], 20),
            Some(b'g' | b'G') => (&text[..text.len() - 1], 30),
            Some(b't' | b'T') => (&text[..text.len() - 1], 40),
            _ => (text, 0),
        };
        let number: usize = digits.parse().map_err(|_| expected())?;
        number.checked_mul(1 << shift).ok_or_else(expected)
    }
}

impl Value for f64 {
    const KIND: Kind = Kind::Double;

    fn parse(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(number),
            _ => Err("a number such as 0.5".into()),
        }
    }
}

/// A time with an optional unit; without a unit it is in seconds, as users write time limits.
impl Value for Duration {
    const KIND: Kind = Kind::Duration;

    fn parse(text: &str) -> Result<Self, String> {
        let expected =
            || "a time such as 50us, 200ms, 1.5s, 2min (a bare number is seconds)".to_string();
        let unit_at = text
            .find(|c: char| c.is_ascii_alphabetic())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(unit_at);
        let seconds = match unit {
            "ns" => 1e-9,
            "us" => 1e-6,
            "ms" => 1e-3,
            "" | "s" => 1.0,
            "min" => 60.0,
            "h" => 3600.0,
            _ => return Err(expected()),
        };
        let number: f64 = number.trim_end().parse().map_err(|_| expected())?;
        Duration::try_from_secs_f64(number * seconds).map_err(|_| expected())
    }
}

impl Value for String {
    const KIND: Kind = Kind::Text;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text.to_string())
    }
}

/// A file path; every byte is allowed.
impl Value for PathBuf {
    const KIND: Kind = Kind::Text;

    fn parse(text: &str) -> Result<Self, String> {
        Ok(text::to_path(text))
    }
}

impl Value for Selection {
    const KIND: Kind = Kind::Selection;

    fn parse(text: &str) -> Result<Self, String> {
        Selection::parse(text).map_err(|error| match error {
            SelectionError::EmptyName { .. } => {
                "a list such as self,sm or ^tcp without empty names".into()
            }
            _ => "a list such as self,sm or ^tcp, with ^ only as the first character,".into(),
        })
    }
}

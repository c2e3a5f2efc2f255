//! Writers of waveform files: value change dump (IEEE 1364) and FST, GTKWave's compressed form.
//!
//! A waveform is drawn once, into any [`Dump`]: scopes and signals first, then initial values, then changes in the order of time.

mod fst;
mod value_change;

pub use fst::FstDump;
pub use value_change::VcdDump;

use std::io;
use std::path::Path;

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text that every tool reads.
    Vcd,
    /// Compressed: a small fraction of the size of a VCD.
    Fst,
}

impl Form {
    /// Returns the form for a file name: FST if it ends in `.fst`.
    pub fn of(file: &Path) -> Self {
        match file.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("fst") => Self::Fst,
            _ => Self::Vcd,
        }
    }

    /// Returns the width of a text in bits, if this form has no text values.
    pub fn text_bits(self) -> Option<u32> {
        match self {
            Self::Vcd => None,
            Self::Fst => Some(8 * TEXT_CHARACTERS as u32),
        }
    }
}

/// The length of a text in FST, whose values have fixed lengths.
const TEXT_CHARACTERS: usize = 48;

/// A unit of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// 1 ns.
    Nanosecond,
    /// 1 ps.
    Picosecond,
}

/// The kind of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A vector of this width, shown as one number.
    Bits(u32),
    /// A text, which a viewer prints.
    Text,
}

/// The value of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number.
    Bits(u64),
    /// A text.
    Text(String),
    /// A clock that is not written here, or a number that does not exist.
    NotDrawn,
    /// A value that is no longer known.
    Dead,
}

impl Value {
    /// Returns the value of one wire.
    pub fn bit(high: bool) -> Self {
        Self::Bits(u64::from(high))
    }
}

/// A declared signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(usize);

/// A waveform under construction.
pub trait Dump {
    /// Opens a scope for the signals and scopes that follow.
    fn scope(&mut self, name: &str) -> io::Result<()>;
    /// Closes the scope.
    fn up_scope(&mut self) -> io::Result<()>;
    /// Declares a signal in the present scope.
    fn signal(&mut self, name: &str, kind: Kind) -> io::Result<Signal>;
    /// Ends the declarations.
    fn declared(&mut self) -> io::Result<()>;
    /// Starts the initial values, until the time changes or until [`initial_values_end`](Self::initial_values_end).
    fn initial_values(&mut self) -> io::Result<()>;
    /// Ends the initial values.
    fn initial_values_end(&mut self) -> io::Result<()>;
    /// Sets the time of the changes that follow.
    fn time(&mut self, at: u64) -> io::Result<()>;
    /// Sets a signal to a value at the present time.
    fn change(&mut self, signal: Signal, value: &Value) -> io::Result<()>;
    /// Writes a comment; ignored if the form has none.
    fn comment(&mut self, words: &str) -> io::Result<()>;
    /// Completes the file.
    fn finish(&mut self) -> io::Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_follows_the_name() {
        for (name, form) in [
            ("a.vcd", Form::Vcd),
            ("a", Form::Vcd),
            ("a.fst", Form::Fst),
            ("A.FST", Form::Fst),
        ] {
            assert_eq!(Form::of(Path::new(name)), form, "{name}");
        }
    }
}

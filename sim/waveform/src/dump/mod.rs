//! Writers of waveform files: value change dump (IEEE 1364), and FST, GTKWave's compressed format.
//!
//! One function draws a waveform into any [`Dump`]: first scopes and signals, then initial values,
//! then changes in the order of time.

mod fst;
mod value_change;

pub use fst::FstDump;
pub use value_change::VcdDump;

use std::io;
use std::path::Path;

/// A file format for waveforms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Value change dump, a text format that every tool reads.
    Vcd,
    /// FST, a compressed format; its files have a small fraction of the size of a VCD.
    Fst,
}

impl Form {
    /// Returns the format for a file name: FST if the name ends in `.fst`, else VCD.
    pub fn of(file: &Path) -> Self {
        match file.extension() {
            Some(ending) if ending.eq_ignore_ascii_case("fst") => Self::Fst,
            _ => Self::Vcd,
        }
    }

    /// Returns the width in bits of the vector that contains a text signal:
    /// 8 bits for each of `TEXT_CHARACTERS` in an FST, `None` in a VCD, whose text signals are strings without a width.
    pub fn text_bits(self) -> Option<u32> {
        match self {
            Self::Vcd => None,
            Self::Fst => Some(8 * TEXT_CHARACTERS as u32),
        }
    }
}

/// Length of a text in an FST in characters; all values of a signal have the same length.
const TEXT_CHARACTERS: usize = 48;

/// The unit of time of a waveform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Times are in nanoseconds.
    Nanosecond,
    /// Times are in picoseconds.
    Picosecond,
}

/// The type of a signal: a vector or a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A vector of this number of bits, shown as one number.
    Bits(u32),
    /// A text, which a viewer prints.
    Text,
}

/// The value of a signal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// The value of a vector.
    Bits(u64),
    /// The value of a text signal.
    Text(String),
    /// The value of a clock that is not written in this time range, or of a number without a value.
    NotDrawn,
    /// The value of a signal that is unknown because its node has died.
    Dead,
}

impl Value {
    /// Returns the value of a wire with this level.
    pub fn bit(high: bool) -> Self {
        Self::Bits(u64::from(high))
    }
}

/// The handle of a declared signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signal(usize);

/// A waveform under construction.
pub trait Dump {
    /// Opens a scope for the signals and scopes that follow.
    fn scope(&mut self, name: &str) -> io::Result<()>;
    /// Closes the present scope.
    fn up_scope(&mut self) -> io::Result<()>;
    /// Declares a signal in the present scope.
    fn signal(&mut self, name: &str, kind: Kind) -> io::Result<Signal>;
    /// Ends the declarations.
    fn declared(&mut self) -> io::Result<()>;
    /// Starts the initial values of the signals.
    /// They end when the time changes or with [`initial_values_end`](Self::initial_values_end).
    fn initial_values(&mut self) -> io::Result<()>;
    /// Ends the initial values.
    fn initial_values_end(&mut self) -> io::Result<()>;
    /// Sets the time of the changes that follow.
    fn time(&mut self, at: u64) -> io::Result<()>;
    /// Sets a signal to a value at the present time.
    fn change(&mut self, signal: Signal, value: &Value) -> io::Result<()>;
    /// Writes a comment; ignored if the format has no comments.
    fn comment(&mut self, words: &str) -> io::Result<()>;
    /// Completes the file; no further calls follow.
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

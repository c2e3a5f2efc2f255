//! Writer of FST, GTKWave's compressed format, with the crate `fst-writer`.
//!
//! FST has no text signals and no comments: a text becomes a vector of characters of fixed length,
//! and the comment about the file becomes part of the version text.

use super::{Dump, Kind, Signal, TEXT_CHARACTERS, Unit, Value};
use fst_writer::{
    FstBodyWriter, FstFileType, FstHeaderWriter, FstInfo, FstScopeType, FstSignalId, FstSignalType,
    FstVarDirection, FstVarType, FstWriteError,
};
use std::io;

/// An FST under construction.
pub struct FstDump<W: io::Write + io::Seek> {
    part: WriterState<W>,
    signals: Vec<(FstSignalId, Kind)>,
}

/// The state of the file: its declarations or its changes are being written.
enum WriterState<W: io::Write + io::Seek> {
    Header(FstHeaderWriter<W>),
    Body(FstBodyWriter<W>),
    Finished,
}

impl<W: io::Write + io::Seek> FstDump<W> {
    /// Creates a writer; `sink` should be buffered.
    /// `remark` is a comment about the whole file; it may be empty.
    pub fn new(sink: W, unit: Unit, remark: &str) -> io::Result<Self> {
        let info = FstInfo {
            start_time: 0,
            timescale_exponent: match unit {
                Unit::Nanosecond => -9,
                Unit::Picosecond => -12,
            },
            version: match remark {
                "" => "hwbarr".to_owned(),
                remark => format!("hwbarr: {remark}"),
            },
            // The date stays empty, so that the same run always gives the same file.
            date: String::new(),
            file_type: FstFileType::Verilog,
        };
        let header = FstHeaderWriter::new(sink, &info).map_err(error)?;
        Ok(Self {
            part: WriterState::Header(header),
            signals: Vec::new(),
        })
    }

    fn header(&mut self) -> io::Result<&mut FstHeaderWriter<W>> {
        match &mut self.part {
            WriterState::Header(header) => Ok(header),
            _ => Err(out_of_order()),
        }
    }

    fn body(&mut self) -> io::Result<&mut FstBodyWriter<W>> {
        match &mut self.part {
            WriterState::Body(body) => Ok(body),
            _ => Err(out_of_order()),
        }
    }
}

/// Returns the error for a change before the end of the declarations, or a declaration after it.
fn out_of_order() -> io::Error {
    io::Error::other("an FST has its declarations first, then its changes")
}

fn error(error: FstWriteError) -> io::Error {
    match error {
        FstWriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl<W: io::Write + io::Seek> Dump for FstDump<W> {
    fn scope(&mut self, name: &str) -> io::Result<()> {
        let header = self.header()?;
        header.scope(name, "", FstScopeType::Module).map_err(error)
    }

    fn up_scope(&mut self) -> io::Result<()> {
        self.header()?.up_scope().map_err(error)
    }

    fn signal(&mut self, name: &str, kind: Kind) -> io::Result<Signal> {
        let width = width(kind);
        let name = match width {
            1 => name.to_owned(),
            _ => format!("{name} [{}:0]", width - 1),
        };
        let (bits, way) = (FstSignalType::bit_vec(width), FstVarDirection::Implicit);
        let header = self.header()?;
        let id = header.var(name, bits, FstVarType::Wire, way, None);
        self.signals.push((id.map_err(error)?, kind));
        Ok(Signal(self.signals.len() - 1))
    }

    fn declared(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.part, WriterState::Finished) {
            WriterState::Header(header) => {
                self.part = WriterState::Body(header.finish().map_err(error)?);
                Ok(())
            }
            _ => Err(out_of_order()),
        }
    }

    fn initial_values(&mut self) -> io::Result<()> {
        self.time(0)
    }

    fn initial_values_end(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn time(&mut self, at: u64) -> io::Result<()> {
        self.body()?.time_change(at).map_err(error)
    }

    fn change(&mut self, signal: Signal, value: &Value) -> io::Result<()> {
        let (id, kind) = self.signals[signal.0];
        let digits = digits(value, kind);
        self.body()?.signal_change(id, &digits).map_err(error)
    }

    fn comment(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        match std::mem::replace(&mut self.part, WriterState::Finished) {
            WriterState::Body(body) => body.finish().map_err(error)?.flush(),
            _ => Err(out_of_order()),
        }
    }
}

fn width(kind: Kind) -> u32 {
    match kind {
        Kind::Bits(width) => width,
        Kind::Text => 8 * TEXT_CHARACTERS as u32,
    }
}

/// Returns one character per bit, the highest bit first.
fn digits(value: &Value, kind: Kind) -> Vec<u8> {
    let bit = |high: bool| if high { b'1' } else { b'0' };
    match value {
        Value::Text(text) => {
            let characters = text.bytes().chain(std::iter::repeat(b' '));
            let characters = characters.take(TEXT_CHARACTERS);
            let places = |byte: u8| (0..8).rev().map(move |place| bit(byte >> place & 1 == 1));
            characters.flat_map(places).collect()
        }
        Value::Bits(bits) => {
            let places = (0..width(kind)).rev();
            let digit = |place| bit(bits.checked_shr(place).is_some_and(|bits| bits & 1 == 1));
            places.map(digit).collect()
        }
        Value::NotDrawn => vec![b'z'; width(kind) as usize],
        Value::Dead => vec![b'x'; width(kind) as usize],
    }
}

//! The two files that a drawing becomes: value change dump (IEEE 1364) and FST, GTKWave's compressed form.

use super::draw::{Change, Drawing, Kind, Value};
use fst_writer::{
    FstFileType, FstHeaderWriter, FstInfo, FstScopeType, FstSignalId, FstSignalType,
    FstVarDirection, FstVarType, FstWriteError,
};
use std::io;
use vcd::{IdCode, SimulationCommand, TimescaleUnit, VarType};

/// Which file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Text that every tool reads.
    Vcd,
    /// Compressed: a small part of that.
    Fst,
}

impl Form {
    /// How many bits a text has, if it is not one of the format's own.
    pub(super) fn text_bits(self) -> Option<u32> {
        match self {
            Self::Vcd => None,
            Self::Fst => Some(8 * TEXT_CHARACTERS as u32),
        }
    }
}

/// As many characters as a text has room for in FST, whose values have fixed lengths.
const TEXT_CHARACTERS: usize = 48;

impl Drawing {
    /// Writes everything; how many changes there were.
    pub fn write<W: io::Write + io::Seek>(&self, sink: W, form: Form) -> io::Result<usize> {
        match form {
            Form::Vcd => self.write_vcd(sink),
            Form::Fst => self.write_fst(sink).map_err(|e| match e {
                FstWriteError::Io(e) => e,
                other => io::Error::other(other),
            }),
        }
    }

    fn write_vcd<W: io::Write>(&self, sink: W) -> io::Result<usize> {
        let mut writer = vcd::Writer::new(sink);
        writer.version("hwbarr")?;
        writer.timescale(1, TimescaleUnit::PS)?;
        let mut ids: Vec<IdCode> = Vec::with_capacity(self.signals.len());
        let mut open: Vec<&str> = Vec::new();
        for signal in &self.signals {
            let common = common(&open, &signal.scope);
            for _ in common..open.len() {
                writer.upscope()?;
            }
            open.truncate(common);
            for scope in &signal.scope[common..] {
                writer.add_module(scope)?;
                open.push(scope);
            }
            ids.push(match signal.kind {
                Kind::Bits(width) => writer.add_wire(width, &signal.name)?,
                Kind::Text => writer.add_var(VarType::String, 1, &signal.name, None)?,
            });
        }
        for _ in &open {
            writer.upscope()?;
        }
        writer.enddefinitions()?;
        let mut at = None;
        let mut written = 0;
        self.each(|change| {
            let time = change.at.ps();
            if at != Some(time) {
                if at == Some(0) {
                    writer.end()?;
                }
                writer.timestamp(time)?;
                if at.is_none() {
                    writer.begin(SimulationCommand::Dumpvars)?;
                }
                at = Some(time);
            }
            written += 1;
            let id = ids[change.signal];
            match (&change.value, self.signals[change.signal].kind) {
                (Value::Text(text), _) => writer.change_string(id, text),
                (value, Kind::Bits(1)) => writer.change_scalar(id, scalar(value)),
                (Value::Bits(bits), _) => writer.change_vector(id, crate::vcd::bits(*bits)),
                (value, _) => writer.change_vector(id, [scalar(value)]),
            }
        })?;
        if at == Some(0) {
            writer.end()?;
        }
        writer.flush()?;
        Ok(written)
    }

    fn write_fst<W: io::Write + io::Seek>(&self, sink: W) -> Result<usize, FstWriteError> {
        let info = FstInfo {
            start_time: 0,
            timescale_exponent: -12,
            version: "hwbarr".to_owned(),
            // Of a run that is the same every day.
            date: String::new(),
            file_type: FstFileType::Verilog,
        };
        let mut header = FstHeaderWriter::new(sink, &info)?;
        let mut ids: Vec<FstSignalId> = Vec::with_capacity(self.signals.len());
        let mut open: Vec<&str> = Vec::new();
        for signal in &self.signals {
            let common = common(&open, &signal.scope);
            for _ in common..open.len() {
                header.up_scope()?;
            }
            open.truncate(common);
            for scope in &signal.scope[common..] {
                header.scope(scope, "", FstScopeType::Module)?;
                open.push(scope);
            }
            let (name, width) = match signal.kind {
                Kind::Bits(1) => (signal.name.clone(), 1),
                Kind::Bits(width) => (format!("{} [{}:0]", signal.name, width - 1), width),
                Kind::Text => {
                    let width = 8 * TEXT_CHARACTERS as u32;
                    (format!("{} [{}:0]", signal.name, width - 1), width)
                }
            };
            let kind = FstSignalType::bit_vec(width);
            let way = FstVarDirection::Implicit;
            ids.push(header.var(name, kind, FstVarType::Wire, way, None)?);
        }
        for _ in &open {
            header.up_scope()?;
        }
        let mut body = header.finish()?;
        let mut at = None;
        let mut written = 0;
        self.each(|change| {
            if at != Some(change.at) {
                body.time_change(change.at.ps())?;
                at = Some(change.at);
            }
            written += 1;
            let kind = self.signals[change.signal].kind;
            body.signal_change(ids[change.signal], &digits(&change.value, kind))
        })?;
        body.finish()?;
        Ok(written)
    }

    /// Every change of a signal's value, in the order of time.
    fn each<E>(&self, mut take: impl FnMut(&Change) -> Result<(), E>) -> Result<(), E> {
        let mut last: Vec<Option<&Value>> = vec![None; self.signals.len()];
        for change in &self.changes {
            if last[change.signal] != Some(&change.value) {
                last[change.signal] = Some(&change.value);
                take(change)?;
            }
        }
        Ok(())
    }
}

/// How many scopes are open already.
fn common(open: &[&str], wanted: &[String]) -> usize {
    let pairs = open.iter().zip(wanted);
    pairs.take_while(|(open, wanted)| *open == wanted).count()
}

fn scalar(value: &Value) -> vcd::Value {
    match value {
        Value::Bits(bits) => crate::vcd::bit(*bits != 0),
        Value::NotDrawn => vcd::Value::Z,
        Value::Dead | Value::Text(_) => vcd::Value::X,
    }
}

/// FST's values: a character for each bit, the highest first.
fn digits(value: &Value, kind: Kind) -> Vec<u8> {
    let bit = |high: bool| if high { b'1' } else { b'0' };
    match (value, kind) {
        (Value::Text(text), _) => {
            let characters = text.bytes().chain(std::iter::repeat(b' '));
            let characters = characters.take(TEXT_CHARACTERS);
            let places = |byte: u8| (0..8).rev().map(move |place| bit(byte >> place & 1 == 1));
            characters.flat_map(places).collect()
        }
        (Value::Bits(bits), Kind::Bits(width)) => (0..width)
            .rev()
            .map(|place| bit(bits >> place & 1 == 1))
            .collect(),
        (Value::NotDrawn, Kind::Bits(width)) => vec![b'z'; width as usize],
        (_, Kind::Bits(width)) => vec![b'x'; width as usize],
        (_, Kind::Text) => vec![b'x'; 8 * TEXT_CHARACTERS],
    }
}

//! Writer of value change dumps, a text format that every tool reads.

use super::{Dump, Kind, Signal, Unit, Value};
use std::io;
use vcd::{IdCode, SimulationCommand, TimescaleUnit, VarType, Writer};

/// A value change dump under construction.
pub struct VcdDump<W: io::Write> {
    writer: Writer<W>,
    signals: Vec<(IdCode, Kind)>,
    at: Option<u64>,
    in_initial_values: bool,
}

impl<W: io::Write> VcdDump<W> {
    /// Creates a writer; `sink` should be buffered.
    pub fn new(sink: W, unit: Unit) -> io::Result<Self> {
        let mut writer = Writer::new(sink);
        writer.version("hwbarr")?;
        let unit = match unit {
            Unit::Nanosecond => TimescaleUnit::NS,
            Unit::Picosecond => TimescaleUnit::PS,
        };
        writer.timescale(1, unit)?;
        Ok(Self {
            writer,
            signals: Vec::new(),
            at: None,
            in_initial_values: false,
        })
    }
}

impl<W: io::Write> Dump for VcdDump<W> {
    fn scope(&mut self, name: &str) -> io::Result<()> {
        self.writer.add_module(name)
    }

    fn up_scope(&mut self) -> io::Result<()> {
        self.writer.upscope()
    }

    fn signal(&mut self, name: &str, kind: Kind) -> io::Result<Signal> {
        let id = match kind {
            Kind::Bits(width) => self.writer.add_wire(width, name)?,
            Kind::Text => self.writer.add_var(VarType::String, 1, name, None)?,
        };
        self.signals.push((id, kind));
        Ok(Signal(self.signals.len() - 1))
    }

    fn declared(&mut self) -> io::Result<()> {
        self.writer.enddefinitions()
    }

    fn initial_values(&mut self) -> io::Result<()> {
        self.time(0)?;
        self.in_initial_values = true;
        self.writer.begin(SimulationCommand::Dumpvars)
    }

    fn initial_values_end(&mut self) -> io::Result<()> {
        match std::mem::take(&mut self.in_initial_values) {
            true => self.writer.end(),
            false => Ok(()),
        }
    }

    fn time(&mut self, at: u64) -> io::Result<()> {
        if self.at != Some(at) {
            self.initial_values_end()?;
            self.writer.timestamp(at)?;
            self.at = Some(at);
        }
        Ok(())
    }

    fn change(&mut self, signal: Signal, value: &Value) -> io::Result<()> {
        let (id, kind) = self.signals[signal.0];
        match (value, kind) {
            (Value::Text(text), _) => self.writer.change_string(id, text),
            (value, Kind::Bits(1)) => self.writer.change_scalar(id, scalar(value)),
            (Value::Bits(number), _) => self.writer.change_vector(id, bits(*number)),
            (value, _) => self.writer.change_vector(id, [scalar(value)]),
        }
    }

    fn comment(&mut self, words: &str) -> io::Result<()> {
        self.writer.comment(words)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.initial_values_end()?;
        self.writer.flush()
    }
}

fn bit(high: bool) -> vcd::Value {
    match high {
        true => vcd::Value::V1,
        false => vcd::Value::V0,
    }
}

fn scalar(value: &Value) -> vcd::Value {
    match value {
        Value::Bits(bits) => bit(*bits != 0),
        Value::NotDrawn => vcd::Value::Z,
        Value::Dead | Value::Text(_) => vcd::Value::X,
    }
}

/// Returns the bits, most significant first, without leading zeros, which readers restore.
fn bits(value: u64) -> impl Iterator<Item = vcd::Value> {
    let width = (u64::BITS - value.leading_zeros()).max(1);
    (0..width)
        .rev()
        .map(move |place| bit(value >> place & 1 == 1))
}

//! The line changes of a version 2 board as a waveform: IEEE 1364 value change dump, timescale 1 ps, changes only.
//!
//! A record holds what the nodes drive; the model, stepped edge by edge over the same changes, gives all the rest.
//! The tree of signals is
//!
//! ```text
//! barrier
//!   clk                the board's clock, drawn at the edges that change something, and z elsewhere
//!   channel0
//!     release          the level of its inward lines
//!     arrived[6:0]     how many members have entered and wait to be released
//!     members[59:0]    the nodes that have it, bit by bit (as wide as there are nodes)
//!     late[59:0]       the members that were missing when its time limit ran out
//!     releases[31:0]   how often it has released
//!   channel1 ... channel4
//!   serial
//!     node             the node whose request is heard, as text; "-" for none
//!     phase            receive, execute, reply or over
//!     request          the last request that was carried out: operation, channel, argument
//!     reply            its answer: status and value
//!   node00
//!     arrive0 ... arrive4, clock, data, select     the lines from the node to the board
//!     release0 ... release4                        the lines from the board to the node; the last one also carries replies
//!   node01 ...
//! ```
//!
//! Texts have no blanks, which the format's readers take for the end of a value.

mod frames;
mod names;

pub(crate) use names::{
    CLK, SERIAL, SERIAL_TEXTS, channel_scope, channel_signals, node_signals, range,
};

use crate::clock::Clock;
use crate::event::ChannelRecord;
use crate::vcd::{TOP, bit, bits, node_scope};
use crate::view::View;
use fpga_model::channels::{ChannelMachine, MAX_CHANNELS, Phase, Pins, SETTLE_EDGES};
use frames::{reply_text, request_text};
use std::io;
use vcd::{IdCode, SimulationCommand, TimescaleUnit, Value, VarType, Writer};

/// The board's clock, counted in picoseconds.
const CLOCK: Clock = Clock {
    hz: fpga_model::CLOCK_HZ,
    units_per_s: 1_000_000_000_000,
};

/// Half a period of it.
const HALF_PERIOD: u64 = CLOCK.units_per_s / fpga_model::CLOCK_HZ / 2;

/// What a waveform shows, for its save file.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    nodes: usize,
    begin: u64,
    first_release: Option<u64>,
    end: u64,
}

impl Shown {
    pub(crate) fn view(self) -> View {
        View {
            nodes: self.nodes,
            begin: self.begin,
            first_release: self.first_release,
            end: self.end,
        }
    }
}

/// Writes the record; give a buffered `sink`. The record's node count is one that a board had, 1 to 60.
pub fn write(sink: impl io::Write, record: &ChannelRecord) -> io::Result<Shown> {
    let machine = ChannelMachine::new(record.nodes, MAX_CHANNELS)
        .map_err(|bad| io::Error::new(io::ErrorKind::InvalidInput, bad.to_string()))?;
    let mut dump = Dump::begin(sink, record, machine)?;
    for change in &record.changes {
        dump.run_to(CLOCK.edges_until(change.at_ps))?;
        dump.pins.set(change.node, change.line, change.high);
        dump.show(change.at_ps)?;
    }
    // What the last changes cause is shown too.
    let end = dump.edge + SETTLE_EDGES;
    dump.run_to(end)?;
    dump.draw_clock(CLOCK.time_of(end), end)?;
    dump.note_dropped(record.dropped)?;
    dump.writer.flush()?;
    Ok(Shown {
        nodes: record.nodes,
        begin: record.changes.first().map_or(0, |change| change.at_ps),
        first_release: dump.first_release,
        end: dump.at_ps,
    })
}

/// A signal that has been declared, and what was last written of it.
struct Signal<T> {
    id: IdCode,
    last: Option<T>,
}

impl<T: PartialEq + Clone> Signal<T> {
    fn new(id: IdCode) -> Self {
        Self { id, last: None }
    }

    /// The code to write `now` under, if it is not what was written last.
    fn changed(&mut self, now: &T) -> Option<IdCode> {
        if self.last.as_ref() == Some(now) {
            return None;
        }
        self.last = Some(now.clone());
        Some(self.id)
    }
}

struct ChannelIds {
    release: Signal<bool>,
    counts: [Signal<u64>; 4],
}

/// What of the clock is in the waveform.
struct Drawn {
    id: IdCode,
    /// The last edge that was drawn,
    edge: u64,
    /// and how it goes on: when it falls, and whether the next edge is there.
    next: Next,
}

enum Next {
    Falls(u64),
    Low,
    NotDrawn,
}

struct Dump<W: io::Write> {
    writer: Writer<W>,
    clock: Drawn,
    channels: Vec<ChannelIds>,
    texts: Vec<Signal<String>>,
    nodes: Vec<Vec<Signal<bool>>>,
    machine: ChannelMachine,
    pins: Pins,
    edge: u64,
    at_ps: u64,
    first_release: Option<u64>,
    /// The texts of the last request and reply.
    request: String,
    reply: String,
}

impl<W: io::Write> Dump<W> {
    fn begin(sink: W, record: &ChannelRecord, machine: ChannelMachine) -> io::Result<Self> {
        let mut writer = Writer::new(sink);
        writer.version("hwbarr")?;
        writer.timescale(1, TimescaleUnit::PS)?;
        writer.add_module(TOP)?;
        let clock = Drawn {
            id: writer.add_wire(1, CLK)?,
            edge: 0,
            next: Next::Low,
        };
        let mut channels = Vec::with_capacity(MAX_CHANNELS);
        for channel in 0..MAX_CHANNELS {
            writer.add_module(&channel_scope(channel))?;
            let [release, counts @ ..] = channel_signals(record.nodes);
            channels.push(ChannelIds {
                release: Signal::new(writer.add_wire(release.1, release.0)?),
                counts: [
                    Signal::new(writer.add_wire(counts[0].1, counts[0].0)?),
                    Signal::new(writer.add_wire(counts[1].1, counts[1].0)?),
                    Signal::new(writer.add_wire(counts[2].1, counts[2].0)?),
                    Signal::new(writer.add_wire(counts[3].1, counts[3].0)?),
                ],
            });
            writer.upscope()?;
        }
        writer.add_module(SERIAL)?;
        let mut texts = Vec::with_capacity(SERIAL_TEXTS.len());
        for name in SERIAL_TEXTS {
            texts.push(Signal::new(writer.add_var(
                VarType::String,
                1,
                name,
                None,
            )?));
        }
        writer.upscope()?;
        let mut nodes = Vec::with_capacity(record.nodes);
        for node in 0..record.nodes {
            writer.add_module(&node_scope(node))?;
            let mut lines = Vec::new();
            for name in node_signals() {
                lines.push(Signal::new(writer.add_wire(1, &name)?));
            }
            nodes.push(lines);
            writer.upscope()?;
        }
        writer.upscope()?;
        writer.enddefinitions()?;
        let mut dump = Self {
            writer,
            clock,
            channels,
            texts,
            nodes,
            machine,
            pins: Pins::default(),
            edge: 0,
            at_ps: 0,
            first_release: None,
            request: "-".into(),
            reply: "-".into(),
        };
        dump.note_dropped(record.dropped)?;
        dump.writer.timestamp(0)?;
        dump.writer.begin(SimulationCommand::Dumpvars)?;
        dump.writer.change_scalar(dump.clock.id, bit(false))?;
        dump.show(0)?;
        dump.writer.end()?;
        Ok(dump)
    }

    /// Steps the machine to edge `due` and shows what changes on the way, each change at its edge.
    fn run_to(&mut self, due: u64) -> io::Result<()> {
        while self.edge < due {
            let before = self.machine;
            let request = request_text(before.serial());
            self.machine.step(&self.pins);
            self.edge += 1;
            if let Some(request) = request {
                self.request = request;
                self.reply = reply_text(self.machine.serial().shift);
            }
            if self.looks_like(&before) {
                // Only counters move until something is seen: they are skipped.
                self.skip(due);
            } else {
                self.draw_edge()?;
            }
            self.show(CLOCK.time_of(self.edge))?;
        }
        Ok(())
    }

    /// The edge that has just been done.
    fn draw_edge(&mut self) -> io::Result<()> {
        let at = CLOCK.time_of(self.edge);
        self.draw_clock(at, self.edge - 1)?;
        self.begin_at(at)?;
        self.writer.change_scalar(self.clock.id, bit(true))?;
        self.clock.edge = self.edge;
        self.clock.next = Next::Falls(at + HALF_PERIOD);
        Ok(())
    }

    /// What becomes of the clock between the last edge that was drawn and this time, before which `done` edges have been.
    fn draw_clock(&mut self, until: u64, done: u64) -> io::Result<()> {
        if let Next::Falls(at) = self.clock.next
            && at <= until
        {
            self.begin_at(at)?;
            self.writer.change_scalar(self.clock.id, bit(false))?;
            self.clock.next = Next::Low;
        }
        if matches!(self.clock.next, Next::Low) && self.clock.edge < done {
            let at = CLOCK.time_of(self.clock.edge + 1);
            self.begin_at(at)?;
            self.writer.change_scalar(self.clock.id, Value::Z)?;
            self.clock.next = Next::NotDrawn;
        }
        Ok(())
    }

    /// Goes on to this time.
    fn begin_at(&mut self, at_ps: u64) -> io::Result<()> {
        if at_ps > self.at_ps {
            self.at_ps = at_ps;
            self.writer.timestamp(at_ps)?;
        }
        Ok(())
    }

    /// Goes to the last edge up to `due` before which nothing that is shown changes, found by halving.
    fn skip(&mut self, due: u64) {
        let (mut low, mut high) = (0, due - self.edge);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let mut probe = self.machine;
            probe.fast_forward(&self.pins, middle);
            match same(&probe, &self.machine) {
                true => low = middle,
                false => high = middle - 1,
            }
        }
        self.machine.fast_forward(&self.pins, low);
        self.edge += low;
    }

    fn looks_like(&self, before: &ChannelMachine) -> bool {
        same(before, &self.machine)
    }

    /// Writes what has changed since the last call, at `at_ps`.
    fn show(&mut self, at_ps: u64) -> io::Result<()> {
        self.draw_clock(at_ps, self.edge)?;
        let writer = &mut self.writer;
        let (last, mut begun) = (self.at_ps, self.at_ps == at_ps);
        let mut begin = |writer: &mut Writer<W>| match std::mem::replace(&mut begun, true) {
            true => Ok(()),
            false => writer.timestamp(at_ps.max(last)),
        };
        for (number, ids) in self.channels.iter_mut().enumerate() {
            let channel = self.machine.channel(number).copied().unwrap_or_default();
            if let Some(id) = ids.release.changed(&channel.level) {
                begin(writer)?;
                writer.change_scalar(id, bit(channel.level))?;
                if at_ps > 0 {
                    self.first_release = self.first_release.or(Some(at_ps));
                }
            }
            let arrived = u64::from(channel.arrived().count_ones());
            let counts = [arrived, channel.mask, channel.late, channel.releases];
            for (signal, now) in ids.counts.iter_mut().zip(counts) {
                if let Some(id) = signal.changed(&now) {
                    begin(writer)?;
                    writer.change_vector(id, bits(now))?;
                }
            }
        }
        let serial = self.machine.serial();
        let node = match serial.grant {
            0 => "-".to_owned(),
            grant => grant.trailing_zeros().to_string(),
        };
        let phase = match serial.phase {
            Phase::Receive => "receive",
            Phase::Execute => "execute",
            Phase::Reply => "reply",
            Phase::Over => "over",
        };
        let texts = [node, phase.into(), self.request.clone(), self.reply.clone()];
        for (signal, now) in self.texts.iter_mut().zip(texts) {
            if let Some(id) = signal.changed(&now) {
                begin(writer)?;
                writer.change_string(id, &now)?;
            }
        }
        for (node, lines) in self.nodes.iter_mut().enumerate() {
            let outward = (0..Pins::LINES).map(|line| self.pins.get(node, line));
            let inward = (0..MAX_CHANNELS).map(|line| self.machine.reads(node, line));
            for (signal, now) in lines.iter_mut().zip(outward.chain(inward)) {
                if let Some(id) = signal.changed(&now) {
                    begin(writer)?;
                    writer.change_scalar(id, bit(now))?;
                }
            }
        }
        if begun {
            self.at_ps = at_ps.max(last);
        }
        Ok(())
    }

    fn note_dropped(&mut self, dropped: u64) -> io::Result<()> {
        match dropped {
            0 => Ok(()),
            n => self.writer.comment(&format!(
                "the record was full: {n} later changes are missing"
            )),
        }
    }
}

/// Whether two states show the same.
fn same(a: &ChannelMachine, b: &ChannelMachine) -> bool {
    let shown = |machine: &ChannelMachine, number| {
        let channel = machine.channel(number).copied().unwrap_or_default();
        (
            channel.level,
            channel.arrived(),
            channel.mask,
            channel.late,
            channel.releases,
        )
    };
    let serial = |machine: &ChannelMachine| {
        let serial = machine.serial();
        // Where the frame is, in full: a bit that has come is a change too, though only the reply's bits are lines.
        (serial.grant, serial.phase, serial.count, serial.shift)
    };
    serial(a) == serial(b)
        && a.last_line() == b.last_line()
        && (0..MAX_CHANNELS).all(|number| shown(a, number) == shown(b, number))
}

#[cfg(test)]
mod tests;

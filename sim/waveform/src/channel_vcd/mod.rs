//! Waveform of a version 2 board, computed from its line changes:
//! a value change dump (IEEE 1364) or an FST, with a timescale of 1 ps; only changes are written.
//!
//! A record contains only the lines that nodes drive. The model computes all other signals: it is
//! stepped edge by edge over the same changes.
//! The tree of signals is
//!
//! ```text
//! barrier
//!   clk                the board's clock at edges that change a signal; z elsewhere
//!   channel0
//!     release          the level of the channel's inward lines
//!     arrived[6:0]     number of members that have entered and are not released
//!     members[59:0]    the member nodes, one bit each (as wide as the number of nodes)
//!     late[59:0]       the members that were missing when the channel's time limit expired
//!     releases[31:0]   number of releases
//!   channel1 ... channel4
//!   serial
//!     node             the node that uses the receiver, as text; "-" for none
//!     phase            phase of the receiver: receive, execute, reply or over
//!     request          the last request that was executed: operation, channel, argument
//!     reply            the answer to that request: status and value
//!   node00
//!     arrive0 ... arrive4, clock, data, select     the lines from the node to the board
//!     release0 ... release4                        the lines from the board to the node; the last one also carries replies
//!   node01 ...
//! ```
//!
//! Texts have no blanks, because readers of value change dumps treat a blank as the end of a value.

mod frames;
mod names;

pub(crate) use names::{
    CLK, SERIAL, SERIAL_TEXTS, channel_scope, channel_signals, node_signals, range,
};

use crate::dump::{self, Dump, Form, FstDump, Kind, Unit, Value, VcdDump};
use crate::vcd::{TOP, node_scope};
use crate::view::View;
use barrier_board::clock::Clock;
use barrier_board::event::ChannelRecord;
use fpga_model::channels::{ChannelMachine, MAX_CHANNELS, Phase, Pins, SETTLE_EDGES};
use frames::{reply_text, request_text};
use std::io;

/// The board's clock, whose time is counted in picoseconds.
const CLOCK: Clock = Clock {
    hz: fpga_model::CLOCK_HZ,
    units_per_s: 1_000_000_000_000,
};

/// Half a period of the board's clock, in picoseconds.
const HALF_PERIOD: u64 = CLOCK.units_per_s / fpga_model::CLOCK_HZ / 2;

/// The properties of a written waveform that the viewers' files need.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    nodes: usize,
    begin: u64,
    first_release: Option<u64>,
    end: u64,
    form: Form,
}

impl Shown {
    /// Returns the width in bits of the vector that contains a text signal; `None` if the file stores it as a string.
    pub(crate) fn text_bits(self) -> Option<u32> {
        self.form.text_bits()
    }

    pub(crate) fn view(self) -> View {
        View {
            nodes: self.nodes,
            begin: self.begin,
            release: self.first_release,
            end: self.end,
        }
    }
}

/// Writes the record as a value change dump; `sink` should be buffered.
/// The record must have 1 to 60 nodes, as a board has.
pub fn write(sink: impl io::Write, record: &ChannelRecord) -> io::Result<Shown> {
    draw(VcdDump::new(sink, Unit::Picosecond)?, record, Form::Vcd)
}

/// Writes the record in this file format; `sink` should be buffered.
pub fn write_as(
    sink: impl io::Write + io::Seek,
    record: &ChannelRecord,
    form: Form,
) -> io::Result<Shown> {
    match form {
        Form::Vcd => write(sink, record),
        Form::Fst => {
            let remark = missing(record.dropped).unwrap_or_default();
            let dump = FstDump::new(sink, Unit::Picosecond, &remark)?;
            draw(dump, record, Form::Fst)
        }
    }
}

/// Returns a comment with the number of changes that were dropped because the record was full.
fn missing(dropped: u64) -> Option<String> {
    (dropped > 0).then(|| format!("the record was full: {dropped} later changes are missing"))
}

fn draw(dump: impl Dump, record: &ChannelRecord, form: Form) -> io::Result<Shown> {
    let machine = ChannelMachine::new(record.nodes, MAX_CHANNELS)
        .map_err(|bad| io::Error::new(io::ErrorKind::InvalidInput, bad.to_string()))?;
    let mut drawing = Drawing::begin(dump, record, machine)?;
    let mut arrivals = [None; MAX_CHANNELS];
    let mut begin = None;
    for change in &record.changes {
        drawing.run_to(CLOCK.edges_until(change.at_ps))?;
        if let Some(first) = arrivals.get_mut(change.line) {
            first.get_or_insert(change.at_ps);
        }
        drawing.pins.set(change.node, change.line, change.high);
        drawing.show(change.at_ps)?;
        if let (None, Some((channel, _))) = (begin, drawing.first_release) {
            begin = arrivals[channel];
        }
    }
    // The waveform continues until the last changes have taken effect.
    let end = drawing.edge + SETTLE_EDGES;
    drawing.run_to(end)?;
    drawing.draw_clock(CLOCK.time_of(end), end)?;
    drawing.note_dropped(record.dropped)?;
    drawing.dump.finish()?;
    let released = drawing.first_release.map(|(channel, _)| channel);
    let begin = begin.or(released.and_then(|channel| arrivals[channel]));
    Ok(Shown {
        nodes: record.nodes,
        begin: begin.unwrap_or(record.changes.first().map_or(0, |change| change.at_ps)),
        first_release: drawing.first_release.map(|(_, at_ps)| at_ps),
        end: drawing.at_ps,
        form,
    })
}

/// A declared signal, with its last written value.
struct Signal<T> {
    id: dump::Signal,
    last: Option<T>,
}

impl<T: PartialEq + Clone> Signal<T> {
    fn new(id: dump::Signal) -> Self {
        Self { id, last: None }
    }

    /// Returns the signal if `now` differs from the last written value.
    fn changed(&mut self, now: &T) -> Option<dump::Signal> {
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

/// The progress of writing the clock.
struct Drawn {
    id: dump::Signal,
    /// The last clock edge that was written.
    edge: u64,
    /// The next change of the clock:
    /// the time of the falling edge, and whether a rising edge follows it.
    next: Next,
}

enum Next {
    Falls(u64),
    Low,
    NotDrawn,
}

struct Drawing<D> {
    dump: D,
    clock: Drawn,
    channels: Vec<ChannelIds>,
    texts: Vec<Signal<String>>,
    nodes: Vec<Vec<Signal<bool>>>,
    machine: ChannelMachine,
    pins: Pins,
    edge: u64,
    at_ps: u64,
    /// The channel that released first, with the time of the release.
    first_release: Option<(usize, u64)>,
    /// The texts of the last request and reply.
    request: String,
    reply: String,
}

impl<D: Dump> Drawing<D> {
    fn begin(mut dump: D, record: &ChannelRecord, machine: ChannelMachine) -> io::Result<Self> {
        dump.scope(TOP)?;
        let clock = Drawn {
            id: dump.signal(CLK, Kind::Bits(1))?,
            edge: 0,
            next: Next::Low,
        };
        let mut channels = Vec::with_capacity(MAX_CHANNELS);
        for channel in 0..MAX_CHANNELS {
            dump.scope(&channel_scope(channel))?;
            let [release, counts @ ..] = channel_signals(record.nodes);
            let mut wire =
                |(name, width, _): (&str, u32, &str)| dump.signal(name, Kind::Bits(width));
            channels.push(ChannelIds {
                release: Signal::new(wire(release)?),
                counts: [
                    Signal::new(wire(counts[0])?),
                    Signal::new(wire(counts[1])?),
                    Signal::new(wire(counts[2])?),
                    Signal::new(wire(counts[3])?),
                ],
            });
            dump.up_scope()?;
        }
        dump.scope(SERIAL)?;
        let mut texts = Vec::with_capacity(SERIAL_TEXTS.len());
        for name in SERIAL_TEXTS {
            texts.push(Signal::new(dump.signal(name, Kind::Text)?));
        }
        dump.up_scope()?;
        let mut nodes = Vec::with_capacity(record.nodes);
        for node in 0..record.nodes {
            dump.scope(&node_scope(node))?;
            let mut lines = Vec::new();
            for name in node_signals() {
                lines.push(Signal::new(dump.signal(&name, Kind::Bits(1))?));
            }
            nodes.push(lines);
            dump.up_scope()?;
        }
        dump.up_scope()?;
        dump.declared()?;
        let mut drawing = Self {
            dump,
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
        drawing.note_dropped(record.dropped)?;
        drawing.dump.initial_values()?;
        drawing.dump.change(drawing.clock.id, &Value::bit(false))?;
        drawing.show(0)?;
        drawing.dump.initial_values_end()?;
        Ok(drawing)
    }

    /// Steps the machine to edge `due` and writes all changes at their edges.
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
                // Until the next change of a shown signal only counters change; these edges are skipped.
                self.skip(due);
            } else {
                self.draw_edge()?;
            }
            self.show(CLOCK.time_of(self.edge))?;
        }
        Ok(())
    }

    /// Writes the clock edge that the machine has just simulated.
    fn draw_edge(&mut self) -> io::Result<()> {
        let at = CLOCK.time_of(self.edge);
        self.draw_clock(at, self.edge - 1)?;
        self.begin_at(at)?;
        self.dump.change(self.clock.id, &Value::bit(true))?;
        self.clock.edge = self.edge;
        self.clock.next = Next::Falls(at + HALF_PERIOD);
        Ok(())
    }

    /// Writes the clock from the last written edge to time `until`;
    /// `done` is the number of edges before that time.
    fn draw_clock(&mut self, until: u64, done: u64) -> io::Result<()> {
        if let Next::Falls(at) = self.clock.next
            && at <= until
        {
            self.begin_at(at)?;
            self.dump.change(self.clock.id, &Value::bit(false))?;
            self.clock.next = Next::Low;
        }
        if matches!(self.clock.next, Next::Low) && self.clock.edge < done {
            let at = CLOCK.time_of(self.clock.edge + 1);
            self.begin_at(at)?;
            self.dump.change(self.clock.id, &Value::NotDrawn)?;
            self.clock.next = Next::NotDrawn;
        }
        Ok(())
    }

    /// Advances the present time of the file to `at_ps`.
    fn begin_at(&mut self, at_ps: u64) -> io::Result<()> {
        if at_ps > self.at_ps {
            self.at_ps = at_ps;
            self.dump.time(at_ps)?;
        }
        Ok(())
    }

    /// Skips all edges up to the last one that leaves
    /// every shown signal unchanged, found by bisection.
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

    /// Writes all changed signals at time `at_ps`.
    fn show(&mut self, at_ps: u64) -> io::Result<()> {
        self.draw_clock(at_ps, self.edge)?;
        let dump = &mut self.dump;
        let (last, mut begun) = (self.at_ps, self.at_ps == at_ps);
        let mut begin = |dump: &mut D| match std::mem::replace(&mut begun, true) {
            true => Ok(()),
            false => dump.time(at_ps.max(last)),
        };
        for (number, ids) in self.channels.iter_mut().enumerate() {
            let channel = self.machine.channel(number).copied().unwrap_or_default();
            if let Some(id) = ids.release.changed(&channel.level) {
                begin(dump)?;
                dump.change(id, &Value::bit(channel.level))?;
                if at_ps > 0 {
                    self.first_release = self.first_release.or(Some((number, at_ps)));
                }
            }
            let arrived = u64::from(channel.arrived().count_ones());
            let counts = [arrived, channel.mask, channel.late, channel.releases];
            for (signal, now) in ids.counts.iter_mut().zip(counts) {
                if let Some(id) = signal.changed(&now) {
                    begin(dump)?;
                    dump.change(id, &Value::Bits(now))?;
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
                begin(dump)?;
                dump.change(id, &Value::Text(now))?;
            }
        }
        for (node, lines) in self.nodes.iter_mut().enumerate() {
            let outward = (0..Pins::LINES).map(|line| self.pins.get(node, line));
            let inward = (0..MAX_CHANNELS).map(|line| self.machine.reads(node, line));
            for (signal, now) in lines.iter_mut().zip(outward.chain(inward)) {
                if let Some(id) = signal.changed(&now) {
                    begin(dump)?;
                    dump.change(id, &Value::bit(now))?;
                }
            }
        }
        if begun {
            self.at_ps = at_ps.max(last);
        }
        Ok(())
    }

    fn note_dropped(&mut self, dropped: u64) -> io::Result<()> {
        match missing(dropped) {
            Some(words) => self.dump.comment(&words),
            None => Ok(()),
        }
    }
}

/// Returns true if all shown signals have the same values in both states.
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
        // All bits of the frame are compared, so each received bit counts as a change,
        // although the waveform shows only the bits of the reply.
        (serial.grant, serial.phase, serial.count, serial.shift)
    };
    serial(a) == serial(b)
        && a.last_line() == b.last_line()
        && (0..MAX_CHANNELS).all(|number| shown(a, number) == shown(b, number))
}

#[cfg(test)]
mod tests;

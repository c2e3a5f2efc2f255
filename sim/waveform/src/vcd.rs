//! Waveform of a version 1 board, written from its events:
//! a value change dump (IEEE 1364) or an FST, with a timescale of 1 ns; only changes are written.
//!
//! The tree of signals is
//!
//! ```text
//! barrier
//!   releases[31:0]   number of releases since the start of the record
//!   arrived[6:0]     number of nodes that have entered and are not released; [15:0] with more than 64 nodes
//!   found            the eureka line, if a node has used it
//!   first[6:0]       the node that raised the eureka line first; z if none
//!   node00
//!     says           the wire from the node to the eureka line, if the node has used it
//!     out            the wire from the node to the barrier
//!     in             the wire from the barrier to the node
//!     inside         high while the program on the node is in the barrier (its enter and leave marks); x once it has died
//!   node01 ...
//! ```
//!
//! Each wire is a signal of one bit:
//! a vector of 60 bits would be written as a whole at each change.
//! If the record was full, a comment at the start and
//! at the end states the number of dropped events;
//! in an FST the version text states it.

use crate::dump::{Dump, Form, FstDump, Kind, Signal, Unit, Value, VcdDump};
use crate::eureka_wave::{self, FIRST, FIRST_BITS, FOUND, Heard, SAYS};
use barrier_board::event::{Event, Record, What};
use std::io;

/// The scope that contains all signals.
pub const TOP: &str = "barrier";
/// Width in bits of the number of releases.
pub(crate) const RELEASES_BITS: u32 = 32;
/// Returns the width in bits of the number of arrivals: 0 to 64, and more on cascaded boards.
pub(crate) fn arrived_bits(nodes: usize) -> u32 {
    match nodes {
        ..=64 => 7,
        _ => 16,
    }
}

const LOW: Value = Value::Bits(0);
const HIGH: Value = Value::Bits(1);

/// Returns the name of a node's scope.
pub fn node_scope(node: usize) -> String {
    format!("node{node:02}")
}

/// The handles of one node's signals.
struct NodeIds {
    out: Signal,
    input: Signal,
    inside: Signal,
    /// The node's wire to the eureka line; `None` if no node has used the line.
    says: Option<Signal>,
}

/// Writes the record as a value change dump; `sink` should be buffered.
pub fn write(sink: impl io::Write, record: &Record) -> io::Result<()> {
    draw(VcdDump::new(sink, Unit::Nanosecond)?, record)
}

/// Writes the record in this file format; `sink` should be buffered.
pub fn write_as(sink: impl io::Write + io::Seek, record: &Record, form: Form) -> io::Result<()> {
    match form {
        Form::Vcd => write(sink, record),
        Form::Fst => {
            let remark = missing(record.dropped).unwrap_or_default();
            draw(FstDump::new(sink, Unit::Nanosecond, &remark)?, record)
        }
    }
}

/// Returns a comment with the number of events that were dropped because the record was full.
fn missing(dropped: u64) -> Option<String> {
    (dropped > 0).then(|| format!("the record was full: {dropped} later events are missing"))
}

fn draw(dump: impl Dump, record: &Record) -> io::Result<()> {
    let mut dump = Drawing::begin(dump, record)?;
    let mut heard = eureka_wave::heard(record).into_iter().peekable();
    for event in &record.events {
        while let Some(heard) = heard.next_if(|heard| heard.at_ns <= event.at_ns) {
            dump.apply(heard)?;
        }
        dump.event(event)?;
    }
    for heard in heard {
        dump.apply(heard)?;
    }
    dump.note_dropped(record.dropped)?;
    dump.dump.finish()
}

struct Drawing<D> {
    dump: D,
    nodes: Vec<NodeIds>,
    releases_id: Signal,
    arrived_id: Signal,
    /// The signals `found` and `first` of the eureka line; `None` if no node has used the line.
    line: Option<[Signal; 2]>,
    at_ns: u64,
    releases: u64,
    /// Levels of the wires to the barrier, by node;
    /// `level` is the level of the wires from the barrier.
    wires: Vec<bool>,
    output: bool,
    /// Number of nodes whose wire differs from the barrier's output.
    arrived: usize,
}

impl<D: Dump> Drawing<D> {
    fn begin(mut dump: D, record: &Record) -> io::Result<Self> {
        dump.scope(TOP)?;
        let releases_id = dump.signal("releases", Kind::Bits(RELEASES_BITS))?;
        let arrived_id = dump.signal("arrived", Kind::Bits(arrived_bits(record.nodes)))?;
        let with_line = eureka_wave::is_used(record);
        let line = match with_line {
            true => Some([
                dump.signal(FOUND.0, Kind::Bits(1))?,
                dump.signal(FIRST.0, Kind::Bits(FIRST_BITS))?,
            ]),
            false => None,
        };
        let mut nodes = Vec::with_capacity(record.nodes);
        for node in 0..record.nodes {
            dump.scope(&node_scope(node))?;
            nodes.push(NodeIds {
                out: dump.signal("out", Kind::Bits(1))?,
                input: dump.signal("in", Kind::Bits(1))?,
                inside: dump.signal("inside", Kind::Bits(1))?,
                says: match with_line {
                    true => Some(dump.signal(SAYS.1, Kind::Bits(1))?),
                    false => None,
                },
            });
            dump.up_scope()?;
        }
        dump.up_scope()?;
        dump.declared()?;
        let (wires, output) = levels_before(record);
        let mut drawing = Self {
            dump,
            nodes,
            releases_id,
            arrived_id,
            line,
            at_ns: 0,
            releases: 0,
            arrived: wires.iter().filter(|wire| **wire != output).count(),
            wires,
            output,
        };
        drawing.note_dropped(record.dropped)?;
        drawing.initial_values()?;
        Ok(drawing)
    }

    fn initial_values(&mut self) -> io::Result<()> {
        self.dump.initial_values()?;
        self.dump.change(self.releases_id, &Value::Bits(0))?;
        self.counts()?;
        for (node, ids) in self.nodes.iter().enumerate() {
            self.dump.change(ids.out, &Value::bit(self.wires[node]))?;
            self.dump.change(ids.input, &Value::bit(self.output))?;
            self.dump.change(ids.inside, &LOW)?;
            if let Some(says) = ids.says {
                self.dump.change(says, &LOW)?;
            }
        }
        self.line(false, None)?;
        self.dump.initial_values_end()
    }

    fn apply(&mut self, heard: Heard) -> io::Result<()> {
        self.time(heard.at_ns)?;
        self.line(heard.found, heard.first)
    }

    /// Writes the eureka line as the nodes read it, if it is used.
    fn line(&mut self, found: bool, first: Option<usize>) -> io::Result<()> {
        let Some([found_id, first_id]) = self.line else {
            return Ok(());
        };
        self.dump.change(found_id, &Value::bit(found))?;
        match first {
            Some(node) => self.dump.change(first_id, &Value::Bits(node as u64)),
            None => self.dump.change(first_id, &Value::NotDrawn),
        }
    }

    fn time(&mut self, at_ns: u64) -> io::Result<()> {
        if at_ns != self.at_ns {
            self.dump.time(at_ns)?;
            self.at_ns = at_ns;
        }
        Ok(())
    }

    fn event(&mut self, event: &Event) -> io::Result<()> {
        self.time(event.at_ns)?;
        match event.what {
            What::Wire { node, high } => {
                if let Some(wire) = self.wires.get_mut(node)
                    && *wire != high
                {
                    *wire = high;
                    match high == self.output {
                        true => self.arrived -= 1,
                        false => self.arrived += 1,
                    }
                }
                self.scalar(node, |ids| ids.out, &Value::bit(high))?;
                self.counts()
            }
            What::Release { high } => {
                if self.output != high {
                    self.output = high;
                    self.arrived = self.wires.len() - self.arrived;
                }
                self.releases += 1;
                for node in 0..self.nodes.len() {
                    self.scalar(node, |ids| ids.input, &Value::bit(high))?;
                }
                self.dump
                    .change(self.releases_id, &Value::Bits(self.releases))?;
                self.counts()
            }
            What::Enter { node } => self.scalar(node, |ids| ids.inside, &HIGH),
            What::Leave { node } => self.scalar(node, |ids| ids.inside, &LOW),
            What::Down { node } => self.scalar(node, |ids| ids.inside, &Value::Dead),
            What::Say { node, high } => match self.nodes.get(node).and_then(|ids| ids.says) {
                Some(says) => self.dump.change(says, &Value::bit(high)),
                None => Ok(()),
            },
        }
    }

    /// Writes one signal of a node;
    /// ignores a nonexistent node, for which a board records no events.
    fn scalar(
        &mut self,
        node: usize,
        of: impl Fn(&NodeIds) -> Signal,
        value: &Value,
    ) -> io::Result<()> {
        match self.nodes.get(node) {
            Some(ids) => self.dump.change(of(ids), value),
            None => Ok(()),
        }
    }

    fn counts(&mut self) -> io::Result<()> {
        self.dump
            .change(self.arrived_id, &Value::Bits(self.arrived as u64))
    }

    fn note_dropped(&mut self, dropped: u64) -> io::Result<()> {
        match missing(dropped) {
            Some(words) => self.dump.comment(&words),
            None => Ok(()),
        }
    }
}

/// Returns the levels before the first event: if the first change of a wire is a fall, it was high.
fn levels_before(record: &Record) -> (Vec<bool>, bool) {
    let mut wires = vec![None; record.nodes];
    let mut output = None;
    for event in &record.events {
        match event.what {
            What::Wire { node, high } => {
                if let Some(wire) = wires.get_mut(node) {
                    wire.get_or_insert(!high);
                }
            }
            What::Release { high } => output = output.or(Some(!high)),
            _ => {}
        }
    }
    let wires = wires.into_iter().map(|wire| wire.unwrap_or(false));
    (wires.collect(), output.unwrap_or(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vcd::TimescaleUnit;

    fn two_nodes(dropped: u64) -> Record {
        let events = [
            (100, What::Enter { node: 0 }),
            (
                150,
                What::Wire {
                    node: 0,
                    high: true,
                },
            ),
            (300, What::Enter { node: 1 }),
            (
                350,
                What::Wire {
                    node: 1,
                    high: true,
                },
            ),
            (437, What::Release { high: true }),
            (500, What::Leave { node: 1 }),
            (500, What::Leave { node: 0 }),
        ];
        let events = events.map(|(at_ns, what)| Event { at_ns, what }).to_vec();
        Record {
            nodes: 2,
            events,
            dropped,
        }
    }

    fn text(record: &Record) -> String {
        let mut out = Vec::new();
        write(&mut out, record).expect("memory takes everything");
        String::from_utf8(out).expect("the format is ASCII")
    }

    #[test]
    fn a_barrier_of_two_nodes_is_this_waveform() {
        insta::assert_snapshot!(text(&two_nodes(0)));
    }

    #[test]
    fn a_full_record_says_what_is_missing() {
        let text = text(&two_nodes(12));
        assert_eq!(
            text.matches("the record was full: 12 later events are missing")
                .count(),
            2
        );
    }

    #[test]
    fn a_wire_that_first_falls_was_high_before() {
        let events = vec![
            Event {
                at_ns: 5,
                what: What::Wire {
                    node: 1,
                    high: false,
                },
            },
            Event {
                at_ns: 6,
                what: What::Wire {
                    node: 1,
                    high: true,
                },
            },
            Event {
                at_ns: 9,
                what: What::Release { high: false },
            },
        ];
        assert_eq!(
            levels_before(&Record {
                nodes: 3,
                events,
                dropped: 0
            }),
            (vec![false, true, false], true)
        );
    }

    #[test]
    fn a_million_changes_are_written_and_read_back() {
        // To measure the duration: `cargo bench -p barrier-simulator --bench waveform`.
        let nodes = 60;
        let mut events = Vec::new();
        for barrier in 0..4_000u64 {
            let high = barrier % 2 == 0;
            let at = |step: u64| barrier * 1_000 + step;
            let mut push = |step, what| {
                events.push(Event {
                    at_ns: at(step),
                    what,
                })
            };
            for node in 0..nodes {
                push(node as u64, What::Enter { node });
                push(node as u64, What::Wire { node, high });
            }
            push(200, What::Release { high });
            for node in 0..nodes {
                push(300 + node as u64, What::Leave { node });
            }
        }
        let record = Record {
            nodes,
            events,
            dropped: 0,
        };
        let text = text(&record);
        let mut parser = vcd::Parser::new(text.as_bytes());
        parser.parse_header().expect("a header");
        let changes = parser.filter(|command| {
            matches!(
                command,
                Ok(vcd::Command::ChangeScalar(..) | vcd::Command::ChangeVector(..))
            )
        });
        // Per barrier there are 5 changes per node (two wires, two marks, the number of arrivals),
        // and two changed counts at the release.
        let initial = 2 + 3 * 60;
        assert_eq!(changes.count(), 4_000 * (60 * 5 + 2) + initial);
    }

    #[test]
    fn another_program_reads_the_same_changes() {
        let record = two_nodes(0);
        let written = text(&record);
        let mut parser = vcd::Parser::new(written.as_bytes());
        let header = parser.parse_header().expect("a header");
        assert_eq!(header.timescale, Some((1, TimescaleUnit::NS)));
        let id = |path: &[&str]| header.find_var(path).expect("the signal is declared").code;
        let (releases, inside) = (id(&[TOP, "releases"]), id(&[TOP, "node01", "inside"]));
        let (mut now, mut seen) = (0, Vec::new());
        for command in parser {
            match command.expect("well-formed") {
                vcd::Command::Timestamp(at) => now = at,
                vcd::Command::ChangeScalar(code, value) if code == inside => {
                    seen.push((now, format!("inside {value}")))
                }
                vcd::Command::ChangeVector(code, value) if code == releases => {
                    seen.push((now, format!("releases {value}")));
                }
                _ => {}
            }
        }
        assert_eq!(
            seen,
            [
                (0, "releases 0"),
                (0, "inside 0"),
                (300, "inside 1"),
                (437, "releases 1"),
                (500, "inside 0")
            ]
            .map(|(at, what)| (at, what.to_owned()))
        );
    }
}

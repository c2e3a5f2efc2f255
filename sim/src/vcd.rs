//! Events as a waveform: IEEE 1364 value change dump, timescale 1 ns, changes only.
//!
//! The tree of signals is
//!
//! ```text
//! barrier
//!   releases[31:0]   how often the barrier has released since the start of the record
//!   arrived[6:0]     how many nodes have entered and wait to be released; [15:0] with more than 64 nodes
//!   found            the eureka line, if a node has used it: whether one has found it
//!   first[6:0]       and which was the first; z if none
//!   node00
//!     says           the wire from the node to the eureka line, likewise
//!     out            the wire from the node to the barrier
//!     in             the wire from the barrier to the node
//!     inside         high while the program on the node is in the barrier (its enter and leave marks); x once it has died
//!   node01 ...
//! ```
//!
//! One scalar for each wire, because a 60-bit vector would be written whole at each of its changes.
//! A record that was full says in a comment, at the head and at the end, how many events are missing.

use crate::eureka_wave::{self, FIRST, FIRST_BITS, FOUND, Heard, SAYS};
use crate::event::{Event, Record, What};
use std::io;
use vcd::{IdCode, SimulationCommand, TimescaleUnit, Value, Writer};

/// The scope that holds everything.
pub(crate) const TOP: &str = "barrier";
/// Width of the count of releases.
pub(crate) const RELEASES_BITS: u32 = 32;
/// Width of the count of arrivals: 0 to 64, and more on boards below boards.
pub(crate) fn arrived_bits(nodes: usize) -> u32 {
    match nodes {
        ..=64 => 7,
        _ => 16,
    }
}

/// The name of a node's scope.
pub(crate) fn node_scope(node: usize) -> String {
    format!("node{node:02}")
}

/// The signals of one node.
struct NodeIds {
    out: IdCode,
    input: IdCode,
    inside: IdCode,
    /// On a board whose eureka line is used.
    says: Option<IdCode>,
}

/// Writes the record; give a buffered `sink`.
pub fn write(sink: impl io::Write, record: &Record) -> io::Result<()> {
    let mut dump = Dump::begin(sink, record)?;
    let mut heard = eureka_wave::heard(record).into_iter().peekable();
    for event in &record.events {
        while let Some(heard) = heard.next_if(|heard| heard.at_ns <= event.at_ns) {
            dump.hear(heard)?;
        }
        dump.event(event)?;
    }
    for heard in heard {
        dump.hear(heard)?;
    }
    dump.note_dropped(record.dropped)?;
    dump.writer.flush()
}

struct Dump<W: io::Write> {
    writer: Writer<W>,
    nodes: Vec<NodeIds>,
    releases_id: IdCode,
    arrived_id: IdCode,
    /// The eureka line, and the node that was first.
    line: Option<[IdCode; 2]>,
    at_ns: u64,
    releases: u64,
    /// Levels of the wires to the barrier, and of those from it.
    wires: Vec<bool>,
    output: bool,
    /// How many of the former differ from the latter.
    arrived: usize,
}

impl<W: io::Write> Dump<W> {
    fn begin(sink: W, record: &Record) -> io::Result<Self> {
        let mut writer = Writer::new(sink);
        writer.version("hwbarr")?;
        writer.timescale(1, TimescaleUnit::NS)?;
        writer.add_module(TOP)?;
        let releases_id = writer.add_wire(RELEASES_BITS, "releases")?;
        let arrived_id = writer.add_wire(arrived_bits(record.nodes), "arrived")?;
        let with_line = eureka_wave::is_used(record);
        let line = match with_line {
            true => Some([
                writer.add_wire(1, FOUND.0)?,
                writer.add_wire(FIRST_BITS, FIRST.0)?,
            ]),
            false => None,
        };
        let mut nodes = Vec::with_capacity(record.nodes);
        for node in 0..record.nodes {
            writer.add_module(&node_scope(node))?;
            nodes.push(NodeIds {
                out: writer.add_wire(1, "out")?,
                input: writer.add_wire(1, "in")?,
                inside: writer.add_wire(1, "inside")?,
                says: match with_line {
                    true => Some(writer.add_wire(1, SAYS.1)?),
                    false => None,
                },
            });
            writer.upscope()?;
        }
        writer.upscope()?;
        writer.enddefinitions()?;
        let (wires, output) = levels_before(record);
        let mut dump = Self {
            writer,
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
        dump.note_dropped(record.dropped)?;
        dump.initial_values()?;
        Ok(dump)
    }

    fn initial_values(&mut self) -> io::Result<()> {
        self.writer.timestamp(0)?;
        self.writer.begin(SimulationCommand::Dumpvars)?;
        self.writer.change_vector(self.releases_id, bits(0))?;
        self.counts()?;
        for (node, ids) in self.nodes.iter().enumerate() {
            self.writer.change_scalar(ids.out, bit(self.wires[node]))?;
            self.writer.change_scalar(ids.input, bit(self.output))?;
            self.writer.change_scalar(ids.inside, Value::V0)?;
            if let Some(says) = ids.says {
                self.writer.change_scalar(says, Value::V0)?;
            }
        }
        self.line(false, None)?;
        self.writer.end()
    }

    fn hear(&mut self, heard: Heard) -> io::Result<()> {
        self.time(heard.at_ns)?;
        self.line(heard.found, heard.first)
    }

    /// What the nodes hear of the eureka line, if it is there.
    fn line(&mut self, found: bool, first: Option<usize>) -> io::Result<()> {
        let Some([found_id, first_id]) = self.line else {
            return Ok(());
        };
        self.writer.change_scalar(found_id, bit(found))?;
        match first {
            Some(node) => self.writer.change_vector(first_id, bits(node as u64)),
            None => self.writer.change_vector(first_id, [Value::Z]),
        }
    }

    fn time(&mut self, at_ns: u64) -> io::Result<()> {
        if at_ns != self.at_ns {
            self.writer.timestamp(at_ns)?;
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
                self.scalar(node, |ids| ids.out, bit(high))?;
                self.counts()
            }
            What::Release { high } => {
                if self.output != high {
                    self.output = high;
                    self.arrived = self.wires.len() - self.arrived;
                }
                self.releases += 1;
                for node in 0..self.nodes.len() {
                    self.scalar(node, |ids| ids.input, bit(high))?;
                }
                self.writer
                    .change_vector(self.releases_id, bits(self.releases))?;
                self.counts()
            }
            What::Enter { node } => self.scalar(node, |ids| ids.inside, Value::V1),
            What::Leave { node } => self.scalar(node, |ids| ids.inside, Value::V0),
            What::Down { node } => self.scalar(node, |ids| ids.inside, Value::X),
            What::Say { node, high } => match self.nodes.get(node).and_then(|ids| ids.says) {
                Some(says) => self.writer.change_scalar(says, bit(high)),
                None => Ok(()),
            },
        }
    }

    /// A node that does not exist has no signal; the board never records one.
    fn scalar(
        &mut self,
        node: usize,
        of: impl Fn(&NodeIds) -> IdCode,
        value: Value,
    ) -> io::Result<()> {
        match self.nodes.get(node) {
            Some(ids) => self.writer.change_scalar(of(ids), value),
            None => Ok(()),
        }
    }

    fn counts(&mut self) -> io::Result<()> {
        self.writer
            .change_vector(self.arrived_id, bits(self.arrived as u64))
    }

    fn note_dropped(&mut self, dropped: u64) -> io::Result<()> {
        match dropped {
            0 => Ok(()),
            n => self.writer.comment(&format!(
                "the record was full: {n} later events are missing"
            )),
        }
    }
}

/// The levels before the first event: a wire whose first change is downwards was high.
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

pub(crate) fn bit(high: bool) -> Value {
    if high { Value::V1 } else { Value::V0 }
}

/// Most significant bit first and without leading zeros, which the format lets a reader put back.
pub(crate) fn bits(value: u64) -> impl Iterator<Item = Value> {
    let width = (u64::BITS - value.leading_zeros()).max(1);
    (0..width)
        .rev()
        .map(move |place| bit(value >> place & 1 == 1))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // How long it takes is what `cargo bench -p sim --bench waveform` prints.
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
        // Each node's wires, marks and the count of arrivals, and the release with its two counts.
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

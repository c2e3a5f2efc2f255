//! The eureka line of a board as the nodes read it, computed from the recorded wires and releases.
//!
//! The record contains the nodes' wires to the line, and the releases. The model of the line is
//! stepped over these changes edge by edge, so the record needs no entries for the line itself.

use barrier_board::clock::Clock;
use barrier_board::event::{Record, What};
use fpga_model::eureka::EurekaLine;

/// A change of the two levels of the eureka line that nodes read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Heard {
    pub at_ns: u64,
    /// The level of the line to all nodes.
    pub found: bool,
    /// The node that raised the line first.
    pub first: Option<usize>,
}

/// The eureka line's signal in a viewer: name and label.
pub(crate) const FOUND: (&str, &str) = ("found", "eureka line");
pub(crate) const FIRST: (&str, &str) = ("first", "first to find it");
/// Width in bits of the signal `FIRST`, which is a node's number.
pub(crate) const FIRST_BITS: u32 = 7;
/// The wires to the eureka line: title of the group, name in the node's scope, label of the signal.
pub(crate) const SAYS: (&str, &str, &str) = ("wires to the eureka line", "says", "has found it");

const CLOCK: Clock = Clock {
    hz: fpga_model::CLOCK_HZ,
    units_per_s: 1_000_000_000,
};

/// Returns true if a node has used the eureka line.
pub(crate) fn is_used(record: &Record) -> bool {
    let mut events = record.events.iter();
    events.any(|event| matches!(event.what, What::Say { .. }))
}

/// Returns the changes of the eureka line, oldest first; empty if no node has raised its wire.
pub(crate) fn heard(record: &Record) -> Vec<Heard> {
    let Some(line) = EurekaLine::new(record.nodes, 1)
        .ok()
        .filter(|_| is_used(record))
    else {
        return Vec::new();
    };
    let mut ear = Ear {
        line,
        says: 0,
        level: false,
        edge: 0,
        heard: Vec::new(),
    };
    for event in &record.events {
        ear.run_until(CLOCK.edges_until(event.at_ns));
        match event.what {
            What::Say { node, high } if node < record.nodes => {
                ear.says = ear.says & !(1 << node) | u64::from(high) << node;
            }
            What::Release { high } => ear.level = high,
            _ => {}
        }
    }
    ear.run_until(u64::MAX);
    ear.heard
}

struct Ear {
    line: EurekaLine,
    /// Levels of the nodes' wires to the eureka line, bit `n` for node `n`.
    says: u64,
    /// The level of the barrier's output.
    level: bool,
    /// Index of the last clock edge that the line has simulated.
    edge: u64,
    heard: Vec<Heard>,
}

impl Ear {
    fn run_until(&mut self, edge: u64) {
        // The line samples a release one edge late, so it is stable one edge after its latency.
        let moving = edge
            .saturating_sub(self.edge)
            .min(self.line.latency_edges() + 1);
        for step in 1..=moving {
            let before = (self.line.found(), self.line.first());
            let found = self.line.step(self.says, self.level);
            let first = self.line.first();
            if (found, first) != before {
                self.heard.push(Heard {
                    at_ns: CLOCK.time_of(self.edge + step),
                    found,
                    first,
                });
            }
        }
        self.edge = self.edge.max(edge);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use barrier_board::event::Event;

    fn record(events: &[(u64, What)]) -> Record {
        let events = events.iter().map(|&(at_ns, what)| Event { at_ns, what });
        Record {
            nodes: 3,
            events: events.collect(),
            dropped: 0,
        }
    }

    #[test]
    fn the_line_rises_three_edges_after_the_first_wire_and_falls_an_edge_after_the_release() {
        let say = |node, high| What::Say { node, high };
        let edge = |number| CLOCK.time_of(number);
        let heard = heard(&record(&[
            (edge(10), say(2, true)),
            (edge(12), say(0, true)),
            (edge(20), say(2, false)),
            (edge(21), say(0, false)),
            (edge(30), What::Release { high: true }),
        ]));
        let at = |number, found, first| Heard {
            at_ns: edge(number),
            found,
            first,
        };
        assert_eq!(heard, [at(13, true, Some(2)), at(31, false, None)]);
    }

    #[test]
    fn a_record_without_the_line_has_none() {
        assert_eq!(heard(&record(&[(100, What::Release { high: true })])), []);
    }
}

//! The statistics of a run, computed by an observer.
//!
//! Events are assigned to barriers by counting:
//! the `k`th entry, arrival at a pin and exit of each node belong to barrier `k`.

use super::Time;
use super::observe::{Observation, Observer};
use super::stats::{Distribution, Phase, Summary};

/// The times of the events that make up the latency of one barrier; an unset time is zero.
#[derive(Debug, Clone, Default)]
struct Passage {
    first_enter: Time,
    last_enter: Time,
    /// The last node that entered.
    last: usize,
    /// Time of that node's last read before its write, which showed its wire idle;
    /// if it did not read, the time of its entry.
    ready: Time,
    /// Time at which that node's level reached its connector.
    driven: Time,
    /// Time at which that node's level reached the pin of its board.
    at_pin: Time,
    /// Time at which the last arrival reached the root board, whose output goes to the nodes.
    at_root: Time,
    released: Time,
    /// Time between the release and the machine's previous clock edge.
    toggle: Time,
    /// Time at which the release reached the connector of the node that had arrived last.
    back: Time,
    /// Time of the read by which that node sampled the release.
    read: Time,
    /// Time at which that node left the barrier.
    left: Time,
    /// Time at which the last of all nodes left the barrier.
    last_left: Time,
    /// The time at which each node entered.
    entries: Vec<Time>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Count {
    entered: usize,
    left: usize,
}

/// An observer that measures latencies;
/// it requires a run without faults that would disturb the counting.
#[derive(Debug)]
pub struct Meter {
    nodes: Vec<Count>,
    passages: Vec<Passage>,
    latencies: Vec<Time>,
}

impl Meter {
    /// Creates a meter for `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self {
            nodes: vec![Count::default(); nodes],
            passages: Vec::new(),
            latencies: Vec::new(),
        }
    }

    fn enter(&mut self, at: Time, node: usize) {
        let number = self.nodes[node].entered;
        self.nodes[node].entered += 1;
        if number == self.passages.len() {
            self.passages.push(Passage {
                first_enter: at,
                entries: vec![Time::ZERO; self.nodes.len()],
                ..Passage::default()
            });
        }
        let passage = &mut self.passages[number];
        (passage.last_enter, passage.last) = (at, node);
        (passage.ready, passage.driven, passage.at_pin) = (at, Time::ZERO, Time::ZERO);
        passage.entries[node] = at;
    }

    /// Returns the barrier that `node` is in, if `node` entered the barrier last.
    fn last(&mut self, node: usize) -> Option<&mut Passage> {
        let Count { entered, left } = self.nodes[node];
        // Accesses outside of a barrier,
        // while the driver opens or closes the wires, are not counted.
        let passage = (entered > left).then(|| self.passages.get_mut(left))??;
        (passage.last == node).then_some(passage)
    }

    fn leave(&mut self, at: Time, node: usize) {
        let number = self.nodes[node].left;
        self.nodes[node].left += 1;
        let Some(passage) = self.passages.get_mut(number) else {
            return;
        };
        if passage.last == node {
            passage.left = at;
        }
        passage.last_left = at;
        self.latencies.push(at - passage.last_enter);
    }

    /// Returns the statistics of the run.
    pub fn summary(self, releases: u64, duration: Time) -> Summary {
        let each = |part: &dyn Fn(&Passage) -> Time| {
            Distribution::new(self.passages.iter().map(part).collect())
        };
        let phases = Phase::ALL.map(|phase| {
            each(&|p| match phase {
                Phase::Ready => p.ready - p.last_enter,
                Phase::Write => p.driven - p.ready,
                Phase::WireOut => p.at_pin - p.driven,
                Phase::Below => p.at_root - p.at_pin,
                Phase::Synchroniser => p.released - p.toggle - p.at_root,
                Phase::Machine => p.toggle,
                Phase::WireBack => p.back - p.released,
                Phase::Poll => p.read - p.back,
                Phase::Rest => p.left - p.read,
            })
        });
        Summary {
            releases,
            last_arriver: each(&|p| p.left - p.last_enter),
            complete: each(&|p| p.last_left - p.last_enter),
            every_node: Distribution::new(self.latencies.clone()),
            phases,
            skew: each(&|p| p.last_enter - p.first_enter),
            duration,
            entries: self.passages.iter().map(|p| p.entries.clone()).collect(),
        }
    }
}

impl Observer for Meter {
    fn observe(&mut self, at: Time, observation: Observation) {
        match observation {
            Observation::Enter { node } => self.enter(at, node),
            Observation::Read { node } => {
                if let Some(passage) = self.last(node) {
                    // The read before the write checks that the wire is idle.
                    // After the release, the last read is the one that sampled the release.
                    if passage.driven == Time::ZERO {
                        passage.ready = at;
                    }
                    passage.read = at;
                }
            }
            Observation::Driven { node, .. } => {
                if let Some(passage) = self.last(node)
                    && passage.driven == Time::ZERO
                {
                    passage.driven = at;
                }
            }
            Observation::Pin { node, .. } => {
                if let Some(passage) = self.last(node)
                    && passage.driven != Time::ZERO
                    && passage.at_pin == Time::ZERO
                {
                    (passage.at_pin, passage.at_root) = (at, at);
                }
            }
            Observation::Link { .. } => {
                if let Some(passage) = self.passages.last_mut()
                    && passage.at_pin != Time::ZERO
                    && passage.released == Time::ZERO
                {
                    passage.at_root = at;
                }
            }
            Observation::Output { last_edge, .. } => {
                // Only the latest barrier can be released, because at least one node is in it.
                // A release before the last arrival is the return of the previous barrier to idle.
                if let Some(passage) = self.passages.last_mut()
                    && passage.at_pin != Time::ZERO
                    && passage.released == Time::ZERO
                {
                    (passage.released, passage.toggle) = (at, last_edge);
                }
            }
            Observation::Back { node, .. } => {
                if let Some(passage) = self.last(node)
                    && passage.released != Time::ZERO
                    && passage.back == Time::ZERO
                {
                    passage.back = at;
                }
            }
            Observation::Leave { node } => self.leave(at, node),
            Observation::Down { .. } => {}
        }
    }
}

//! The observers of a run: statistics, waveforms and judges receive every event through one trait.
//!
//! The observer is a type parameter of the run, so unobserved events cost nothing.

use super::Time;
use barrier_board::event::{Event, LineChange, What};

/// An event that the simulated world reports to an observer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// The program on this node entered the barrier.
    Enter {
        /// The node whose program entered.
        node: usize,
    },
    /// The node's write access has ended, and the level is at the node's connector.
    Driven {
        /// The node that wrote.
        node: usize,
        /// The outward line that was written.
        line: usize,
        /// The level that was written.
        high: bool,
    },
    /// The level of a node's line changed at the board's pin.
    Pin {
        /// The node at this pin.
        node: usize,
        /// The outward line whose level changed.
        line: usize,
        /// The new level.
        high: bool,
    },
    /// A changed output of a lower board arrived at the board above.
    Link {
        /// The board that drives the output.
        board: usize,
        /// The new level.
        high: bool,
    },
    /// The root board's release outputs changed.
    Output {
        /// The new level; for several outputs, true if any of them is high.
        high: bool,
        /// Time between the clock edge that changed the output and the edge before.
        last_edge: Time,
    },
    /// The level of an inward line changed at a node's connector.
    Back {
        /// The node at this connector.
        node: usize,
        /// The inward line whose level changed.
        line: usize,
        /// The new level.
        high: bool,
    },
    /// The node's read access has ended.
    Read {
        /// The node that read.
        node: usize,
    },
    /// The program on this node left the barrier.
    Leave {
        /// The node whose program left.
        node: usize,
    },
    /// The node died.
    Down {
        /// The node that died.
        node: usize,
    },
}

/// An observer of the events of a run.
pub trait Observer {
    /// Receives an event at time `at`.
    fn observe(&mut self, at: Time, observation: Observation);
}

/// Ignores all events.
impl Observer for () {
    fn observe(&mut self, _: Time, _: Observation) {}
}

/// Passes every event to both observers.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn observe(&mut self, at: Time, observation: Observation) {
        self.0.observe(at, observation);
        self.1.observe(at, observation);
    }
}

/// Passes every event to the observer, if there is one.
impl<A: Observer> Observer for Option<A> {
    fn observe(&mut self, at: Time, observation: Observation) {
        if let Some(observer) = self {
            observer.observe(at, observation);
        }
    }
}

/// Collects the events from which the waveform of a version 1 board is written.
impl Observer for Vec<Event> {
    fn observe(&mut self, at: Time, observation: Observation) {
        let what = match observation {
            Observation::Enter { node } => What::Enter { node },
            Observation::Leave { node } => What::Leave { node },
            Observation::Pin {
                node,
                line: 0,
                high,
            } => What::Wire { node, high },
            Observation::Output { high, .. } => What::Release { high },
            Observation::Down { node } => What::Down { node },
            Observation::Driven { .. }
            | Observation::Pin { .. }
            | Observation::Link { .. }
            | Observation::Back { .. }
            | Observation::Read { .. } => return,
        };
        let at_ns = at.ns();
        self.push(Event { at_ns, what });
    }
}

/// Collects the line changes from which the waveform of a version 2 board is written.
impl Observer for Vec<LineChange> {
    fn observe(&mut self, at: Time, observation: Observation) {
        if let Observation::Pin { node, line, high } = observation {
            self.push(LineChange {
                at_ps: at.ps(),
                node,
                line,
                high,
            });
        }
    }
}

/// Collects all events with their times, for a waveform that is computed later.
impl Observer for Vec<(Time, Observation)> {
    fn observe(&mut self, at: Time, observation: Observation) {
        self.push((at, observation));
    }
}

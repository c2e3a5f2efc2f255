//! The observers of a run: statistics, waveforms and judges receive every event through one trait.
//!
//! The observer is a type parameter of the run, so unobserved events cost nothing.

use super::Time;
use barrier_board::event::{Event, LineChange, What};

/// An observable event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observation {
    /// The program on this node entered the barrier.
    Enter {
        /// The node.
        node: usize,
    },
    /// The node's write has ended: the level is at its connector.
    Driven {
        /// The node.
        node: usize,
        /// The line.
        line: usize,
        /// The level.
        high: bool,
    },
    /// The level at a node's pin of the board changed.
    Pin {
        /// The node.
        node: usize,
        /// The line.
        line: usize,
        /// The new level.
        high: bool,
    },
    /// The output of a board arrived at the board above it.
    Link {
        /// The lower board.
        board: usize,
        /// The new level.
        high: bool,
    },
    /// The root's outputs changed.
    Output {
        /// The new level; of several releases, whether any is high.
        high: bool,
        /// Time since the clock edge before the one that changed it.
        last_edge: Time,
    },
    /// The level at a node's connector changed.
    Back {
        /// The node.
        node: usize,
        /// The line.
        line: usize,
        /// The new level.
        high: bool,
    },
    /// The node's read has ended.
    Read {
        /// The node.
        node: usize,
    },
    /// The program on this node left the barrier.
    Leave {
        /// The node.
        node: usize,
    },
    /// The node died.
    Down {
        /// The node.
        node: usize,
    },
}

/// An observer.
pub trait Observer {
    /// Receives an event at time `at`.
    fn observe(&mut self, at: Time, observation: Observation);
}

/// The empty observer, which ignores all events.
impl Observer for () {
    fn observe(&mut self, _: Time, _: Observation) {}
}

/// A pair of observers: both receive every event.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn observe(&mut self, at: Time, observation: Observation) {
        self.0.observe(at, observation);
        self.1.observe(at, observation);
    }
}

/// An optional observer; `None` ignores all events.
impl<A: Observer> Observer for Option<A> {
    fn observe(&mut self, at: Time, observation: Observation) {
        if let Some(observer) = self {
            observer.observe(at, observation);
        }
    }
}

/// The events for a waveform.
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

/// The line changes for a waveform of version 2.
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

/// All events with their times, from which a waveform is drawn later.
impl Observer for Vec<(Time, Observation)> {
    fn observe(&mut self, at: Time, observation: Observation) {
        self.push((at, observation));
    }
}

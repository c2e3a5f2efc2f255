//! The observers of a run: statistics, waveforms and judges receive every event through one trait.
//!
//! The observer is a type parameter of the run, so unobserved events cost nothing.

use super::Time;
use crate::event::{Event, LineChange, What};

/// An observable event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
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
    fn see(&mut self, at: Time, sight: Sight);
}

/// No observer.
impl Observer for () {
    fn see(&mut self, _: Time, _: Sight) {}
}

/// Both.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn see(&mut self, at: Time, sight: Sight) {
        self.0.see(at, sight);
        self.1.see(at, sight);
    }
}

/// Perhaps an observer.
impl<A: Observer> Observer for Option<A> {
    fn see(&mut self, at: Time, sight: Sight) {
        if let Some(observer) = self {
            observer.see(at, sight);
        }
    }
}

/// The events for a waveform.
impl Observer for Vec<Event> {
    fn see(&mut self, at: Time, sight: Sight) {
        let what = match sight {
            Sight::Enter { node } => What::Enter { node },
            Sight::Leave { node } => What::Leave { node },
            Sight::Pin {
                node,
                line: 0,
                high,
            } => What::Wire { node, high },
            Sight::Output { high, .. } => What::Release { high },
            Sight::Down { node } => What::Down { node },
            Sight::Driven { .. }
            | Sight::Pin { .. }
            | Sight::Link { .. }
            | Sight::Back { .. }
            | Sight::Read { .. } => return,
        };
        let at_ns = at.ns();
        self.push(Event { at_ns, what });
    }
}

/// The line changes for a waveform of version 2.
impl Observer for Vec<LineChange> {
    fn see(&mut self, at: Time, sight: Sight) {
        if let Sight::Pin { node, line, high } = sight {
            self.push(LineChange {
                at_ps: at.ps(),
                node,
                line,
                high,
            });
        }
    }
}

/// All events, for a later drawing.
impl Observer for Vec<(Time, Sight)> {
    fn see(&mut self, at: Time, sight: Sight) {
        self.push((at, sight));
    }
}

//! The judge: an observer of all events that decides whether every barrier was correct.

use crate::virtual_time::{Observation, Observer, Time};

/// The error that a node left a barrier which another node had not entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Early {
    /// The node that left early.
    pub node: usize,
    /// The index of the barrier, counted from 1.
    pub barrier: usize,
    /// A node that had not entered the barrier.
    pub missing: usize,
    /// The time at which the node left.
    pub at: Time,
}

/// An observer that counts each node's entries into barriers and exits from them.
#[derive(Debug, Clone)]
pub struct Judge {
    entered: Vec<usize>,
    left: Vec<usize>,
    early: Option<Early>,
}

impl Judge {
    /// Creates a judge for `nodes` nodes.
    pub fn new(nodes: usize) -> Self {
        Self {
            entered: vec![0; nodes],
            left: vec![0; nodes],
            early: None,
        }
    }

    /// Returns the first node that left too early.
    pub fn early(&self) -> Option<Early> {
        self.early
    }

    /// Returns the number of barriers that every node has left.
    pub fn passed(&self) -> usize {
        self.left.iter().copied().min().unwrap_or(0)
    }
}

impl Observer for Judge {
    fn observe(&mut self, at: Time, observation: Observation) {
        match observation {
            Observation::Enter { node } => self.entered[node] += 1,
            Observation::Leave { node } => {
                self.left[node] += 1;
                let barrier = self.left[node];
                let missing = self.entered.iter().position(|&entered| entered < barrier);
                if let (None, Some(missing)) = (self.early, missing) {
                    self.early = Some(Early {
                        node,
                        barrier,
                        missing,
                        at,
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_early_return_is_named() {
        let mut judge = Judge::new(2);
        let enter = |node| Observation::Enter { node };
        let leave = |node| Observation::Leave { node };
        for observation in [enter(0), enter(1), leave(1), leave(0), enter(1)] {
            judge.observe(Time::ZERO, observation);
        }
        assert_eq!((judge.early(), judge.passed()), (None, 1));
        judge.observe(Time::from_ns(5), leave(1));
        let early = judge.early().expect("node 0 has not entered the second");
        assert_eq!((early.node, early.barrier, early.missing), (1, 2, 0));
    }
}

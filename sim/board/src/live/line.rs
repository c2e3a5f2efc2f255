//! The eureka line of a board in shared memory: levels of its wires and its flip-flops
//! (crate `fpga-model`, module `eureka`), as a value.
//!
//! The line has separate slots and a separate head word after the board's memory, with the same
//! protocol, so it does not slow barriers down.
//! The line's only input from the board is the number of releases; each release clears the line.
//! A reader loads that number after the line's slot, so a node that has seen a release
//! finds the line cleared. It does not matter at which edge between two commits the release
//! occurred, because the wires' levels have then passed the synchroniser: nodes lower their wires
//! before they enter, and a release takes at least as many edges as the synchroniser.

use super::CLOCK;
use super::slots::{Encoded, Slots};
use fpga_model::BadNodeCount;
use fpga_model::eureka::{EurekaLine, EurekaRegisters};

/// Number of words of a slot: one cache line.
pub(super) const LINE_WORDS: usize = 8;

/// The eureka line of a board.
pub(super) type Line<'m> = Slots<'m, LineState, LINE_WORDS>;

/// The state of a eureka line, which each commit replaces as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineState {
    line: EurekaLine,
    /// Levels of the nodes' wires to the line, bit `n` for node `n`.
    says: u64,
    /// Index of the last clock edge that `line` has simulated.
    edge: u64,
    /// The board's number of releases when edge `edge` was simulated.
    releases: u64,
}

impl LineState {
    /// Steps the line to the present; `releases` is the board's present number of releases.
    pub(super) fn run_until(&mut self, now_ns: u64, releases: u64) {
        let released = releases != self.releases;
        let due = CLOCK.edges_until(now_ns).saturating_sub(self.edge);
        // The line samples a release one edge later,
        // so at least one edge is simulated after a release.
        let edges = due.max(released.into());
        let mut level = self.line.registers().release;
        let mut left = edges;
        if released {
            let before = self.line.latency_edges().min(edges - 1);
            self.line.fast_forward(self.says, level, before);
            // Several releases are treated as one change,
            // although an even number of releases leaves the level unchanged.
            level = !level;
            left -= before;
        }
        self.line.fast_forward(self.says, level, left);
        self.edge += edges;
        self.releases = releases;
    }

    pub(super) fn say(&mut self, node: usize, high: bool) {
        self.says = self.says & !(1 << node) | u64::from(high) << node;
    }

    /// Returns true if this node's wire is high.
    pub(super) fn says(&self, node: usize) -> bool {
        self.says >> node & 1 == 1
    }

    /// Returns the time in ns at which the present
    /// levels of the wires have passed the synchroniser.
    pub(super) fn seen_ns(&self) -> u64 {
        CLOCK.time_of(self.edge + self.line.latency_edges())
    }

    pub(super) fn found(&self) -> bool {
        self.line.found()
    }

    pub(super) fn first(&self) -> Option<usize> {
        self.line.first()
    }
}

impl Encoded<LINE_WORDS> for LineState {
    type Blank = EurekaLine;

    const MAGIC: u64 = u64::from_le_bytes(*b"hwbarr\x04\x03");

    /// Returns a line whose wires have no filter, like the wires of the board.
    fn blank(nodes: usize) -> Result<EurekaLine, BadNodeCount> {
        EurekaLine::new(nodes, 1).map_err(|_| BadNodeCount(nodes))
    }

    fn power_on(line: EurekaLine) -> Self {
        Self {
            line,
            says: 0,
            edge: 0,
            releases: 0,
        }
    }

    fn to_words(self) -> [u64; LINE_WORDS] {
        let EurekaRegisters {
            stage1,
            stage2,
            found,
            first,
            release,
        } = self.line.registers();
        let flags = u64::from(found) | u64::from(release) << 1;
        let Self {
            says,
            edge,
            releases,
            ..
        } = self;
        [says, stage1, stage2, first, flags, edge, releases, 0]
    }

    fn from_words(
        blank: EurekaLine,
        &[says, stage1, stage2, first, flags, edge, releases, _]: &[u64; LINE_WORDS],
    ) -> Self {
        let registers = EurekaRegisters {
            stage1,
            stage2,
            found: flags & 1 == 1,
            first,
            release: flags >> 1 & 1 == 1,
        };
        Self {
            line: blank.load(registers),
            says,
            edge,
            releases,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A state that is encoded and decoded behaves as before, for any line changes.
        #[test]
        fn a_state_goes_through_words_unchanged(moves in prop::collection::vec((0usize..3, any::<bool>(), 0u64..2, 0u64..200), 0..100)) {
            let blank = EurekaLine::new(3, 1).expect("three nodes");
            let (mut state, mut stored) = (LineState::power_on(blank), LineState::power_on(blank));
            let (mut now, mut releases) = (0, 0);
            for (node, high, released, later) in moves {
                now += later;
                releases += released;
                for state in [&mut state, &mut stored] {
                    state.run_until(now, releases);
                    state.say(node, high);
                }
                stored = LineState::from_words(blank, &stored.to_words());
                prop_assert_eq!(stored.to_words(), state.to_words());
                prop_assert_eq!((stored.found(), stored.first()), (state.found(), state.first()));
            }
        }
    }
}

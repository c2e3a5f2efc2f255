//! A software fence for `open` and the self-test, for nodes whose only other connection is a serial line to a neighbour.
//!
//! # The protocol
//!
//! The nodes form a ring: each node sends bytes to the next and receives those of the previous one.
//! Two nodes form a ring if their two lines are crossed.
//!
//! A byte contains the number of consecutive nodes known to have reached this fence: the sender, the node before it, and so on.
//! A node starts with count 1 for itself, takes `received + 1` as its count, and passes the fence when the count is `nodes`.
//! It sends its count repeatedly, so any byte may be lost, for example at a node that is still booting:
//! a repeated count has no effect, and a larger count implies the smaller ones.
//! When a node has passed the fence, it sends its count once more.
//! The next node is running by then, because it is among those that have arrived.
//! From this count, the next node can conclude that all nodes have arrived.
//!
//! Fences are numbered modulo four. A byte of the next fence shows that its sender has passed this one, so all
//! nodes have arrived; a byte of any other fence is out of date and ignored. A line preserves the order
//! of its bytes, so a byte that is three fences old is never mistaken for one of the next fence.
//!
//! A node that restarts begins at the first fence again. The others may be at a later fence: then they either wait for it until their
//! limit, or pass, and detect in the following self-test that it is out of step.

/// The maximum number of nodes of a ring.
pub const MOST_NODES: u8 = 15;

pub(crate) const COUNT: u8 = 0x0f;

/// One node's end of the ring: it computes the byte to send and processes received bytes.
///
/// It has no line and no clock. The caller sends [`byte`](Self::byte) every few milliseconds and passes each byte that
/// arrives to [`receive`](Self::receive) until [`is_complete`](Self::is_complete) returns true, then sends the byte once more.
#[derive(Debug, Clone)]
pub struct RingFence {
    nodes: u8,
    fence: u8,
    known: u8,
}

impl RingFence {
    /// Returns the state at the first fence of a ring of `nodes` nodes; `None` if `nodes` is 0 or more than [`MOST_NODES`].
    pub fn new(nodes: u8) -> Option<Self> {
        (1..=MOST_NODES).contains(&nodes).then_some(Self {
            nodes,
            fence: 0,
            known: 1,
        })
    }

    /// Begins the next fence; the caller must have passed the present one.
    pub fn next(&mut self) {
        self.fence = (self.fence + 1) % 4;
        self.known = 1;
    }

    /// The byte to send to the next node: below 64, so the line can carry other data too.
    pub fn byte(&self) -> u8 {
        self.fence << 4 | self.known
    }

    /// Processes a byte from the previous node.
    pub fn receive(&mut self, byte: u8) {
        let (fence, known) = (byte >> 4, byte & COUNT);
        if fence == (self.fence + 1) % 4 {
            self.known = self.nodes;
        } else if fence == self.fence && (1..=self.nodes).contains(&known) {
            self.known = self.known.max(known + 1).min(self.nodes);
        }
    }

    /// Returns true if all nodes have reached the fence.
    pub fn is_complete(&self) -> bool {
        self.known == self.nodes
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// A simulated node: the number of fences that it has reached, and the bytes on the line to it.
    struct Node {
        fence: RingFence,
        come: u32,
        line: Vec<u8>,
    }

    proptest! {
        /// Bytes are lost and repeated, and nodes boot late; a node passes a fence only after all nodes have reached it.
        #[test]
        fn no_rank_leaves_before_all_have_entered_and_all_leave(
            nodes in 1..=MOST_NODES,
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u8), 0..600),
        ) {
            const FENCES: u32 = 9;
            let new = || Node { fence: RingFence::new(nodes).expect("few enough"), come: 0, line: Vec::new() };
            let mut ring: Vec<Node> = (0..nodes).map(|_| new()).collect();
            let step = |ring: &mut Vec<Node>, at: usize, chance: u8| {
                let after = (at + 1) % ring.len();
                if ring[at].come == 0 {
                    // Bytes that arrived before the node was up are lost.
                    ring[at].line.clear();
                    ring[at].come = 1;
                }
                let heard = std::mem::take(&mut ring[at].line);
                for byte in heard {
                    // `chance` 0 loses all bytes on the line, 1 delivers each byte twice.
                    for _ in 0..[0, 2].get(usize::from(chance)).copied().unwrap_or(1) {
                        ring[at].fence.receive(byte);
                    }
                }
                let byte = ring[at].fence.byte();
                ring[after].line.push(byte);
                if ring[at].fence.is_complete() && ring[at].come < FENCES {
                    let come = ring[at].come;
                    assert!(ring.iter().all(|node| node.come >= come), "through too early");
                    ring[at].fence.next();
                    ring[at].come += 1;
                }
            };
            for (at, chance) in steps {
                let at = at.index(ring.len());
                step(&mut ring, at, chance);
            }
            // When the line loses no more bytes, all nodes must pass.
            for _ in 0..usize::from(nodes) * 2 * FENCES as usize {
                for at in 0..ring.len() {
                    step(&mut ring, at, 7);
                }
            }
            for node in &ring {
                prop_assert_eq!(node.come, FENCES);
                prop_assert!(node.fence.is_complete());
            }
        }
    }

    #[test]
    fn a_ring_that_no_byte_can_count_is_refused() {
        assert!(RingFence::new(0).is_none());
        assert!(RingFence::new(MOST_NODES + 1).is_none());
    }
}

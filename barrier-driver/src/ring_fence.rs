//! The fence that opening and the self-test need, for nodes whose only other link is a serial line to a neighbour.
//!
//! # The protocol
//!
//! The nodes form a ring: each sends bytes to the next and hears those of the one before it.
//! Two nodes are a ring too, with their two lines crossed.
//!
//! A byte says how many nodes are known to have come to this fence: its sender, the one before it, and so on.
//! A node begins with itself, takes one more than what it hears, and is through when it knows of all.
//! It sends its count again and again, so no byte has to arrive, not even at a node that is still booting:
//! a count that is heard twice says nothing new, and a larger one says all that the smaller ones did.
//! When it is through it sends its count once more. The next node is up then, for it is among those that have come,
//! and learns that all have.
//!
//! Fences are numbered modulo four. A byte of the next fence says that its sender is through with this one, so all
//! have come; a byte of any other fence is left over and is not heard. A line keeps the order
//! of its bytes, so one that is three fences old is never taken for one of the next.
//!
//! A node that restarts is at the first fence again, whatever the others are at: they wait for it until their time is
//! over, or are let through and find in the self-test, which follows, that it does not keep step.

/// The most nodes that a byte can count.
pub const MOST_NODES: u8 = 15;

const COUNT: u8 = 0x0f;

/// One node's end of the ring: which byte it sends, and what it makes of those that it hears.
///
/// It has no line and no clock. The caller sends [`byte`](Self::byte) every few milliseconds and gives each byte that
/// arrives to [`hear`](Self::hear) until the node [is through](Self::is_through), then sends the byte once more.
#[derive(Debug, Clone)]
pub struct RingFence {
    nodes: u8,
    fence: u8,
    known: u8,
}

impl RingFence {
    /// The first fence of a ring of nodes; `None` if their number is 0 or higher than [`MOST_NODES`].
    pub fn new(nodes: u8) -> Option<Self> {
        (1..=MOST_NODES).contains(&nodes).then_some(Self {
            nodes,
            fence: 0,
            known: 1,
        })
    }

    /// Comes to the next fence; the caller is through with this one.
    pub fn next(&mut self) {
        self.fence = (self.fence + 1) % 4;
        self.known = 1;
    }

    /// What to send to the next node: below 64, so a line may carry more than fences.
    pub fn byte(&self) -> u8 {
        self.fence << 4 | self.known
    }

    /// Takes note of a byte from the node before.
    pub fn hear(&mut self, byte: u8) {
        let (fence, known) = (byte >> 4, byte & COUNT);
        if fence == (self.fence + 1) % 4 {
            self.known = self.nodes;
        } else if fence == self.fence && (1..=self.nodes).contains(&known) {
            self.known = self.known.max(known + 1).min(self.nodes);
        }
    }

    /// Whether all nodes have come.
    pub fn is_through(&self) -> bool {
        self.known == self.nodes
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// A node, how many fences it has come to, and what the one before has on the line to it.
    struct Node {
        fence: RingFence,
        come: u32,
        line: Vec<u8>,
    }

    proptest! {
        /// Bytes are lost and repeated, nodes boot late; a node that is through a fence finds that all have come to it.
        #[test]
        fn nobody_is_through_before_all_have_come_and_all_get_through(
            nodes in 1..=MOST_NODES,
            steps in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u8), 0..600),
        ) {
            const FENCES: u32 = 9;
            let new = || Node { fence: RingFence::new(nodes).expect("few enough"), come: 0, line: Vec::new() };
            let mut ring: Vec<Node> = (0..nodes).map(|_| new()).collect();
            let step = |ring: &mut Vec<Node>, at: usize, chance: u8| {
                let after = (at + 1) % ring.len();
                if ring[at].come == 0 {
                    // What came before it was up is lost.
                    ring[at].line.clear();
                    ring[at].come = 1;
                }
                let heard = std::mem::take(&mut ring[at].line);
                for byte in heard {
                    // Chance 0 loses everything that was on the line, 1 hears it twice.
                    for _ in 0..[0, 2].get(usize::from(chance)).copied().unwrap_or(1) {
                        ring[at].fence.hear(byte);
                    }
                }
                let byte = ring[at].fence.byte();
                ring[after].line.push(byte);
                if ring[at].fence.is_through() && ring[at].come < FENCES {
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
            // With lines that lose nothing any more, everybody gets through.
            for _ in 0..usize::from(nodes) * 2 * FENCES as usize {
                for at in 0..ring.len() {
                    step(&mut ring, at, 7);
                }
            }
            for node in &ring {
                prop_assert_eq!(node.come, FENCES);
                prop_assert!(node.fence.is_through());
            }
        }

        #[test]
        fn no_byte_makes_a_count_that_is_none(nodes in 1..=MOST_NODES, bytes: Vec<u8>) {
            let mut fence = RingFence::new(nodes).expect("few enough");
            for byte in bytes {
                fence.hear(byte);
                prop_assert!((1..=nodes).contains(&(fence.byte() & COUNT)));
                prop_assert!(fence.byte() < 64);
            }
        }
    }

    #[test]
    fn a_ring_that_no_byte_can_count_is_refused() {
        assert!(RingFence::new(0).is_none());
        assert!(RingFence::new(MOST_NODES + 1).is_none());
    }
}

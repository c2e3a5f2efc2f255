//! The record of which nodes of a simulated board have ended, in memory that the ranks share.
//!
//! A node ends one time: either it closes and stores the number of its barriers,
//! or a survivor records its death.
//! The last node that closes writes the files. If a death is not recorded, no node is the last.

use mpi_base::atomic::{AtomicU32, AtomicU64, Ordering};

/// Flag in the word of a node that has closed; the other bits are the number of its barriers.
const CLOSED: u64 = 1 << 63;
/// Flag in the word of a node that has died.
const DEAD: u64 = 1 << 62;

/// The nodes' words, each zero while its node is active, and the number of ended nodes.
#[derive(Clone, Copy)]
pub struct EndedNodes<'m> {
    pub nodes: &'m [AtomicU64],
    pub ended: &'m AtomicU32,
}

impl EndedNodes<'_> {
    /// Records that these nodes have died; every surviving node may call this.
    pub fn record_dead(self, dead: &[u32]) {
        for node in dead {
            self.end(*node, DEAD);
        }
    }

    /// Records that node `node` has closed after `barriers` barriers.
    /// Returns true if all nodes have now ended.
    pub fn close(self, node: u32, barriers: u64) -> bool {
        self.end(node, CLOSED | barriers & !DEAD)
    }

    /// Returns the number of barriers of each node; 0 for a dead node, whose number is unknown.
    pub fn barriers(self) -> Vec<u64> {
        let word = |node: &AtomicU64| node.load(Ordering::Relaxed) & !(CLOSED | DEAD);
        self.nodes.iter().map(word).collect()
    }

    /// Returns the nodes that have died.
    pub fn dead(self) -> Vec<u32> {
        let is_dead = |node: &AtomicU64| node.load(Ordering::Relaxed) & DEAD != 0;
        let nodes = (0..).zip(self.nodes);
        let dead = nodes.filter(|(_, node)| is_dead(node));
        dead.map(|(node, _)| node).collect()
    }

    fn end(self, node: u32, word: u64) -> bool {
        let Some(place) = self.nodes.get(node as usize) else {
            return false;
        };
        let first = place.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed);
        // SYNC POINT ended_nodes.ended: the last node sees everything that the other nodes stored
        // before they ended.
        first.is_ok() && self.ended.fetch_add(1, Ordering::AcqRel) + 1 == self.nodes.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_living_node_is_the_last_whichever_node_records_the_deaths() {
        let (words, ended) = ([const { AtomicU64::new(0) }; 4], AtomicU32::new(0));
        let all = EndedNodes {
            nodes: &words,
            ended: &ended,
        };
        assert!(!all.close(0, 7));
        all.record_dead(&[3]);
        all.record_dead(&[3, 2]);
        assert!(all.close(1, 8));
        assert_eq!(all.barriers(), [7, 8, 0, 0]);
        assert_eq!(all.dead(), [2, 3]);
        assert!(!all.close(3, 9));
        assert!(!all.close(1, 9));
        assert_eq!(all.barriers(), [7, 8, 0, 0]);
    }
}

//! The node of each member of a communicator, and the member's local rank on that node.
//!
//! In messages between leaders, the blocks of all members are in node order:
//! sorted by node, so the blocks of one node are contiguous in memory.
//! If each node has consecutive ranks, node order is rank order.

use crate::Error;
use crate::algo::{self, Blocks};
use crate::datatype::{RecvBuf, SendBuf};
use std::collections::HashMap;
use std::ops::Range;

/// A rank's node, and its local rank on that node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRank {
    /// The index of the rank's node; nodes are in the order of their leaders' ranks.
    pub node: u32,
    /// The local rank on the node; a leader has local rank 0.
    pub place: u32,
}

/// The node and the local rank of every member.
#[derive(Debug, PartialEq, Eq)]
pub struct NodeRanks {
    of: Box<[NodeRank]>,
    /// All ranks, sorted by node.
    order: Box<[u32]>,
    /// For each node, the index in `order` at which the node begins;
    /// the last entry is the number of ranks.
    starts: Box<[usize]>,
}

impl NodeRanks {
    /// Computes the node ranks from the node id of each rank (`names`, indexed by rank), in linear time, since jobs may have very many ranks and nodes.
    pub fn new(names: &[u64]) -> NodeRanks {
        let mut nodes: HashMap<u64, u32> = HashMap::new();
        let mut members: Vec<u32> = Vec::new();
        let node_rank = |name: &u64| {
            let next = members.len() as u32;
            let node = *nodes.entry(*name).or_insert(next);
            if node == next {
                members.push(0);
            }
            let count = &mut members[node as usize];
            let place = *count;
            *count += 1;
            NodeRank { node, place }
        };
        let of: Box<[NodeRank]> = names.iter().map(node_rank).collect();
        let ends = members.iter().scan(0, |end, members| {
            *end += *members as usize;
            Some(*end)
        });
        let starts: Box<[usize]> = std::iter::once(0).chain(ends).collect();
        let mut order: Box<[u32]> = vec![0; of.len()].into();
        for (rank, node_rank) in (0..).zip(&of) {
            order[starts[node_rank.node as usize] + node_rank.place as usize] = rank;
        }
        NodeRanks { of, order, starts }
    }

    pub fn of(&self, rank: u32) -> NodeRank {
        self.of[rank as usize]
    }

    pub fn nodes(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    pub fn size(&self) -> u32 {
        self.of.len() as u32
    }

    /// Returns the ranks on a node, its leader first.
    pub fn on(&self, node: u32) -> &[u32] {
        &self.order[self.places(node)]
    }

    /// Returns the range of a node's ranks in `order`.
    fn places(&self, node: u32) -> Range<usize> {
        self.starts[node as usize]..self.starts[node as usize + 1]
    }

    pub fn leader(&self, node: u32) -> u32 {
        self.order[self.starts[node as usize]]
    }

    /// Returns true if no two members are on one node.
    pub fn are_single(&self) -> bool {
        self.nodes() == self.size()
    }

    /// Returns true if node order is rank order.
    pub fn are_in_order(&self) -> bool {
        self.order.is_sorted()
    }
}

/// The blocks of all members, packed, in node order.
pub struct Packed {
    pub all: RecvBuf,
    /// The offset of each block in bytes, followed by the end of the last block.
    at: Vec<i64>,
    /// True if `all` is the memory of the blocks' own buffers.
    pub is_home: bool,
}

impl Packed {
    /// Allocates memory for one block per rank; `bytes(rank)` is the length of a rank's block.
    pub fn scratch(node_ranks: &NodeRanks, bytes: impl Fn(u32) -> i64) -> Result<Packed, Error> {
        let at = starts(node_ranks, bytes);
        let all = algo::bytes(*at.last().unwrap_or(&0))?.all();
        Ok(Packed {
            all,
            at,
            is_home: false,
        })
    }

    /// Returns memory for these blocks: that of their buffers if they are contiguous in node order, otherwise temporary memory.
    pub fn for_blocks(node_ranks: &NodeRanks, blocks: &Blocks<RecvBuf>) -> Result<Packed, Error> {
        let bytes = |rank| blocks.of(rank).bytes();
        let home = blocks
            .as_one()
            .filter(|_| node_ranks.are_in_order())
            .and_then(|one| one.as_bytes());
        match home {
            Some(all) => Ok(Packed {
                all,
                at: starts(node_ranks, bytes),
                is_home: true,
            }),
            None => Packed::scratch(node_ranks, bytes),
        }
    }

    /// Returns the blocks of one node.
    pub fn of_node(&self, node_ranks: &NodeRanks, node: u32) -> RecvBuf {
        let places = node_ranks.places(node);
        self.all.slice(self.at[places.start]..self.at[places.end])
    }

    /// Returns the blocks of each node, as one buffer per node.
    pub fn by_node(&self, node_ranks: &NodeRanks) -> std::rc::Rc<[RecvBuf]> {
        let nodes = 0..node_ranks.nodes();
        nodes.map(|node| self.of_node(node_ranks, node)).collect()
    }

    /// Iterates over the blocks in node order, each with its rank.
    fn ranks<'a>(&'a self, node_ranks: &'a NodeRanks) -> impl Iterator<Item = (u32, RecvBuf)> + 'a {
        let ranges = self.at.windows(2).map(|at| self.all.slice(at[0]..at[1]));
        node_ranks.order.iter().copied().zip(ranges)
    }

    /// Copies every rank's block into the packed memory.
    pub fn fill(&self, node_ranks: &NodeRanks, from: impl Fn(u32) -> SendBuf) {
        for (rank, place) in self.ranks(node_ranks) {
            algo::copy(&from(rank), &place);
        }
    }

    /// Copies the blocks to their buffers, except those of ranks for which `is_there` returns true.
    pub fn deliver(
        &self,
        node_ranks: &NodeRanks,
        to: &Blocks<RecvBuf>,
        is_there: impl Fn(u32) -> bool,
    ) {
        if self.is_home {
            return;
        }
        for (rank, place) in self.ranks(node_ranks).filter(|(rank, _)| !is_there(*rank)) {
            algo::copy(&place.as_send(), &to.of(rank));
        }
    }
}

fn starts(node_ranks: &NodeRanks, bytes: impl Fn(u32) -> i64) -> Vec<i64> {
    let ends = node_ranks.order.iter().scan(0i64, |end, rank| {
        *end = end.saturating_add(bytes(*rank));
        Some(*end)
    });
    std::iter::once(0).chain(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seats_follow_the_order_of_ranks() {
        let node_ranks = NodeRanks::new(&[7, 3, 7, 9, 3]);
        let node_rank = |node, place| NodeRank { node, place };
        let expected = [
            node_rank(0, 0),
            node_rank(1, 0),
            node_rank(0, 1),
            node_rank(2, 0),
            node_rank(1, 1),
        ];
        assert_eq!(*node_ranks.of, expected);
        assert_eq!(node_ranks.nodes(), 3);
        assert_eq!(
            (node_ranks.on(0), node_ranks.on(1), node_ranks.on(2)),
            (&[0, 2][..], &[1, 4][..], &[3][..])
        );
        assert_eq!([0, 1, 2].map(|node| node_ranks.leader(node)), [0, 1, 3]);
        assert!(!node_ranks.are_in_order() && !node_ranks.are_single());
        assert!(NodeRanks::new(&[7, 7, 3, 9]).are_in_order());
        assert!(NodeRanks::new(&[7, 5, 3]).are_single());
    }
}

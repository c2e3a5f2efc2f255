//! Seats: the node of each member of a communicator, and its local rank on that node.
//!
//! All members' blocks travel between levels node by node, so those of one node are contiguous in memory:
//! this is seat order, which equals rank order where nodes have consecutive ranks.

use crate::Error;
use crate::algo::{self, Blocks};
use crate::datatype::{RecvBuf, SendBuf};
use std::collections::HashMap;
use std::ops::Range;

/// A rank's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// The index of its node, in the order of leaders.
    pub node: u32,
    /// Its local rank on the node; the leader's is 0.
    pub place: u32,
}

/// The seats of all members.
#[derive(Debug, PartialEq, Eq)]
pub struct Seats {
    of: Box<[Seat]>,
    /// Ranks, sorted by node.
    order: Box<[u32]>,
    /// By node: where it begins in `order`; then the end.
    starts: Box<[usize]>,
}

impl Seats {
    /// Computes seats from the id of each rank's node, in linear time, as jobs may have very many ranks and nodes.
    pub fn new(names: &[u64]) -> Seats {
        let mut nodes: HashMap<u64, u32> = HashMap::new();
        let mut members: Vec<u32> = Vec::new();
        let seat = |name: &u64| {
            let next = members.len() as u32;
            let node = *nodes.entry(*name).or_insert(next);
            if node == next {
                members.push(0);
            }
            let count = &mut members[node as usize];
            let place = *count;
            *count += 1;
            Seat { node, place }
        };
        let of: Box<[Seat]> = names.iter().map(seat).collect();
        let ends = members.iter().scan(0, |end, members| {
            *end += *members as usize;
            Some(*end)
        });
        let starts: Box<[usize]> = std::iter::once(0).chain(ends).collect();
        let mut order: Box<[u32]> = vec![0; of.len()].into();
        for (rank, seat) in (0..).zip(&of) {
            order[starts[seat.node as usize] + seat.place as usize] = rank;
        }
        Seats { of, order, starts }
    }

    pub fn of(&self, rank: u32) -> Seat {
        self.of[rank as usize]
    }

    pub fn nodes(&self) -> u32 {
        self.starts.len() as u32 - 1
    }

    pub fn size(&self) -> u32 {
        self.of.len() as u32
    }

    /// The ranks on a node, the leader's first.
    pub fn on(&self, node: u32) -> &[u32] {
        &self.order[self.places(node)]
    }

    /// The range of a node in seat order.
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

    /// Returns true if seat order is rank order.
    pub fn are_in_order(&self) -> bool {
        self.order.is_sorted()
    }
}

/// All members' blocks, packed, in seat order.
pub struct Packed {
    pub all: RecvBuf,
    /// The offset of each block, and the end.
    at: Vec<i64>,
    /// True if `all` is the blocks' own memory.
    pub is_home: bool,
}

impl Packed {
    /// Allocates memory for blocks of these sizes; `bytes` takes a rank.
    pub fn room(seats: &Seats, bytes: impl Fn(u32) -> i64) -> Result<Packed, Error> {
        let at = starts(seats, bytes);
        let all = algo::bytes(*at.last().unwrap_or(&0))?.all();
        Ok(Packed {
            all,
            at,
            is_home: false,
        })
    }

    /// Memory for these blocks: their own if they are contiguous in seat order, otherwise allocated.
    pub fn for_blocks(seats: &Seats, blocks: &Blocks<RecvBuf>) -> Result<Packed, Error> {
        let bytes = |rank| blocks.of(rank).bytes();
        let home = blocks
            .as_one()
            .filter(|_| seats.are_in_order())
            .and_then(|one| one.as_bytes());
        match home {
            Some(all) => Ok(Packed {
                all,
                at: starts(seats, bytes),
                is_home: true,
            }),
            None => Packed::room(seats, bytes),
        }
    }

    /// The blocks of one node.
    pub fn of_node(&self, seats: &Seats, node: u32) -> RecvBuf {
        let places = seats.places(node);
        self.all.slice(self.at[places.start]..self.at[places.end])
    }

    /// The blocks of each node.
    pub fn by_node(&self, seats: &Seats) -> std::rc::Rc<[RecvBuf]> {
        let nodes = 0..seats.nodes();
        nodes.map(|node| self.of_node(seats, node)).collect()
    }

    /// The blocks in seat order, each with its rank.
    fn ranks<'a>(&'a self, seats: &'a Seats) -> impl Iterator<Item = (u32, RecvBuf)> + 'a {
        let ranges = self.at.windows(2).map(|at| self.all.slice(at[0]..at[1]));
        seats.order.iter().copied().zip(ranges)
    }

    /// Copies blocks in.
    pub fn fill(&self, seats: &Seats, from: impl Fn(u32) -> SendBuf) {
        for (rank, place) in self.ranks(seats) {
            algo::copy(&from(rank), &place);
        }
    }

    /// Copies the blocks to their buffers, except those for which `is_there` returns true.
    pub fn deliver(&self, seats: &Seats, to: &Blocks<RecvBuf>, is_there: impl Fn(u32) -> bool) {
        if self.is_home {
            return;
        }
        for (rank, place) in self.ranks(seats).filter(|(rank, _)| !is_there(*rank)) {
            algo::copy(&place.as_send(), &to.of(rank));
        }
    }
}

fn starts(seats: &Seats, bytes: impl Fn(u32) -> i64) -> Vec<i64> {
    let ends = seats.order.iter().scan(0i64, |end, rank| {
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
        let seats = Seats::new(&[7, 3, 7, 9, 3]);
        let seat = |node, place| Seat { node, place };
        let expected = [seat(0, 0), seat(1, 0), seat(0, 1), seat(2, 0), seat(1, 1)];
        assert_eq!(*seats.of, expected);
        assert_eq!(seats.nodes(), 3);
        assert_eq!(
            (seats.on(0), seats.on(1), seats.on(2)),
            (&[0, 2][..], &[1, 4][..], &[3][..])
        );
        assert_eq!([0, 1, 2].map(|node| seats.leader(node)), [0, 1, 3]);
        assert!(!seats.are_in_order() && !seats.are_single());
        assert!(Seats::new(&[7, 7, 3, 9]).are_in_order());
        assert!(Seats::new(&[7, 5, 3]).are_single());
    }
}

//! Where the members of a communicator sit: on which node, and in which place there.
//!
//! Blocks of all members travel between levels node by node, so those of one node are one piece of memory:
//! the order of seats, which is the order of ranks where nodes have consecutive ranks.

use crate::Error;
use crate::algo::{self, Blocks};
use crate::datatype::{RecvBuf, SendBuf};
use std::collections::HashMap;
use std::ops::Range;

/// Where a rank sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Which node, in the order of leaders.
    pub node: u32,
    /// Its rank there; the leader's is 0.
    pub place: u32,
}

/// Where every member sits.
#[derive(Debug, PartialEq, Eq)]
pub struct Seats {
    of: Box<[Seat]>,
    /// Ranks, node by node.
    order: Box<[u32]>,
    /// By node, where it begins in `order`; and the end.
    starts: Box<[usize]>,
}

impl Seats {
    /// Where ranks sit whose nodes have these names; one look at each, for a job may have very many of both.
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

    /// Which places in the order of seats are a node's.
    fn places(&self, node: u32) -> Range<usize> {
        self.starts[node as usize]..self.starts[node as usize + 1]
    }

    pub fn leader(&self, node: u32) -> u32 {
        self.order[self.starts[node as usize]]
    }

    /// Whether no two members are on one node.
    pub fn are_single(&self) -> bool {
        self.nodes() == self.size()
    }

    /// Whether the order of seats is the order of ranks.
    pub fn are_in_order(&self) -> bool {
        self.order.is_sorted()
    }
}

/// Every member's blocks, packed, in the order of seats.
pub struct Packed {
    pub all: RecvBuf,
    /// Where each place begins, and the end.
    at: Vec<i64>,
    /// Whether `all` is the memory of the blocks themselves.
    pub is_home: bool,
}

impl Packed {
    /// Room for blocks of these bytes, by rank.
    pub fn room(seats: &Seats, bytes: impl Fn(u32) -> i64) -> Result<Packed, Error> {
        let at = starts(seats, bytes);
        let all = algo::bytes(*at.last().unwrap_or(&0))?.all();
        Ok(Packed {
            all,
            at,
            is_home: false,
        })
    }

    /// Room for these blocks; that is where they belong if they lie there one after another in the order of seats.
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

    /// A node's blocks.
    pub fn of_node(&self, seats: &Seats, node: u32) -> RecvBuf {
        let places = seats.places(node);
        self.all.slice(self.at[places.start]..self.at[places.end])
    }

    /// Each node's blocks.
    pub fn by_node(&self, seats: &Seats) -> std::rc::Rc<[RecvBuf]> {
        let nodes = 0..seats.nodes();
        nodes.map(|node| self.of_node(seats, node)).collect()
    }

    /// The blocks in the order of seats, with their ranks.
    fn ranks<'a>(&'a self, seats: &'a Seats) -> impl Iterator<Item = (u32, RecvBuf)> + 'a {
        let ranges = self.at.windows(2).map(|at| self.all.slice(at[0]..at[1]));
        seats.order.iter().copied().zip(ranges)
    }

    /// Puts blocks in.
    pub fn fill(&self, seats: &Seats, from: impl Fn(u32) -> SendBuf) {
        for (rank, place) in self.ranks(seats) {
            algo::copy(&from(rank), &place);
        }
    }

    /// Takes the blocks to where they belong, but for those that are there.
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

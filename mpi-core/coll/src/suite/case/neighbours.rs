//! Cases of neighbourhood collectives: a random grid of all processes, or a random graph with loops and parallel edges.
//!
//! The expected result follows from the topology only, not from the message order of [`Neighbours`].

use super::{Case, Expected, SplitMix64};
use crate::algo::Buffer;
use crate::datatype::{RecvBuf, SendBuf};
use crate::topo::{Cart, DistGraph, Neighbours, Topology};
use crate::{Call, CallId};
use std::rc::Rc;

impl Case {
    /// Returns the case's topology, as `rank` specifies it.
    fn topology(&self, rank: u32) -> Topology {
        let mut random = SplitMix64(self.seed ^ 0x70_7010);
        let size = self.size();
        if random.below(2) == 0 {
            let divisors: Vec<u32> = (1..=size).filter(|d| size.is_multiple_of(*d)).collect();
            let first = divisors[random.below(divisors.len() as u64) as usize];
            let dims = [i64::from(first), i64::from(size / first)];
            let periods = dims.map(|_| random.below(2) == 0).to_vec();
            return Topology::Cart(Cart::new(&dims, periods).expect("positive extents"));
        }
        let mut end = || random.below(size.into()) as u32;
        let edges: Vec<_> = (0..2 * size).map(|_| (end(), end(), 0)).collect();
        Topology::DistGraph(DistGraph::of(rank, &edges, false))
    }

    fn neighbours(&self, rank: u32) -> Neighbours {
        self.topology(rank).neighbours(rank).expect("inside")
    }

    /// Returns the index of the block of `from` that arrives in block `block` of `to`.
    fn sent_block(&self, from: u32, to: u32, block: usize) -> usize {
        if matches!(self.topology(to), Topology::Cart(_)) {
            return block ^ 1;
        }
        // The n-th edge to `to` on the sender is the n-th edge from `from` on the receiver.
        let (here, there) = (self.neighbours(to), self.neighbours(from));
        let before = here.sources()[..block].iter();
        let n = before.filter(|s| **s == Some(from)).count();
        let mut edges = there.destinations().iter().enumerate();
        edges
            .by_ref()
            .filter(|(_, to_whom)| **to_whom == Some(to))
            .nth(n)
            .expect("as many edges there as here")
            .0
    }

    /// Returns the number of elements in a block that `from` sends, in calls whose counts differ.
    fn sent_count(&self, from: u32, block: usize) -> i64 {
        (self.counts[from as usize] * 3 + block as i64 * 7) % 23
    }

    /// Returns the words that `from` sends from its block `block`; in an allgather all blocks are the same.
    fn sent_words(&self, from: u32, block: usize) -> Vec<u64> {
        use CallId as Id;
        match self.call {
            Id::NeighborAllgather => self.input(from, 0, self.counts[0]),
            Id::NeighborAllgatherv => self.input(from, 0, self.counts[from as usize]),
            Id::NeighborAlltoall => self.input(from, block as u32, self.counts[0]),
            _ => self.input(from, block as u32, self.sent_count(from, block)),
        }
    }

    /// Returns the part of rank `me`.
    pub(super) fn neighbour_part(&self, me: u32) -> (Call, Expected) {
        use CallId as Id;
        let neighbours = Rc::new(self.neighbours(me));
        let count = self.counts[0];
        // A block for which no rank sends data is unchanged.
        let words: Vec<Option<Vec<u64>>> = neighbours
            .sources()
            .iter()
            .enumerate()
            .map(|(block, from)| {
                from.map(|from| self.sent_words(from, self.sent_block(from, me, block)))
            })
            .collect();
        let going = |block: usize| self.filled(&self.sent_words(me, block)).as_send();
        if matches!(self.call, Id::NeighborAllgather | Id::NeighborAlltoall) {
            let blank = self.blank(count * neighbours.sources().len() as i64);
            let untouched = super::words_of(&self.blank(count).as_send());
            let blocks = words
                .into_iter()
                .map(|w| w.unwrap_or_else(|| untouched.clone()));
            let all = Case::whole(blocks);
            let recv = Buffer::with_count(&blank, count);
            let call = if self.call == Id::NeighborAllgather {
                let send = going(0);
                Call::NeighborAllgather {
                    neighbours,
                    send,
                    recv,
                }
            } else {
                let blocks = 0..neighbours.destinations().len();
                let whole = Case::whole(blocks.map(|b| self.sent_words(me, b)));
                let send = Buffer::with_count(&self.filled(&whole).as_send(), count);
                Call::NeighborAlltoall {
                    neighbours,
                    send,
                    recv,
                }
            };
            return (call, vec![(blank, all)]);
        }
        let recv: Rc<[RecvBuf]> = words
            .iter()
            .map(|w| self.blank(w.as_ref().map_or(3, |w| self.elements(w))))
            .collect();
        let expected = recv
            .iter()
            .zip(words)
            .map(|(buf, w)| {
                (
                    buf.clone(),
                    w.unwrap_or_else(|| super::words_of(&buf.as_send())),
                )
            })
            .collect();
        let each =
            || -> Rc<[SendBuf]> { (0..neighbours.destinations().len()).map(going).collect() };
        let call = match self.call {
            Id::NeighborAllgatherv => Call::NeighborAllgatherv {
                send: going(0),
                neighbours,
                recv,
            },
            Id::NeighborAlltoallv => Call::NeighborAlltoallv {
                send: each(),
                neighbours,
                recv,
            },
            _ => Call::NeighborAlltoallw {
                send: each(),
                neighbours,
                recv,
            },
        };
        (call, expected)
    }

    fn elements(&self, words: &[u64]) -> i64 {
        (words.len() / self.words_per_element()) as i64
    }
}

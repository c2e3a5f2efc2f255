//! The neighbours of a process in a neighbourhood collective,
//! and the buffer block of each message (section 8.6).
//!
//! Buffers have a block for each neighbour, in the order of the topology's queries. The block of a
//! neighbour beyond an open end of a grid is not accessed.
//! A process may be a neighbour of another process several times.
//! Messages between two processes match in the order of the sends,
//! so the receiver must process its blocks in the sender's order.
//! In a graph, the n-th edge to a process matches the n-th edge from that process.
//! In a grid, a message to the lower neighbour is received there as the message of the upper
//! neighbour. This rule matters in rings of one or two processes.

use super::{Cart, DistGraph, Graph, TopoError, Topology};

/// The neighbours of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbours {
    sources: Box<[Option<u32>]>,
    destinations: Box<[Option<u32>]>,
    /// True if the blocks are in pairs: the lower and the upper neighbour in a dimension.
    grid: bool,
}

impl Neighbours {
    /// Returns for each block of a receive buffer the rank
    /// that sends it; `None` beyond an open end.
    pub fn sources(&self) -> &[Option<u32>] {
        &self.sources
    }

    /// Returns for each block of a send buffer the rank
    /// that receives it; `None` beyond an open end.
    pub fn destinations(&self) -> &[Option<u32>] {
        &self.destinations
    }

    /// Returns the index and the destination of each block to send, in the order of sending.
    pub fn departures(&self) -> impl Iterator<Item = (usize, u32)> {
        let all = self.destinations.iter().enumerate();
        all.filter_map(|(block, to)| Some((block, (*to)?)))
    }

    /// Returns the index and the source of each block to receive,
    /// in the order in which sources send.
    pub fn arrivals(&self) -> impl Iterator<Item = (usize, u32)> {
        (0..self.sources.len()).filter_map(|turn| {
            let block = self.opposite(turn);
            Some((block, self.sources[block]?))
        })
    }

    /// Returns the index of the receiver's block for a message from the sender's block `block`.
    fn opposite(&self, block: usize) -> usize {
        if self.grid { block ^ 1 } else { block }
    }
}

impl Topology {
    /// Returns the neighbours of a process.
    pub fn neighbours(&self, rank: u32) -> Result<Neighbours, TopoError> {
        match self {
            Topology::Cart(cart) => of_cart(cart, rank),
            Topology::Graph(graph) => of_graph(graph, rank),
            Topology::DistGraph(graph) => Ok(of_dist_graph(graph)),
        }
    }
}

/// Returns the lower and the upper neighbour in each dimension.
fn of_cart(cart: &Cart, rank: u32) -> Result<Neighbours, TopoError> {
    let mut all = Vec::with_capacity(2 * cart.dims().len());
    for direction in 0..cart.dims().len() as i64 {
        let (down, up) = cart.shift(rank, direction, 1)?;
        all.extend([down, up]);
    }
    Ok(Neighbours {
        sources: all.clone().into(),
        destinations: all.into(),
        grid: true,
    })
}

fn of_graph(graph: &Graph, rank: u32) -> Result<Neighbours, TopoError> {
    let all = graph.neighbours(rank.into())?;
    Ok(Neighbours {
        sources: all.iter().copied().map(Some).collect(),
        destinations: all.iter().copied().map(Some).collect(),
        grid: false,
    })
}

fn of_dist_graph(graph: &DistGraph) -> Neighbours {
    Neighbours {
        sources: graph.sources.iter().copied().map(Some).collect(),
        destinations: graph.destinations.iter().copied().map(Some).collect(),
        grid: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{HashMap, VecDeque};

    /// Simulates the exchange. Maps each (receiver, block) to the (sender, block) of its message.
    fn exchange(all: &[Neighbours]) -> HashMap<(u32, usize), (u32, usize)> {
        let mut ways: HashMap<(u32, u32), VecDeque<usize>> = HashMap::new();
        for (from, near) in (0..).zip(all) {
            for (block, to) in near.departures() {
                ways.entry((from, to)).or_default().push_back(block);
            }
        }
        let mut filled = HashMap::new();
        for (to, near) in (0..).zip(all) {
            for (block, from) in near.arrivals() {
                let way = ways.get_mut(&(from, to)).expect("a sender");
                let sent = way.pop_front().expect("a message");
                filled.insert((to, block), (from, sent));
            }
        }
        assert!(ways.values().all(VecDeque::is_empty), "messages are left");
        filled
    }

    proptest! {
        #[test]
        fn in_a_grid_what_leaves_downwards_arrives_from_above(
            dims in prop::collection::vec((1..4i64, any::<bool>()), 0..4)
        ) {
            let (dims, periods): (Vec<_>, Vec<_>) = dims.into_iter().unzip();
            let cart = Cart::new(&dims, periods).expect("positive extents");
            let ranks = 0..cart.size() as u32;
            let topology = Topology::Cart(cart);
            let all: Vec<_> = ranks.map(|r| topology.neighbours(r).expect("inside")).collect();
            for ((to, block), (from, sent)) in exchange(&all) {
                prop_assert_eq!(all[to as usize].sources()[block], Some(from));
                prop_assert_eq!(sent, block ^ 1);
            }
        }

        #[test]
        fn in_a_graph_the_edges_between_two_meet_in_their_order(
            edges in prop::collection::vec((0..5u32, 0..5u32, Just(0)), 0..40)
        ) {
            let near = |rank| Topology::DistGraph(DistGraph::of(rank, &edges, false)).neighbours(rank);
            let all: Vec<_> = (0..5).map(|r| near(r).expect("a neighbourhood")).collect();
            let filled = exchange(&all);
            prop_assert_eq!(filled.len(), edges.len());
            for ((to, block), (from, sent)) in filled {
                let edge = |at: &[Option<u32>], end: usize, of: u32| {
                    at[..end].iter().filter(|n| **n == Some(of)).count()
                };
                let (receiver, sender) = (&all[to as usize], &all[from as usize]);
                prop_assert_eq!(
                    edge(receiver.sources(), block, from),
                    edge(sender.destinations(), sent, to)
                );
            }
        }
    }

    #[test]
    fn beyond_an_open_end_is_a_block_without_a_neighbour() {
        let cart = Cart::new(&[2], vec![false]).expect("a line");
        let near = Topology::Cart(cart).neighbours(0).expect("inside");
        assert_eq!(near.sources(), [None, Some(1)]);
        assert_eq!(near.departures().collect::<Vec<_>>(), [(1, 1)]);
        assert_eq!(near.arrivals().collect::<Vec<_>>(), [(1, 1)]);
    }
}

//! The weighted undirected graph of a topology, for reordering.

use super::{Place, distance};
use crate::topo::{Cart, Graph};

/// The neighbours of each vertex and the weights of the edges. Edges have no direction.
#[derive(Clone, Debug, Default)]
pub struct Wires {
    /// For each vertex, the index in `neighbours` after its last neighbour.
    ends: Vec<u32>,
    neighbours: Vec<(u32, u64)>,
}

impl Wires {
    /// Creates the graph from edges `(from, to, weight)`. Both ends are less than `vertices`.
    ///
    /// An edge of weight 0 gets the weight 1, so that it has an effect.
    pub fn new(vertices: u32, edges: impl Iterator<Item = (u32, u32, u64)> + Clone) -> Wires {
        let mut ends = vec![0; vertices as usize];
        let others = || edges.clone().filter(|(from, to, _)| from != to);
        for (from, to, _) in others() {
            ends[from as usize] += 1;
            ends[to as usize] += 1;
        }
        let mut total = 0;
        for end in &mut ends {
            // `end` is now the index of the first neighbour; each stored neighbour increments it.
            (*end, total) = (total, total + *end);
        }
        let mut neighbours = vec![(0, 0); total as usize];
        for (from, to, weight) in others() {
            for (at, other) in [(from, to), (to, from)] {
                let end = &mut ends[at as usize];
                neighbours[*end as usize] = (other, weight.max(1));
                *end += 1;
            }
        }
        Wires { ends, neighbours }
    }

    /// Returns the graph of a grid, with an edge
    /// from each vertex to the next one in each dimension.
    pub fn of_cart(cart: &Cart) -> Wires {
        let ranks = 0..cart.size() as u32;
        let edges = ranks.flat_map(|rank| {
            let directions = 0..cart.dims().len() as i64;
            directions.filter_map(move |direction| {
                let (_, next) = cart.shift(rank, direction, 1).ok()?;
                Some((rank, next?, 1))
            })
        });
        Wires::new(cart.size() as u32, edges)
    }

    /// Returns the undirected graph of a graph topology. Each edge has the weight 1.
    pub fn of_graph(graph: &Graph) -> Wires {
        let vertices = graph.index().len() as u32;
        let edges = (0..vertices).flat_map(|from| {
            let to = graph.neighbours(from.into()).unwrap_or(&[]);
            to.iter().map(move |to| (from, *to, 1))
        });
        Wires::new(vertices, edges)
    }

    pub fn vertices(&self) -> usize {
        self.ends.len()
    }

    /// Returns the neighbours of a vertex and the weights of the edges.
    pub fn of(&self, vertex: u32) -> &[(u32, u64)] {
        let at = vertex as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.neighbours[start as usize..self.ends[at] as usize]
    }

    /// Returns the cost of a layout: the sum over all edges
    /// of weight times distance of the two ends.
    pub fn cost(&self, layout: &[u32], places: &[Place]) -> u64 {
        let vertices = 0..self.vertices() as u32;
        let all: u64 = vertices
            .map(|v| self.cost_of(v, v, layout, places))
            .fold(0, u64::saturating_add);
        // Every edge was counted twice, once at each end.
        all / 2
    }

    /// Returns the cost of the edges of `vertex` after an
    /// exchange of processes with the vertex `slot`.
    pub(super) fn cost_of(&self, vertex: u32, slot: u32, layout: &[u32], places: &[Place]) -> u64 {
        let at = |vertex: u32| &places[layout[vertex as usize] as usize];
        let here = at(slot);
        let edges = self.of(vertex).iter();
        let costs = edges.map(|(to, weight)| {
            // If `slot` is a neighbour, it has the process of `vertex` after the exchange.
            let there = if *to == slot { vertex } else { *to };
            weight.saturating_mul(distance(here, at(there)))
        });
        costs.fold(0, u64::saturating_add)
    }
}

//! A topology as reordering sees it: vertices, and how much goes between which.

use super::{Place, distance};
use crate::topo::{Cart, Graph};

/// Which vertex is next to which and how heavily; directions do not matter.
#[derive(Clone, Debug, Default)]
pub struct Wires {
    /// Where each vertex's neighbours end.
    ends: Vec<u32>,
    neighbours: Vec<(u32, u64)>,
}

impl Wires {
    /// From edges `(from, to, weight)`; both ends are below `vertices`.
    ///
    /// An edge without weight counts as the lightest, for it is an edge.
    pub fn new(vertices: u32, edges: impl Iterator<Item = (u32, u32, u64)> + Clone) -> Wires {
        let mut ends = vec![0; vertices as usize];
        let others = || edges.clone().filter(|(from, to, _)| from != to);
        for (from, to, _) in others() {
            ends[from as usize] += 1;
            ends[to as usize] += 1;
        }
        let mut total = 0;
        for end in &mut ends {
            // The start for now; every neighbour that is stored moves it on.
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

    /// The next ones in every direction of a grid.
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

    /// The edges of a graph that every process knows.
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

    /// The neighbours of a vertex, with the weight of each edge.
    pub fn of(&self, vertex: u32) -> &[(u32, u64)] {
        let at = vertex as usize;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.neighbours[start as usize..self.ends[at] as usize]
    }

    /// What a layout costs: each edge's weight times the distance between its ends.
    pub fn cost(&self, layout: &[u32], places: &[Place]) -> u64 {
        let vertices = 0..self.vertices() as u32;
        let all: u64 = vertices
            .map(|v| self.cost_of(v, v, layout, places))
            .fold(0, u64::saturating_add);
        // Every edge was met at both of its ends.
        all / 2
    }

    /// What the edges of `vertex` would cost where the process of `seat` is.
    pub(super) fn cost_of(&self, vertex: u32, seat: u32, layout: &[u32], places: &[Place]) -> u64 {
        let at = |vertex: u32| &places[layout[vertex as usize] as usize];
        let here = at(seat);
        let edges = self.of(vertex).iter();
        let costs = edges.map(|(to, weight)| {
            // A vertex that changes places with a neighbour finds it where it was itself.
            let there = if *to == seat { vertex } else { *to };
            weight.saturating_mul(distance(here, at(there)))
        });
        costs.fold(0, u64::saturating_add)
    }
}

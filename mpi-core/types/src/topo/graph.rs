//! Graph topologies: each process has the whole graph, or only its own edges (section 8.5).

use super::TopoError;

/// A graph of which each process has all edges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// For each node, the index in `edges` after its last edge.
    index: Vec<u32>,
    edges: Vec<u32>,
}

impl Graph {
    /// Creates a graph from the arguments of `MPI_Graph_create`:
    /// `index[i]` is the number of edges of nodes 0 to i.
    pub fn new(index: &[i64], edges: &[i64]) -> Result<Graph, TopoError> {
        let nodes = index.len() as u32;
        let mut before = 0;
        let mut ends = Vec::with_capacity(index.len());
        for (node, &index) in index.iter().enumerate() {
            let end = u32::try_from(index)
                .ok()
                .filter(|end| *end >= before)
                .ok_or(TopoError::Index {
                    node,
                    index,
                    before: before.into(),
                })?;
            before = end;
            ends.push(end);
        }
        let edges = edges
            .iter()
            .enumerate()
            .map(|(at, &node)| {
                let known = u32::try_from(node).ok().filter(|n| *n < nodes);
                known.ok_or(TopoError::Edge { at, node, nodes })
            })
            .collect::<Result<_, _>>()?;
        Ok(Graph { index: ends, edges })
    }

    /// Returns an error if the graph has more nodes than the communicator has processes.
    pub fn fit(self, size: u32) -> Result<Graph, TopoError> {
        let needed = self.index.len() as u64;
        if needed > size.into() {
            return Err(TopoError::TooFew { needed, size });
        }
        Ok(self)
    }

    /// Returns for each node the index in [`Graph::edges`] after its last neighbour, as in
    /// `MPI_Graph_create` (MPI 5.0, section 8.5.3).
    pub fn index(&self) -> &[u32] {
        &self.index
    }

    /// Returns the neighbours of all nodes: first those of node 0, then those of node 1, and so on.
    pub fn edges(&self) -> &[u32] {
        &self.edges
    }

    /// Returns the neighbours of a node. A neighbour with several edges occurs several times.
    pub fn neighbours(&self, rank: i64) -> Result<&[u32], TopoError> {
        let size = self.index.len() as u32;
        let at = usize::try_from(rank)
            .ok()
            .filter(|at| *at < self.index.len())
            .ok_or(TopoError::Rank { rank, size })?;
        let start = at.checked_sub(1).map_or(0, |before| self.index[before]);
        let end = self.index[at];
        Ok(self.edges.get(start as usize..end as usize).unwrap_or(&[]))
    }
}

/// An edge: source rank, destination rank, weight.
pub type Edge = (u32, u32, i32);

/// The edges of one process in a distributed graph, of which no process has all edges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DistGraph {
    pub sources: Vec<u32>,
    pub destinations: Vec<u32>,
    /// The weights of the edges from `sources` and to `destinations`;
    /// `None` if the graph is unweighted.
    pub weights: Option<(Vec<i32>, Vec<i32>)>,
}

impl DistGraph {
    /// Converts ranks from the program. Returns an error if a rank is not below `size`.
    pub fn ranks(ranks: &[i64], size: u32) -> Result<Vec<u32>, TopoError> {
        ranks
            .iter()
            .map(|&rank| {
                let known = u32::try_from(rank).ok().filter(|rank| *rank < size);
                known.ok_or(TopoError::Rank { rank, size })
            })
            .collect()
    }

    /// Returns the edges of a process. `edges` has every edge of the graph once.
    pub fn of(rank: u32, edges: &[Edge], weighted: bool) -> DistGraph {
        DistGraph::of_ends(rank, edges, edges, weighted)
    }

    /// Returns the edges of a process in a graph whose edges are each specified by both ends:
    /// `into` has the edges as their destinations have specified them, `out` as their sources have.
    /// Does not check that both agree.
    pub fn of_ends(rank: u32, into: &[Edge], out: &[Edge], weighted: bool) -> DistGraph {
        let into: Vec<_> = into.iter().filter(|e| e.1 == rank).collect();
        let out: Vec<_> = out.iter().filter(|e| e.0 == rank).collect();
        DistGraph {
            sources: into.iter().map(|e| e.0).collect(),
            destinations: out.iter().map(|e| e.1).collect(),
            weights: weighted.then(|| {
                (
                    into.iter().map(|e| e.2).collect(),
                    out.iter().map(|e| e.2).collect(),
                )
            }),
        }
    }

    /// Returns the edges into this process and the edges out of it.
    /// Without weights, each weight is 0.
    pub fn edges(&self, rank: u32) -> (Vec<Edge>, Vec<Edge>) {
        let none = (Vec::new(), Vec::new());
        let (into, out) = self.weights.as_ref().unwrap_or(&none);
        let weight = |of: &[i32], at: usize| of.get(at).copied().unwrap_or(0);
        let sources = self.sources.iter().enumerate();
        let destinations = self.destinations.iter().enumerate();
        (
            sources
                .map(|(at, from)| (*from, rank, weight(into, at)))
                .collect(),
            destinations
                .map(|(at, to)| (rank, *to, weight(out, at)))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standards_example_has_its_neighbours() {
        // The example of MPI 5.0, section 8.5.4: process 0 has the neighbours 1 and 3, process 1
        // has 0, process 2 has 3, and process 3 has 0 and 2.
        let graph = Graph::new(&[2, 3, 4, 6], &[1, 3, 0, 3, 0, 2]).expect("a graph");
        let all: Vec<_> = (0..4).map(|node| graph.neighbours(node)).collect();
        assert_eq!(all, [Ok(&[1, 3][..]), Ok(&[0]), Ok(&[3]), Ok(&[0, 2])]);
        assert_eq!(
            graph.neighbours(4),
            Err(TopoError::Rank { rank: 4, size: 4 })
        );
    }

    #[test]
    fn a_graph_that_makes_no_sense_is_refused() {
        let falling = Graph::new(&[2, 1], &[0, 1]);
        assert!(matches!(falling, Err(TopoError::Index { node: 1, .. })));
        let stranger = Graph::new(&[1, 2], &[1, 2]);
        assert!(matches!(
            stranger,
            Err(TopoError::Edge { at: 1, node: 2, .. })
        ));
    }

    #[test]
    fn each_process_finds_its_own_edges() {
        let edges = [(0, 1, 5), (1, 0, 6), (2, 1, 7)];
        let mine = DistGraph::of(1, &edges, true);
        assert_eq!((&mine.sources, &mine.destinations), (&vec![0, 2], &vec![0]));
        assert_eq!(mine.weights, Some((vec![5, 7], vec![6])));
        let (into, out) = mine.edges(1);
        assert_eq!(
            (&into[..], &out[..]),
            (&[edges[0], edges[2]][..], &edges[1..2])
        );
        assert_eq!(DistGraph::of_ends(1, &into, &out, true), mine);
    }
}

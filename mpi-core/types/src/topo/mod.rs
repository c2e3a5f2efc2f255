//! Virtual topologies (MPI 5.0, chapter 8) as plain values:
//! the arrangement of the processes of a communicator.
//!
//! A topology defines the neighbours of each process.
//! It does not communicate and has no communicator.
//! If a program allows reordering, [`reorder`] places neighbours near each other.

mod cart;
mod dims;
mod graph;
mod neighbours;
pub mod reorder;
pub mod tree;
pub mod turn;

pub use cart::Cart;
pub use dims::balanced;
pub use graph::{DistGraph, Edge, Graph};
pub use neighbours::Neighbours;

use std::fmt;

/// The topology of a communicator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    Cart(Cart),
    Graph(Graph),
    DistGraph(DistGraph),
}

/// The reason why a topology cannot be created, or a query has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopoError {
    /// The extent of a dimension is not positive.
    Dimension { at: usize, extent: i64 },
    /// The topology needs more processes than the communicator has.
    TooFew { needed: u64, size: u32 },
    /// A coordinate is beyond the end of a dimension that is not periodic.
    Coordinate {
        at: usize,
        coordinate: i64,
        extent: u32,
    },
    /// The topology has no dimension with this number.
    Direction { direction: i64, dimensions: usize },
    /// The topology has no such rank.
    Rank { rank: i64, size: u32 },
    /// The index array of a graph decreases, or does not end at the number of edges.
    Index {
        node: usize,
        index: i64,
        before: i64,
    },
    /// An edge leads to a node that the graph does not have.
    Edge { at: usize, node: i64, nodes: u32 },
}

impl fmt::Display for TopoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dimension { at, extent } => {
                write!(
                    f,
                    "dimension {at} has {extent} processes, which is not positive"
                )
            }
            Self::TooFew { needed, size } => write!(
                f,
                "the topology has {needed} processes, and the communicator only {size}"
            ),
            Self::Coordinate {
                at,
                coordinate,
                extent,
            } => write!(
                f,
                "coordinate {at} is {coordinate}, and dimension {at} goes from 0 to {} and does not wrap around",
                extent.saturating_sub(1)
            ),
            Self::Direction {
                direction,
                dimensions,
            } => write!(
                f,
                "direction is {direction}, and the topology has {dimensions} dimensions, counted from 0"
            ),
            Self::Rank { rank, size } => write!(
                f,
                "rank {rank} is not in the topology, which has ranks 0 to {}",
                size.saturating_sub(1)
            ),
            Self::Index {
                node,
                index,
                before,
            } => write!(
                f,
                "the index of node {node} is {index}, which is less than the {before} before it"
            ),
            Self::Edge { at, node, nodes } => write!(
                f,
                "edge {at} leads to {node}, and the topology has nodes 0 to {}",
                nodes.saturating_sub(1)
            ),
        }
    }
}

impl std::error::Error for TopoError {}

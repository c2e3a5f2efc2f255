//! The initial state of a world: everything that faults can change before power-on.

use super::wiring::Wiring;
use super::{Parameters, Time};
use barrier_board::tree::Tree;

/// A fault injected into a node or a board at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Incident {
    /// The node's processor stops for good; its port keeps the level it drives.
    Die {
        /// The node.
        node: usize,
    },
    /// All lines of the node's port are set by something other than the driver, such as a reset.
    Latch {
        /// The node.
        node: usize,
        /// The level.
        high: bool,
    },
    /// Every flip-flop of this board goes to its power-on level.
    Reset {
        /// The board.
        board: usize,
    },
    /// This board's outputs are not driven and float to this level, as during FPGA configuration.
    Undriven {
        /// The board.
        board: usize,
        /// The level.
        high: bool,
    },
    /// This board's outputs are driven again.
    Driven {
        /// The board.
        board: usize,
    },
}

/// A world before power-on.
#[derive(Debug)]
pub struct Setup {
    /// Times and numbers.
    pub parameters: Parameters,
    /// The tree of boards.
    pub tree: Tree,
    /// The cabling.
    pub wiring: Wiring,
    /// Levels of each node's outward lines before any program has run, one bit per line.
    pub latches: Vec<u8>,
    /// Factor for the duration of a port access, per node.
    pub slowness: Vec<f64>,
    /// Faults with their times.
    pub incidents: Vec<(Time, Incident)>,
    /// Pauses of a board's clock: board, start, end; in order.
    pub pauses: Vec<(usize, Time, Time)>,
}

impl Setup {
    /// Returns a world without faults.
    pub fn new(parameters: Parameters) -> Self {
        let nodes = parameters.nodes;
        let tree = Tree::new(nodes, parameters.boards);
        Self {
            wiring: Wiring::straight(&tree, nodes, parameters.lines()),
            tree,
            parameters,
            latches: vec![0; nodes],
            slowness: vec![1.0; nodes],
            incidents: Vec::new(),
            pauses: Vec::new(),
        }
    }
}

/// The final state of a world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Time at which the last program ended.
    pub at: Time,
    /// Number of releases of the root.
    pub releases: u64,
    /// Nodes whose program waits for an event that will never happen.
    pub stuck: Vec<usize>,
}

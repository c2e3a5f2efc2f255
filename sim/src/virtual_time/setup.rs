//! A world before its power is switched on: everything that faults can change.

use super::board::Tree;
use super::wiring::Wiring;
use super::{Parameters, Time};

/// What befalls a node or the board at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Incident {
    /// The node's processor stops for good; its port keeps the level it drives.
    Die {
        /// The node.
        node: usize,
    },
    /// Something else than the driver sets the node's port, all lines of it, as a reset does.
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
    /// This board's outputs are not driven and float to this level, as while an FPGA is configured.
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

/// A world before its power is switched on.
#[derive(Debug)]
pub struct Setup {
    /// Times and numbers.
    pub parameters: Parameters,
    /// How the boards hang together.
    pub tree: Tree,
    /// What is plugged where.
    pub wiring: Wiring,
    /// Levels of each node's outward lines before any program has run, bit by bit.
    pub latches: Vec<u8>,
    /// How many times as long an access of each node's port takes.
    pub slowness: Vec<f64>,
    /// What befalls nodes and board, and when.
    pub incidents: Vec<(Time, Incident)>,
    /// Of which board, and from when until when, the clock stands still, in order.
    pub pauses: Vec<(usize, Time, Time)>,
}

impl Setup {
    /// Everything as it should be.
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

/// How a world ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// When the last program ended.
    pub at: Time,
    /// How often the board whose output goes to the nodes has released.
    pub releases: u64,
    /// Nodes whose program waits for something that will never happen.
    pub stuck: Vec<usize>,
}

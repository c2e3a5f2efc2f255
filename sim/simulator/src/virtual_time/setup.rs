//! A simulated world before power-on, which faults may change, and its final state.

use super::wiring::Wiring;
use super::{Parameters, Time};
use barrier_board::tree::Tree;

/// A fault injected into a node or a board at an instant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Incident {
    /// The node's processor stops for the rest of the run; its port keeps driving the last level.
    Die {
        /// The node that dies.
        node: usize,
    },
    /// Something other than the driver, such as a reset, sets all lines of the node's port.
    Latch {
        /// The node whose lines are set.
        node: usize,
        /// The level to which the lines are set.
        high: bool,
    },
    /// All flip-flops of this board go to their power-on levels.
    Reset {
        /// The board that is reset.
        board: usize,
    },
    /// This board's outputs are not driven and float to this level, as during FPGA configuration.
    Undriven {
        /// The board whose outputs float.
        board: usize,
        /// The level to which the outputs float.
        high: bool,
    },
    /// This board's outputs are driven again.
    Driven {
        /// The board whose outputs are driven again.
        board: usize,
    },
}

/// A simulated world before power-on.
#[derive(Debug)]
pub struct Setup {
    /// The parameters of the run: hardware, delays, numbers of nodes and barriers.
    pub parameters: Parameters,
    /// The tree of the cascaded boards; a single board is a tree of one.
    pub tree: Tree,
    /// The wires between nodes and boards.
    pub wiring: Wiring,
    /// Levels of each node's outward lines at power-on, one bit per line.
    pub latches: Vec<u8>,
    /// Factor by which a node's port accesses are slower, per node.
    pub slowness: Vec<f64>,
    /// Injected faults, with their times.
    pub incidents: Vec<(Time, Incident)>,
    /// Pauses of a board's clock, as board, start and end, in order of time.
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

/// The final state of a simulated world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// Time at which the last program ended.
    pub at: Time,
    /// Number of releases of the root.
    pub releases: u64,
    /// Nodes whose program waits for an event that never happens.
    pub stuck: Vec<usize>,
}

//! A world before its power is switched on: everything that faults can change.

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
    /// Something else than the driver sets the node's port, as a reset does.
    Latch {
        /// The node.
        node: usize,
        /// The level.
        high: bool,
    },
    /// Every flip-flop of the machine goes to its power-on level.
    Reset,
    /// The machine's outputs are not driven and float to this level, as while an FPGA is configured.
    Undriven {
        /// The level.
        high: bool,
    },
    /// The machine's outputs are driven again.
    Driven,
}

/// A world before its power is switched on.
#[derive(Debug)]
pub struct Setup {
    /// Times and numbers.
    pub parameters: Parameters,
    /// What is plugged where.
    pub wiring: Wiring,
    /// Levels of the nodes' ports before any program has run, as a mask.
    pub latches: u64,
    /// How many times as long an access of each node's port takes.
    pub slowness: Vec<f64>,
    /// What befalls nodes and board, and when.
    pub incidents: Vec<(Time, Incident)>,
    /// From when until when the machine's clock stands still, in order.
    pub pauses: Vec<(Time, Time)>,
}

impl Setup {
    /// Everything as it should be.
    pub fn new(parameters: Parameters) -> Self {
        let nodes = parameters.nodes;
        Self {
            parameters,
            wiring: Wiring::straight(nodes),
            latches: 0,
            slowness: vec![1.0; nodes],
            incidents: Vec::new(),
            pauses: Vec::new(),
        }
    }
}

/// How a world ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// When the last program ended.
    pub at: Time,
    /// How often the machine has released.
    pub releases: u64,
    /// Nodes whose program waits for something that will never happen, as a mask.
    pub stuck: u64,
}

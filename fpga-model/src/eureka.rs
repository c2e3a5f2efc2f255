//! The eureka line: a flag that any node can raise for all nodes,
//! with the number of the node that was first.
//!
//! The line shares the clock of a barrier and has separate wires: one from each node, and two to each node.
//!
//! ```text
//! pin -> stage1 -> stage2 -> filter -> any high? ----------> found -> to all nodes
//!                                   \-> which was first? --> first -> to that node
//! the barrier's level -> has it changed? ----> clears both
//! ```
//!
//! A node raises its wire, and [`LATENCY_EDGES`] edges later the line to all nodes is high.
//! At the same edge the wire to one node goes high:
//! among the nodes whose wires are high at that edge, the node with the lowest number is first.
//! Both wires stay high until the barrier releases, and are low one edge later.
//! All nodes have entered the barrier when it releases, so even a node that polls late sees the line.
//! A node lowers its wire before it enters the barrier, so a new round begins after the barrier.
//!
//! The filter is that of the barrier ([`crate::filter`]);
//! each sample beyond the first adds one edge to the latency.
//! In the RTL the line is the module `eureka_line`.

use crate::filter::{BadFilter, Filter, FilteredMachine};
use crate::{LATENCY_EDGES, MAX_NODES};

/// The flip-flops of the line, except those of the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EurekaRegisters {
    /// First synchroniser stage.
    pub stage1: u64,
    /// Second synchroniser stage.
    pub stage2: u64,
    /// The level of the line to all nodes.
    pub found: bool,
    /// The levels of the wires to the individual nodes; only that of the first node is high.
    pub first: u64,
    /// The barrier's level at the previous edge.
    pub release: bool,
}

/// The eureka line of a board, for a number of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EurekaLine {
    wires: u64,
    /// The filter count at which one more differing sample changes the level of a wire.
    full: u16,
    registers: EurekaRegisters,
    filter: Filter,
}

impl EurekaLine {
    /// Returns the line in its state after power-on: every flip-flop is clear.
    pub fn new(nodes: usize, samples: u16) -> Result<Self, BadFilter> {
        // The limits of nodes and samples are those of the barrier.
        let machine = FilteredMachine::new(nodes, samples)?;
        Ok(Self {
            wires: machine.wires(),
            full: samples - 1,
            registers: EurekaRegisters::default(),
            filter: Filter::default(),
        })
    }

    /// Resets every flip-flop to its power-on level.
    pub fn reset(&mut self) {
        self.registers = EurekaRegisters::default();
        self.filter = Filter::default();
    }

    /// Performs one rising clock edge; returns the level of the line to all nodes after the edge.
    /// `inputs` are the levels at the input pins,
    /// `release` is the level of the barrier, which has the same clock.
    #[inline]
    pub fn step(&mut self, inputs: u64, release: bool) -> bool {
        let says = self.seen();
        self.filter.step(self.registers.stage2, self.full);
        let r = &mut self.registers;
        if release != r.release {
            (r.found, r.first) = (false, 0);
        } else if !r.found {
            r.found = says != 0;
            // Selects the lowest set bit.
            r.first = says & says.wrapping_neg();
        }
        r.release = release;
        r.stage2 = r.stage1;
        r.stage1 = inputs & self.wires;
        r.found
    }

    /// Simulates `edges` steps with constant inputs and a constant level of the barrier.
    ///
    /// If an edge changes nothing, no further edge with the same inputs does,
    /// so a few steps suffice for any number of edges.
    pub fn fast_forward(&mut self, inputs: u64, release: bool, edges: u64) -> bool {
        for _ in 0..edges {
            let before = *self;
            self.step(inputs, release);
            if *self == before {
                break;
            }
        }
        self.found()
    }

    /// Returns the line with these flip-flops and a cleared filter;
    /// a filter of one sample has no flip-flops.
    #[must_use]
    pub fn load(&self, registers: EurekaRegisters) -> Self {
        Self {
            registers,
            filter: Filter::default(),
            ..*self
        }
    }

    /// Returns the number of edges from the rise of a
    /// node's wire at the pin to the rise of the line.
    pub const fn latency_edges(&self) -> u64 {
        LATENCY_EDGES + self.full as u64
    }

    /// Returns true if the line is high because a node has raised it.
    pub const fn found(&self) -> bool {
        self.registers.found
    }

    /// Returns the first node that raised the line; `None` while it is low.
    pub const fn first(&self) -> Option<usize> {
        match self.registers.first {
            0 => None,
            first => Some(first.trailing_zeros() as usize),
        }
    }

    /// Returns the filtered levels that the line evaluates at the next edge.
    pub fn seen(&self) -> u64 {
        self.filter.seen(self.registers.stage2, self.full)
    }

    /// Returns the number of nodes, at most [`MAX_NODES`].
    pub const fn nodes(&self) -> usize {
        MAX_NODES - self.wires.leading_zeros() as usize
    }

    /// Returns the flip-flops except those of the filter; [`load`](Self::load) is the inverse.
    pub const fn registers(&self) -> EurekaRegisters {
        self.registers
    }
}

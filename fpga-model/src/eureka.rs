//! The eureka line: one of the nodes has found it, and all hear so.
//!
//! It lies beside a barrier and has wires of its own, one from each node and two to each.
//!
//! ```text
//! pin -> stage1 -> stage2 -> filter -> any high? ----------> found -> to all nodes
//!                                   \-> which was first? --> first -> to that node
//! the barrier's level -> has it changed? ----> clears both
//! ```
//!
//! A node says so by raising its wire, and the line to all nodes is high [`LATENCY_EDGES`] edges later.
//! With it the wire to one node is high, which has won: that with the lowest number of those seen at that edge.
//! Both stay until the barrier releases, which is when all have entered it, so no node misses it, however late it looks;
//! they are low an edge later. A node lowers its wire before it enters the barrier, so behind it a new round begins.
//!
//! The filter is that of the barrier ([`crate::filter`]); each sample beyond the first adds an edge.
//! In the RTL: `eureka_line`.

use crate::filter::{BadFilter, Filter, FilteredMachine};
use crate::{LATENCY_EDGES, MAX_NODES};

/// The flip-flops of the line, beside those of the filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EurekaRegisters {
    /// First synchroniser stage.
    pub stage1: u64,
    /// Second synchroniser stage.
    pub stage2: u64,
    /// The line to all nodes.
    pub found: bool,
    /// The wires to the nodes of which one was first.
    pub first: u64,
    /// The barrier's level at the last edge.
    pub release: bool,
}

/// The eureka line of some nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EurekaLine {
    wires: u64,
    /// The count at which one further sample is enough.
    full: u16,
    registers: EurekaRegisters,
    filter: Filter,
}

impl EurekaLine {
    /// As it is after power-on: every flip-flop is clear.
    pub fn new(nodes: usize, samples: u16) -> Result<Self, BadFilter> {
        // What cannot be built is the same.
        let machine = FilteredMachine::new(nodes, samples)?;
        Ok(Self {
            wires: machine.wires(),
            full: samples - 1,
            registers: EurekaRegisters::default(),
            filter: Filter::default(),
        })
    }

    /// The reset line: every flip-flop to its power-on level.
    pub fn reset(&mut self) {
        self.registers = EurekaRegisters::default();
        self.filter = Filter::default();
    }

    /// One rising clock edge with these levels at the input pins, and this level of the barrier, which has the same clock;
    /// returns the line to all nodes after it.
    #[inline]
    pub fn step(&mut self, inputs: u64, release: bool) -> bool {
        let says = self.seen();
        self.filter.step(self.registers.stage2, self.full);
        let r = &mut self.registers;
        if release != r.release {
            (r.found, r.first) = (false, 0);
        } else if !r.found {
            r.found = says != 0;
            // The lowest bit that is set.
            r.first = says & says.wrapping_neg();
        }
        r.release = release;
        r.stage2 = r.stage1;
        r.stage1 = inputs & self.wires;
        r.found
    }

    /// Does `edges` steps with constant inputs and a constant level of the barrier.
    ///
    /// A synchronous machine that one edge does not change rests until its inputs change, so this takes few steps however
    /// many the edges are.
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

    /// The line with these flip-flops, and those of its filter clear; a filter of one sample has none.
    #[must_use]
    pub fn load(&self, registers: EurekaRegisters) -> Self {
        Self {
            registers,
            filter: Filter::default(),
            ..*self
        }
    }

    /// Edges from a wire's rise at the pin to the line's.
    pub const fn latency_edges(&self) -> u64 {
        LATENCY_EDGES + self.full as u64
    }

    /// Whether any node has found it.
    pub const fn found(&self) -> bool {
        self.registers.found
    }

    /// Which node was the first.
    pub const fn first(&self) -> Option<usize> {
        match self.registers.first {
            0 => None,
            first => Some(first.trailing_zeros() as usize),
        }
    }

    /// What the line decides on at the next edge.
    pub fn seen(&self) -> u64 {
        self.filter.seen(self.registers.stage2, self.full)
    }

    /// How many nodes it has, at most [`MAX_NODES`].
    pub const fn nodes(&self) -> usize {
        MAX_NODES - self.wires.leading_zeros() as usize
    }

    /// The flip-flops, but for those of the filter; to be stored and put back by [`load`](Self::load).
    pub const fn registers(&self) -> EurekaRegisters {
        self.registers
    }
}

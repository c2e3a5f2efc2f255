//! The served board of version 1: the barrier and its eureka line.
//!
//! Only writes step the board: with constant wires the barrier is stable after [`LATENCY_EDGES`] edges,
//! and the eureka line is stable one edge later.

use super::super::frame::{Eureka, Request, VERSION};
use super::{Board, Rested, Written, nanoseconds};
use crate::live::Snapshot;
use fpga_model::eureka::EurekaLine;
use fpga_model::{BadNodeCount, LATENCY_EDGES, ToggleMachine};
use std::time::Duration;

/// The barrier and its eureka line, which share a clock.
#[derive(Debug)]
pub(in crate::served) struct Toggle {
    machine: ToggleMachine,
    /// Levels of the wires to the barrier.
    inputs: u64,
    line: EurekaLine,
    /// Levels of the wires to the eureka line.
    says: u64,
}

impl Toggle {
    pub fn new(nodes: usize) -> Result<Self, BadNodeCount> {
        let machine = ToggleMachine::new(nodes)?;
        // The wires to the line have no filter, like those to the barrier.
        let line = EurekaLine::new(nodes, 1).map_err(|_| BadNodeCount(nodes))?;
        Ok(Self {
            machine,
            inputs: 0,
            line,
            says: 0,
        })
    }

    /// Steps barrier and eureka line until they are stable.
    fn settle(&mut self) {
        // The eureka line sees a release one edge later, hence the extra edge.
        for _ in 0..=LATENCY_EDGES {
            let level = self.machine.outputs() != 0;
            self.line.step(self.says, level);
            self.machine.step(self.inputs);
        }
    }
}

impl Board for Toggle {
    fn version(&self) -> u8 {
        VERSION
    }

    fn nodes(&self) -> usize {
        self.machine.nodes()
    }

    fn snapshot(&mut self, _node: Option<usize>, now: Duration) -> Snapshot {
        Snapshot {
            at_ns: nanoseconds(now),
            inputs: self.inputs,
            outputs: self.machine.outputs(),
            releases: self.releases(),
        }
    }

    fn releases(&self) -> u64 {
        self.machine.releases()
    }

    fn write(&mut self, node: usize, request: Request, _now: Duration) -> Written {
        let before = self.releases();
        match request {
            Request::Withdraw { seen, .. } if seen != before => {}
            Request::Write { high } | Request::Withdraw { high, .. } => {
                set(&mut self.inputs, node, high);
                self.settle();
            }
            Request::Say { high } => {
                set(&mut self.says, node, high);
                self.settle();
            }
            _ => return Written::Foreign,
        }
        Written::Done {
            released: self.releases() != before,
        }
    }

    fn rest(&mut self, node: usize, _now: Duration) -> Rested {
        let idle = self.machine.outputs() != 0;
        let inside = (self.inputs >> node & 1 == 1) != idle;
        set(&mut self.inputs, node, idle);
        set(&mut self.says, node, false);
        self.settle();
        Rested {
            inside,
            level: Some(idle),
        }
    }

    fn eureka(&self) -> Option<Eureka> {
        Some(Eureka {
            found: self.line.found(),
            first: self.line.registers().first,
        })
    }
}

/// Sets the level of a node's wire in the mask `wires`.
fn set(wires: &mut u64, node: usize, high: bool) {
    *wires = *wires & !(1 << node) | u64::from(high) << node;
}

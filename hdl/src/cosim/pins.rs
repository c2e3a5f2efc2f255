//! A simulated RTL barrier in this process, with embedded-hal pins.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use embedded_hal::digital::{ErrorType, InputPin, OutputPin};

use super::object::Barrier;
use super::{CosimError, Design};
use crate::cache::Cache;

/// A toggle barrier, simulated as RTL, whose nodes are pins.
#[derive(Clone)]
pub struct RtlBoard(Arc<Mutex<Inner>>);

struct Inner {
    barrier: Barrier,
    inputs: u64,
    outputs: u64,
    releases: u64,
    edges_per_access: u64,
}

impl RtlBoard {
    /// Builds the toggle barrier for `nodes` nodes and powers it on.
    pub fn build(
        nodes: usize,
        edges_per_access: u64,
        cache: &Cache,
    ) -> Result<RtlBoard, CosimError> {
        Ok(RtlBoard(Arc::new(Mutex::new(Inner {
            barrier: Barrier::build(Design::toggle_barrier(), nodes, cache)?,
            inputs: 0,
            outputs: 0,
            releases: 0,
            edges_per_access,
        }))))
    }

    /// Returns the output pin and the input pin of one node.
    pub fn wires(&self, node: usize) -> (RtlPin, RtlPin) {
        let pin = RtlPin {
            board: self.clone(),
            node,
        };
        (pin.clone(), pin)
    }

    /// Returns the number of releases (changes of the RTL's output).
    pub fn releases(&self) -> u64 {
        self.lock().releases
    }

    /// Runs `edges` clock edges.
    pub fn clock(&self, edges: u64) {
        self.lock().clock(edges);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn clock(&mut self, edges: u64) {
        let (outputs, releases) = self.barrier.clock(self.inputs, edges);
        self.outputs = outputs;
        self.releases += releases;
    }
}

/// A pin of a node: as an output it drives the arrival, as an input it reads the release.
#[derive(Clone)]
pub struct RtlPin {
    board: RtlBoard,
    node: usize,
}

impl RtlPin {
    fn drive(&self, high: bool) {
        let mut board = self.board.lock();
        let bit = 1 << self.node;
        board.inputs = board.inputs & !bit | if high { bit } else { 0 };
        let edges = board.edges_per_access;
        board.clock(edges);
    }
}

impl ErrorType for RtlPin {
    type Error = Infallible;
}

impl OutputPin for RtlPin {
    fn set_low(&mut self) -> Result<(), Infallible> {
        self.drive(false);
        Ok(())
    }

    fn set_high(&mut self) -> Result<(), Infallible> {
        self.drive(true);
        Ok(())
    }
}

impl InputPin for RtlPin {
    fn is_high(&mut self) -> Result<bool, Infallible> {
        let mut board = self.board.lock();
        let edges = board.edges_per_access;
        board.clock(edges);
        Ok(board.outputs >> self.node & 1 == 1)
    }

    fn is_low(&mut self) -> Result<bool, Infallible> {
        self.is_high().map(|high| !high)
    }
}

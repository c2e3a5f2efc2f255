//! The RTL of version 1 as a next-state function: one clock edge from given flip-flops.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fpga_model::{Gates, Registers};

use super::flip_flops::FlipFlops;
use super::object::Barrier;
use super::{CosimError, Design};
use crate::cache::Cache;
use crate::random::Random;

/// Number of edges of the trial that detects hidden state; the trial takes under a millisecond.
const TRIAL: usize = 2000;

/// The RTL as a next-state function; the caller stores the state of the flip-flops.
pub struct Rtl {
    barrier: Mutex<Barrier>,
    edges: AtomicU64,
}

impl Rtl {
    /// Builds the design for `nodes` nodes (or takes it from the cache), loads it and checks it.
    pub fn build(design: Design, nodes: usize, cache: &Cache) -> Result<Rtl, CosimError> {
        let mut whole = Barrier::build(design.clone(), nodes, cache)?;
        let mut parted = Barrier::build(design, nodes, cache)?;
        check(&mut whole, &mut parted)?;
        Ok(Rtl {
            barrier: Mutex::new(parted),
            edges: AtomicU64::new(0),
        })
    }

    /// Returns the number of edges evaluated so far.
    pub fn edges(&self) -> u64 {
        self.edges.load(Ordering::Relaxed)
    }
}

impl Gates for Rtl {
    fn edge(&self, before: Registers, inputs: u64) -> Registers {
        let Registers {
            stage1,
            stage2,
            output,
            releases,
        } = before;
        let mut barrier = self.barrier.lock().unwrap_or_else(PoisonError::into_inner);
        let after = barrier.edge(
            FlipFlops {
                stage1,
                stage2,
                output,
            },
            inputs,
        );
        self.edges.fetch_add(1, Ordering::Relaxed);
        Registers {
            stage1: after.stage1,
            stage2: after.stage2,
            output: after.output,
            releases,
        }
    }
}

/// Runs one stimulus on the barriers `whole` and `parted`. Before each of its edges, `parted` also runs an edge
/// from random flip-flops; then its known flip-flops are set to those of `whole`.
/// If the next states differ, the design has state outside the known flip-flops.
fn check(whole: &mut Barrier, parted: &mut Barrier) -> Result<(), CosimError> {
    let wires = whole.wires();
    let mut random = Random::default();
    let mut next = || random.next_u64();
    let (mut now, mut inputs) = (whole.flip_flops(), 0);
    for edge in 1..=TRIAL {
        // Nodes that have not arrived enter at random; sometimes all nodes enter, or some withdraw their arrivals.
        inputs ^= next() & !(inputs ^ now.output) & wires;
        match next() % 8 {
            0 => inputs ^= next() & next() & wires,
            1 => inputs = !now.output & wires,
            _ => {}
        }
        parted.edge(
            FlipFlops {
                stage1: next() & wires,
                stage2: next() & wires,
                output: if next() & 1 == 0 { 0 } else { wires },
            },
            next() & wires,
        );
        let after = parted.edge(now, inputs);
        let (outputs, _) = whole.clock(inputs, 1);
        if outputs != 0 && outputs != wires {
            return Err(CosimError::TornOutputs { edge, outputs });
        }
        now = whole.flip_flops();
        if after != now {
            return Err(CosimError::HiddenState { edge });
        }
    }
    Ok(())
}

//! The RTL of version 2 as a next-state function: one clock edge from given flip-flops.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fpga_model::channels::{ChannelGates, ChannelMachine, Pins};

use super::flip_flops::{ChannelFlipFlops, Outputs};
use super::object::Channels;
use super::{ChannelDesign, CosimError};
use crate::cache::Cache;
use crate::random::Random;

/// Number of edges of the trial that detects hidden state; the trial takes some milliseconds.
const TRIAL: usize = 2000;

/// The RTL of version 2 as a next-state function; the caller stores the state of the flip-flops.
pub struct ChannelRtl {
    board: Mutex<Channels>,
    edges: AtomicU64,
}

impl ChannelRtl {
    /// Builds the design for `nodes` nodes (or takes it from the cache), loads it and checks it.
    pub fn build(
        design: ChannelDesign,
        nodes: usize,
        cache: &Cache,
    ) -> Result<ChannelRtl, CosimError> {
        let mut whole = Channels::build(design.clone(), nodes, cache)?;
        let mut parted = Channels::build(design, nodes, cache)?;
        check(&mut whole, &mut parted)?;
        Ok(ChannelRtl {
            board: Mutex::new(parted),
            edges: AtomicU64::new(0),
        })
    }

    /// Returns the number of edges evaluated so far.
    pub fn edges(&self) -> u64 {
        self.edges.load(Ordering::Relaxed)
    }
}

impl ChannelGates for ChannelRtl {
    fn edge(&self, before: &ChannelMachine, pins: &Pins) -> ChannelMachine {
        let mut board = self.board.lock().unwrap_or_else(PoisonError::into_inner);
        let (after, _) = board.edge(&ChannelFlipFlops::of(before), pins);
        self.edges.fetch_add(1, Ordering::Relaxed);
        after.after(before)
    }
}

/// Runs one stimulus on the boards `whole` and `parted`. Before each of its edges, `parted` also runs an edge
/// of another stimulus; then its known flip-flops are set to those of `whole`.
/// If the next states differ, the design has state outside the known flip-flops.
///
/// The outputs must also equal those that the model computes from the same flip-flops,
/// because simulated nodes read the model's outputs and not those of the RTL.
fn check(whole: &mut Channels, parted: &mut Channels) -> Result<(), CosimError> {
    let mut now = whole.blank();
    let wires = now.wires();
    let mut random = Random::default();
    let (mut pins, mut elsewhere) = (Pins::default(), Pins::default());
    let mut other = now;
    for edge in 1..=TRIAL {
        // On `parted`, the stimulus of the additional edges differs from the trial's:
        // its lines change at every edge, the trial's only at every eighth.
        stir(&mut elsewhere, wires, &mut random);
        let (disturbed, _) = parted.edge(&ChannelFlipFlops::of(&other), &elsewhere);
        other = disturbed.after(&other);
        if edge % 8 == 1 {
            stir(&mut pins, wires, &mut random);
        }
        let (after, _) = parted.edge(&ChannelFlipFlops::of(&now), &pins);
        let outputs = whole.clock(&pins);
        let alone = whole.flip_flops();
        now = alone.after(&now);
        let expected = Outputs::of(&now);
        if outputs != expected {
            return Err(CosimError::OtherOutputs { edge });
        }
        if after != alone {
            return Err(CosimError::HiddenChannelState { edge });
        }
    }
    Ok(())
}

/// Changes input lines at random.
/// All nodes are members of channel 0 after power-on,
/// so half of the calls set all arrival lines of channel 0 to one level, to complete barriers.
fn stir(pins: &mut Pins, wires: u64, random: &mut Random) {
    for arrive in &mut pins.arrive {
        *arrive ^= random.next_u64() & random.next_u64() & wires;
    }
    match random.next_u64() % 4 {
        0 => pins.arrive[0] = wires,
        1 => pins.arrive[0] = 0,
        _ => {}
    }
    // Usually only one node has a high select, so that its frames are often complete.
    pins.select = if random.next_u64().is_multiple_of(16) {
        random.next_u64() & wires
    } else {
        1
    };
    pins.clock ^= wires;
    pins.data = random.next_u64() & wires;
}

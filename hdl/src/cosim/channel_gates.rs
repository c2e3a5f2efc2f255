//! The RTL of version 2 as gates: one edge from any flip-flops to the next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use fpga_model::channels::{ChannelGates, ChannelMachine, Pins};

use super::flip_flops::{ChannelFlipFlops, Outputs};
use super::object::Channels;
use super::{ChannelDesign, CosimError, Random};
use crate::cache::Cache;

/// Edges of the trial that looks for hidden state; they take some milliseconds.
const TRIAL: usize = 2000;

/// The RTL of version 2 as gates: the flip-flops are the caller's.
pub struct ChannelRtl {
    board: Mutex<Channels>,
    edges: AtomicU64,
}

impl ChannelRtl {
    /// Translates the design for so many nodes, unless the cache has it, loads it and checks it.
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

    /// How many edges it has evaluated.
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

/// Plays one stimulus to a board that is left alone and to one that does other things between any two edges:
/// if they differ, there is state that is not in the flip-flops we know.
///
/// The outputs have to follow from the flip-flops as the model's do, for it is by the model that nodes read them.
fn check(whole: &mut Channels, parted: &mut Channels) -> Result<(), CosimError> {
    let mut now = whole.blank();
    let wires = now.wires();
    let mut random = Random::default();
    let (mut pins, mut elsewhere) = (Pins::default(), Pins::default());
    let mut other = now;
    for edge in 1..=TRIAL {
        // The board that is disturbed leads another life: its lines change wildly, those of the trial often rest.
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

/// Moves some lines; in channel 0, whose members are all after power-on, now and then those of all.
fn stir(pins: &mut Pins, wires: u64, random: &mut Random) {
    for arrive in &mut pins.arrive {
        *arrive ^= random.next() & random.next() & wires;
    }
    match random.next() % 4 {
        0 => pins.arrive[0] = wires,
        1 => pins.arrive[0] = 0,
        _ => {}
    }
    // Mostly one node speaks, so that it gets far.
    pins.select = if random.next().is_multiple_of(16) {
        random.next() & wires
    } else {
        1
    };
    pins.clock ^= wires;
    pins.data = random.next() & wires;
}

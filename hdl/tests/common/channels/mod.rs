//! The stimulus of version 2, applied to both the model and the RTL, its coverage, and the comparison.

mod compare;
mod corners;
mod coverage;
mod directed;
mod reads;

pub use compare::{compare, text};
pub use corners::{
    drops, every_code, exact_limits, handovers, sessions, unquiet_claims, wrong_checks,
};
pub use coverage::Coverage;
pub use directed::{directed, every_channel, saturating};
pub use reads::{counts, every_bit, every_state, long_barrier, wait};

use fpga_model::channels::frame::{Body, FRAME_BITS, Operation};
use fpga_model::channels::{ChannelMachine, Pins};
use hdl::random::Random;
use std::collections::VecDeque;

/// The lease has 2^8 edges, short enough to expire during the stimulus.
pub const LEASE_BITS: u32 = 8;

/// The design's inputs before one edge.
#[derive(Clone, Copy)]
pub struct Edge {
    pub reset: bool,
    pub pins: Pins,
}

pub fn apply(machine: &mut ChannelMachine, edge: &Edge) {
    if edge.reset {
        machine.reset();
    } else {
        machine.step(&edge.pins);
    }
}

/// Levels of a node's serial lines, and the number of edges for which they are held.
#[derive(Clone, Copy)]
struct Write {
    select: bool,
    clock: bool,
    data: bool,
    edges: u64,
}

/// What a random stimulus consists of.
#[derive(Clone, Copy)]
pub struct Mix {
    /// Changes the random numbers.
    pub seed: u64,
    /// Whether most requests read a state.
    pub reads: bool,
    /// The mean number of edges between resets.
    pub reset: u64,
}

impl Mix {
    const USUAL: Mix = Mix {
        seed: 0,
        reads: false,
        reset: 20_000,
    };
}

/// Returns the writes of a random session of one node, which may be faulty in every way.
fn session(
    random: &mut Random,
    machine: &ChannelMachine,
    node: usize,
    mix: Mix,
) -> VecDeque<Write> {
    let channels = u64::from(machine.identity().channels);
    // One call in ten also permits the first channel number that does not exist.
    let end = channels + u64::from(random.one_in(10));
    let channel = random.below(end);
    let mask = machine
        .channel(channel as usize)
        .map_or(0, |channel| channel.mask);
    let late = machine
        .channel(channel as usize)
        .map_or(0, |channel| channel.late);
    let code = match random.below(16) {
        _ if mix.reads && random.one_in(2) => 4 + random.below(5) as u8,
        0..7 => Operation::SetMask as u8,
        7..11 => Operation::SetLimit as u8,
        11 => Operation::Identify as u8,
        12 => Operation::ReadMask as u8,
        13 => Operation::ReadArrived as u8,
        14 => Operation::ReadLate as u8,
        15 if random.one_in(2) => Operation::Drop as u8,
        _ => random.below(16) as u8,
    };
    let value = match random.below(8) {
        0 => random.next_u64(),
        1 => mask,
        2.. if code == Operation::Drop as u8 => late,
        _ if code == Operation::SetLimit as u8 => random.below(60),
        2..6 if mask != 0 => 0,
        _ => random.next_u64() & machine.wires() | u64::from(!random.one_in(8)) << node,
    };
    let body = Body {
        code,
        channel: channel as u8,
        value,
    };
    let mut frame = body.frame();
    if random.one_in(12) {
        frame ^= 1 << random.below(u64::from(FRAME_BITS));
    }
    let aligned = frame << (128 - FRAME_BITS);
    let bits = match random.one_in(16) {
        true => random.below(u64::from(2 * FRAME_BITS)),
        false => u64::from(2 * FRAME_BITS),
    };
    // The filter needs four samples, so a clock level of three edges is not seen; with a fast clock the data line may be late.
    let edges = if random.one_in(16) {
        3
    } else {
        4 + random.below(3)
    };
    let write = |select, clock, data| Write {
        select,
        clock,
        data,
        edges,
    };
    let mut writes = VecDeque::from([write(false, random.one_in(10), false); 2]);
    writes.push_back(write(true, false, false));
    for bit in 0..bits {
        // While the reply is shifted out, the data line is low.
        let rest = aligned.checked_shl(bit as u32);
        let data = rest.is_some_and(|rest| rest >> 127 == 1);
        writes.push_back(write(true, true, data));
        writes.push_back(write(true, false, data));
    }
    if random.one_in(16) {
        // The node sends nothing for longer than the lease.
        writes.extend([write(true, false, false); 80]);
    }
    writes.extend([write(false, false, false); 3]);
    writes
}

/// Returns the inputs of a board: randomly chosen nodes program channels while others arrive, with pulses, pauses and resets.
pub fn random(blank: ChannelMachine, edges: usize) -> Vec<Edge> {
    random_mix(blank, edges, Mix::USUAL)
}

/// Like [`random`], with another mix.
pub fn random_mix(blank: ChannelMachine, edges: usize, mix: Mix) -> Vec<Edge> {
    let nodes = blank.wires().count_ones() as usize;
    let mut random = Random(0x2545_f491_4f6c_dd1d ^ nodes as u64 ^ mix.seed << 8);
    let mut machine = blank;
    let mut sessions: Vec<VecDeque<Write>> = vec![VecDeque::new(); nodes];
    let mut pins = Pins::default();
    let mut calm = 0u64;
    let mut made = Vec::with_capacity(edges);
    for number in 0..edges {
        if number % 512 == 0 {
            // The nodes in this mask do not arrive, because a channel can be programmed only while its nodes do not arrive.
            calm = random.next_u64() | random.next_u64() | random.next_u64();
        }
        if random.one_in(600) || sessions.iter().all(VecDeque::is_empty) {
            let node = random.below(nodes as u64) as usize;
            if sessions[node].is_empty() {
                sessions[node] = session(&mut random, &machine, node, mix);
            }
        }
        for (node, writes) in sessions.iter_mut().enumerate() {
            let Some(write) = writes.front_mut() else {
                continue;
            };
            for (lines, level) in [
                (&mut pins.select, write.select),
                (&mut pins.clock, write.clock),
                (&mut pins.data, write.data),
            ] {
                *lines = *lines & !(1 << node) | u64::from(level) << node;
            }
            write.edges -= 1;
            if write.edges == 0 {
                writes.pop_front();
            }
        }
        for (number, lines) in pins.arrive.iter_mut().enumerate() {
            let Some(channel) = machine.channel(number) else {
                continue;
            };
            let level = if channel.level { machine.wires() } else { 0 };
            match random.below(64) {
                _ if calm >> number & 1 == 1 => *lines = level,
                // All lines take the channel's level, or all nodes arrive, or some arrive, or some withdraw.
                0 => *lines = level,
                1 => *lines = !level & machine.wires(),
                2..5 => *lines ^= random.next_u64() & !(*lines ^ level) & machine.wires(),
                5 if random.one_in(16) => *lines ^= random.next_u64() & machine.wires(),
                _ => {}
            }
        }
        let mut edge = Edge {
            reset: random.one_in(mix.reset),
            pins,
        };
        if random.one_in(1000) {
            // A pulse of one sample on a random line.
            let node = 1 << random.below(nodes as u64);
            match random.below(3) {
                0 => edge.pins.select ^= node,
                1 => edge.pins.clock ^= node,
                _ => edge.pins.data ^= node,
            }
        }
        apply(&mut machine, &edge);
        made.push(edge);
    }
    made
}

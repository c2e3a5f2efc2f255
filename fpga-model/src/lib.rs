//! The cycle-accurate model of the toggle barrier, which is the reference for the RTL.
//!
//! # The machine
//!
//! Every node drives one wire to the barrier and reads one wire from it.
//! All wires from the barrier have the same level.
//! A node enters by toggling its own wire, and may leave when the barrier's wire has followed.
//! This is the hardware of Hoefler, Squyres, Mehlan, Mietke and Rehm,
//! "Implementing a Hardware-based Barrier in Open MPI", Chemnitz 2005:
//!
//! ```text
//!            +--------+   +--------+   +----------------------+   +--------+
//! wire 0 --->| stage1 |-->| stage2 |-->|                      |   |        |--> wire 0
//! wire 1 --->|   :    |-->|   :    |-->| all differ from out? |-->| output |--> wire 1
//!   :        |   :    |   |   :    |   |     then toggle      |   |        |     :
//! wire N-1 ->|        |-->|        |-->|                      |   |        |--> wire N-1
//!            +--------+   +--------+   +----------------------+   +--------+
//! ```
//!
//! Two flip-flops per wire synchronise the asynchronous arrival to the clock domain.
//! The two-state machine is one flip-flop, which is also the registered output:
//! in state 0 it waits for all ones, in state 1 for all zeros,
//! so both states have the same condition: `every synchronised wire differs from the output`.
//!
//! # Latency, cycle by cycle
//!
//! Let the last arrival be stable at its pin before clock edge 1.
//!
//! | edge | action                                    | pins of the barrier |
//! |------|-------------------------------------------|---------------------|
//! | 1    | `stage1` samples the arrival              | old level           |
//! | 2    | `stage2` samples `stage1`                 | old level           |
//! | 3    | every wire differs from the output: toggle | **new level**       |
//!
//! So a release appears [`LATENCY_EDGES`] edges after the last arrival.
//! At 25.175 MHz that is 79 to 119 ns, depending on the phase of the arrival within the clock period.
//!
//! # State
//!
//! A [`ToggleMachine`] is a plain value without shared or hidden state.
//! [`Registers`] are its flip-flops, which can be stored elsewhere (the simulator keeps them in shared memory) and loaded again.
//!
//! [`filter::FilteredMachine`] is the same machine with a glitch filter on each wire.
//! The flag line next to the barrier, which one node raises to notify all others, is [`eureka::EurekaLine`].
//! Version 2, several barriers among chosen nodes, is a separate machine: [`channels`].

#![no_std]
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod channels;
pub mod eureka;
pub mod filter;

use core::fmt;

/// Frequency of the oscillator of the ALTERA UP1 board: one edge every 39.72 ns.
pub const CLOCK_HZ: u64 = 25_175_000;

/// Maximum number of wire pairs, limited by the bits of a mask.
pub const MAX_NODES: usize = 64;

/// Number of clock edges from the last arrival at the pin to the release at the output.
/// With constant inputs nothing changes after this number of edges.
pub const LATENCY_EDGES: u64 = 3;

/// The flip-flops of the machine, and the number of releases, which the RTL does not have.
///
/// In a mask, bit `n` belongs to node `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    /// First synchroniser stage.
    pub stage1: u64,
    /// Second synchroniser stage: the input of the two-state machine.
    pub stage2: u64,
    /// The output flip-flop, copied to all existing wires: all bits are zeros or all are ones.
    pub output: u64,
    /// The number of releases: how many times the output has toggled since power-on.
    pub releases: u64,
}

/// A replacement of [`ToggleMachine::step`] that computes clock edges in another way,
/// for example by the RTL in Verilator (`hdl::cosim`).
///
/// The computation is a pure function: the whole state is in the registers.
pub trait Gates: Sync {
    /// Returns the flip-flops after one rising clock edge with these levels at the input pins.
    /// The number of releases is returned unchanged; the caller updates it.
    fn edge(&self, before: Registers, inputs: u64) -> Registers;
}

/// The error for a number of nodes that is not from 1 to [`MAX_NODES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadNodeCount(pub usize);

impl fmt::Display for BadNodeCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "a barrier of {} nodes cannot be built: it has 1 to {MAX_NODES} wire pairs",
            self.0
        )
    }
}

impl core::error::Error for BadNodeCount {}

/// The toggle barrier of a number of nodes, each with a wire to the barrier and a wire from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToggleMachine {
    wires: u64,
    registers: Registers,
}

impl ToggleMachine {
    /// Returns the machine in its state after power-on: FPGA configuration clears every flip-flop.
    pub const fn new(nodes: usize) -> Result<Self, BadNodeCount> {
        if nodes == 0 || nodes > MAX_NODES {
            return Err(BadNodeCount(nodes));
        }
        let registers = Registers {
            stage1: 0,
            stage2: 0,
            output: 0,
            releases: 0,
        };
        Ok(Self {
            wires: u64::MAX >> (MAX_NODES - nodes),
            registers,
        })
    }

    /// Returns the machine with these flip-flops, restricted to the existing wires.
    /// All outputs come from one flip-flop;
    /// an output word with both zeros and ones is treated as high.
    #[inline]
    pub const fn load(self, registers: Registers) -> Self {
        let Self { wires, .. } = self;
        let Registers {
            stage1,
            stage2,
            output,
            releases,
        } = registers;
        let (stage1, stage2) = (stage1 & wires, stage2 & wires);
        let output = if output & wires == 0 { 0 } else { wires };
        Self {
            wires,
            registers: Registers {
                stage1,
                stage2,
                output,
                releases,
            },
        }
    }

    /// Resets every flip-flop to its power-on level; the number of releases does not change.
    pub const fn reset(&mut self) {
        self.registers = Registers {
            stage1: 0,
            stage2: 0,
            output: 0,
            releases: self.registers.releases,
        };
    }

    /// Performs one rising clock edge with these levels at the input pins; returns the levels at the output pins after it.
    #[inline]
    pub const fn step(&mut self, inputs: u64) -> u64 {
        let Self {
            wires,
            registers: r,
        } = self;
        // The right-hand sides are values before the edge, as in a clocked process of an HDL.
        let toggle = (r.stage2 ^ r.output == *wires) as u64;
        r.output ^= toggle.wrapping_neg() & *wires;
        r.releases += toggle;
        r.stage2 = r.stage1;
        r.stage1 = inputs & *wires;
        r.output
    }

    /// Simulates exactly `cycles` steps with constant inputs, in constant time.
    #[inline]
    pub fn fast_forward(&mut self, inputs: u64, cycles: u64) -> u64 {
        self.fast_forward_with(inputs, cycles, |_, _| ())
    }

    /// Like [`fast_forward`](Self::fast_forward),
    /// and calls `on_release(edge, outputs)` for every release;
    /// the first edge has number 1.
    ///
    /// The function steps at most [`LATENCY_EDGES`] times.
    /// After two edges both synchroniser stages have the value `inputs`;
    /// the third edge compares this value with the output.
    /// If the machine then toggles, the output equals the inputs;
    /// if it does not, some input equals the output.
    /// In both cases it cannot toggle at a later edge, so the remaining edges change nothing.
    #[inline]
    pub fn fast_forward_with(
        &mut self,
        inputs: u64,
        cycles: u64,
        mut on_release: impl FnMut(u64, u64),
    ) -> u64 {
        for edge in 1..=cycles.min(LATENCY_EDGES) {
            let before = self.registers.releases;
            self.step(inputs);
            if self.registers.releases != before {
                on_release(edge, self.registers.output);
            }
        }
        self.registers.output
    }

    /// Returns the number of edges after which the output next toggles if the inputs stay constant; `None` if it never does.
    pub fn edges_to_release(&self, inputs: u64) -> Option<u64> {
        let mut first = None;
        self.clone()
            .fast_forward_with(inputs, LATENCY_EDGES, |edge, _| {
                first = first.or(Some(edge))
            });
        first
    }

    /// Returns true if no further edge changes anything while the inputs stay constant.
    #[inline]
    pub const fn is_settled(&self, inputs: u64) -> bool {
        let Registers {
            stage1,
            stage2,
            output,
            ..
        } = self.registers;
        let inputs = inputs & self.wires;
        stage1 == inputs && stage2 == inputs && inputs ^ output != self.wires
    }

    /// Returns the levels at the output pins: all high or all low.
    pub const fn outputs(&self) -> u64 {
        self.registers.output
    }

    /// Returns the number of times that the output has toggled since power-on.
    pub const fn releases(&self) -> u64 {
        self.registers.releases
    }

    /// Returns the mask of existing wires.
    pub const fn wires(&self) -> u64 {
        self.wires
    }

    /// Returns the number of wire pairs.
    pub const fn nodes(&self) -> usize {
        self.wires.count_ones() as usize
    }

    /// Returns the flip-flops; [`load`](Self::load) is the inverse.
    pub const fn registers(&self) -> Registers {
        self.registers
    }
}

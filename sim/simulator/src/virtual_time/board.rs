//! A board: a machine with its clock and the levels at its pins.
//!
//! Every board of a [`Tree`] has its own clock with its own phase.

use super::oscillator::Oscillator;
use super::{Parameters, RunError, Time};
use crate::virtual_time::Random;
use barrier_board::tree::Tree;
use fpga_model::channels::{ChannelMachine, MAX_CHANNELS, Pins, SETTLE_EDGES};
use fpga_model::filter::FilteredMachine;

/// The machine on a board.
#[derive(Debug)]
enum Machine {
    Toggle(FilteredMachine, u64),
    Channels(Box<(ChannelMachine, Pins)>),
}

/// The flip-flops of a board of version 1, one bit per pin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlipFlops {
    pub stage1: u64,
    pub stage2: u64,
    /// The machine's inputs.
    pub seen: u64,
    pub output: u64,
}

/// A board of a world.
#[derive(Debug)]
pub(crate) struct Board {
    machine: Machine,
    oscillator: Oscillator,
    edge: u64,
    /// The level of its outputs while they are not driven.
    pub undriven: Option<bool>,
    /// Counts changes of the inputs, so that an edge predicted before the last change is discarded.
    pub changes: u64,
}

impl Board {
    pub fn new(
        parameters: &Parameters,
        tree: &Tree,
        board: usize,
        pauses: Vec<(Time, Time)>,
    ) -> Result<Self, RunError> {
        let pins = tree.pins(board);
        let machine = match parameters.channels {
            0 => Machine::Toggle(
                FilteredMachine::new(pins, parameters.filter).map_err(RunError::Board)?,
                0,
            ),
            channels => {
                let machine = ChannelMachine::new(pins, MAX_CHANNELS.max(channels));
                let machine = machine.map_err(RunError::Channels)?;
                Machine::Channels(Box::new((machine, Pins::default())))
            }
        };
        // The first board's first edge is at one period, as in a world with one board; the others' phases are random.
        let phase = match board {
            0 => Time::ZERO,
            _ => {
                let mut random = Random::new(parameters.seed ^ 0x00b0_a4d5, board);
                Time::from_ps(1_000_000_000_000 / parameters.clock_hz.max(1)).scaled(random.unit())
            }
        };
        Ok(Self {
            machine,
            oscillator: Oscillator::new(parameters.clock_hz, phase, pauses),
            edge: 0,
            undriven: None,
            changes: 0,
        })
    }

    /// Sets the level at a pin.
    pub fn set(&mut self, now: Time, pin: usize, line: usize, high: bool) {
        self.run_until(now);
        self.changes += 1;
        match &mut self.machine {
            Machine::Toggle(_, inputs) => *inputs = *inputs & !(1 << pin) | u64::from(high) << pin,
            Machine::Channels(both) => both.1.set(pin, line, high),
        }
    }

    /// Runs all edges until `now`, with constant levels.
    pub fn run_until(&mut self, now: Time) {
        let cycles = self.oscillator.edges_until(now) - self.edge;
        self.edge += cycles;
        match &mut self.machine {
            Machine::Toggle(machine, inputs) => {
                machine.fast_forward(*inputs, cycles);
            }
            Machine::Channels(both) => {
                let (machine, pins) = &mut **both;
                machine.fast_forward(pins, cycles);
            }
        }
    }

    /// Returns the time of the next change of an output with constant inputs.
    pub fn next_change(&self) -> Option<Time> {
        let edges = match &self.machine {
            Machine::Toggle(machine, inputs) => machine.edges_to_release(*inputs),
            Machine::Channels(both) => {
                let (mut ahead, pins) = **both;
                let outputs = |m: &ChannelMachine| (m.releases(), m.last_line());
                let now = outputs(&ahead);
                // All effects of a change at the pins have happened by then; only the lease takes longer.
                (1..=SETTLE_EDGES + fpga_model::LATENCY_EDGES).find(|_| {
                    ahead.step(&pins);
                    outputs(&ahead) != now
                })
            }
        };
        self.oscillator.time_of(self.edge + edges?)
    }

    /// Returns the time of the next edge; `None` after the clock has stopped for good.
    pub fn next_edge(&self) -> Option<Time> {
        self.oscillator.time_of(self.edge + 1)
    }

    /// Returns the number of edges after which constant pins change nothing any more.
    pub fn latency_edges(&self) -> u64 {
        match &self.machine {
            Machine::Toggle(machine, _) => machine.latency_edges(),
            Machine::Channels(_) => SETTLE_EDGES,
        }
    }

    /// Returns the flip-flops of a board of version 1, and its machine's inputs.
    pub fn flip_flops(&self) -> Option<FlipFlops> {
        match &self.machine {
            Machine::Toggle(machine, _) => {
                let registers = machine.registers();
                Some(FlipFlops {
                    stage1: registers.stage1,
                    stage2: registers.stage2,
                    seen: machine.seen(),
                    output: registers.output,
                })
            }
            Machine::Channels(_) => None,
        }
    }

    /// Returns the level at the output that leads to this pin's line.
    pub fn output(&self, pin: usize, line: usize) -> bool {
        self.undriven.unwrap_or(match &self.machine {
            Machine::Toggle(machine, _) => machine.outputs() != 0,
            Machine::Channels(both) => both.0.reads(pin, line),
        })
    }

    /// Returns all outputs.
    pub fn outputs(&self) -> (u64, u64) {
        let last = match &self.machine {
            Machine::Toggle(..) => 0,
            Machine::Channels(both) => both.0.last_line(),
        };
        (self.levels(), last)
    }

    /// Returns the levels of all releases, as one word.
    pub fn levels(&self) -> u64 {
        match (self.undriven, &self.machine) {
            (Some(high), Machine::Toggle(..)) => u64::from(high),
            (Some(high), Machine::Channels(_)) => u64::from(high) * ((1 << MAX_CHANNELS) - 1),
            (None, Machine::Toggle(machine, _)) => u64::from(machine.outputs() != 0),
            (None, Machine::Channels(both)) => u64::from(both.0.releases()),
        }
    }

    /// Returns the number of releases.
    pub fn releases(&self) -> u64 {
        match &self.machine {
            Machine::Toggle(machine, _) => machine.releases(),
            Machine::Channels(both) => (0..MAX_CHANNELS)
                .filter_map(|channel| both.0.channel(channel))
                .map(|channel| channel.releases)
                .sum(),
        }
    }

    /// The reset line.
    pub fn reset(&mut self, now: Time) {
        self.run_until(now);
        self.changes += 1;
        match &mut self.machine {
            Machine::Toggle(machine, _) => machine.reset(),
            Machine::Channels(both) => both.0.reset(),
        }
    }

    /// Returns the time between this edge and the previous one.
    pub fn since_last_edge(&self, now: Time) -> Time {
        let before = self.oscillator.time_of(self.edge.saturating_sub(1));
        now - before.unwrap_or(now)
    }
}

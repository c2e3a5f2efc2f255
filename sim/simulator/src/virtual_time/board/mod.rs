//! A simulated board: a machine with its clock and the levels at its pins.
//!
//! Each version of the machine has its own file.
//! Every board of a [`Tree`] has its own clock with its own phase.

mod channels;
mod toggle;

use super::oscillator::Oscillator;
use super::{Parameters, RunError, Time};
use crate::virtual_time::Random;
use barrier_board::tree::Tree;
use channels::Channels;
use std::fmt::Debug;
use toggle::Toggle;

/// The operations of the machine on a board, of either version.
trait Machine: Debug {
    /// Sets the level of a line at a pin.
    fn set(&mut self, pin: usize, line: usize, high: bool);

    /// Steps the machine by `edges` edges with constant input levels.
    fn run(&mut self, edges: u64);

    /// Returns the number of edges after which an output next changes, with constant input levels.
    fn edges_to_change(&self) -> Option<u64>;

    /// Returns the number of edges after which the machine is stable, with constant input levels.
    fn latency_edges(&self) -> u64;

    /// Returns the level of the output that drives this pin's inward line.
    fn output(&self, pin: usize, line: usize) -> bool;

    /// Returns the levels of all release outputs as bits of one word.
    fn levels(&self) -> u64;

    /// Returns the value of [`levels`](Self::levels) if all release outputs are `high`.
    fn all_at(&self, high: bool) -> u64;

    fn releases(&self) -> u64;

    /// Resets the machine to its power-on state.
    fn reset(&mut self);

    /// Returns the level of the last inward line at each node.
    /// In version 1 all nodes have the same inward line.
    fn last_line(&self) -> u64 {
        0
    }

    /// Returns the flip-flops and the inputs of a machine of version 1; `None` for version 2.
    fn flip_flops(&self) -> Option<FlipFlops> {
        None
    }
}

/// The flip-flops and inputs of a version 1 machine; masks have one bit per pin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FlipFlops {
    pub stage1: u64,
    pub stage2: u64,
    /// The machine's inputs, after the filter.
    pub seen: u64,
    pub output: u64,
}

/// A board of a simulated world.
#[derive(Debug)]
pub(crate) struct Board {
    machine: Box<dyn Machine>,
    oscillator: Oscillator,
    edge: u64,
    /// The level of the outputs while the board does not drive them.
    pub undriven: Option<bool>,
    /// Number of input changes; an edge that was scheduled before the last change is ignored.
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
        let machine: Box<dyn Machine> = match parameters.channels {
            0 => Box::new(Toggle::new(pins, parameters.filter).map_err(RunError::Board)?),
            channels => Box::new(Channels::new(pins, channels).map_err(RunError::Channels)?),
        };
        // The first board's first edge is one period after power-on, as in a world with one board.
        // The phases of the other boards are random.
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

    /// Steps the machine by all edges until `now`, and then sets the level of a line at a pin.
    pub fn set(&mut self, now: Time, pin: usize, line: usize, high: bool) {
        self.run_until(now);
        self.changes += 1;
        self.machine.set(pin, line, high);
    }

    /// Steps the machine by all edges until `now`, with constant levels.
    pub fn run_until(&mut self, now: Time) {
        let cycles = self.oscillator.edges_until(now) - self.edge;
        self.edge += cycles;
        self.machine.run(cycles);
    }

    /// Returns the time at which an output next changes, with constant inputs.
    pub fn next_change(&self) -> Option<Time> {
        let edges = self.machine.edges_to_change();
        self.oscillator.time_of(self.edge + edges?)
    }

    /// Returns the time of the next edge; `None` if the clock has stopped for the rest of the run.
    pub fn next_edge(&self) -> Option<Time> {
        self.oscillator.time_of(self.edge + 1)
    }

    /// Returns the number of edges after which the machine is stable, with constant pins.
    pub fn latency_edges(&self) -> u64 {
        self.machine.latency_edges()
    }

    /// Returns the flip-flops and the inputs of a board of version 1; `None` for version 2.
    pub fn flip_flops(&self) -> Option<FlipFlops> {
        self.machine.flip_flops()
    }

    /// Returns the level of the output that drives this pin's inward line.
    pub fn output(&self, pin: usize, line: usize) -> bool {
        let driven = || self.machine.output(pin, line);
        self.undriven.unwrap_or_else(driven)
    }

    /// Returns the levels of all outputs: the releases, and the last line at each node.
    pub fn outputs(&self) -> (u64, u64) {
        (self.levels(), self.machine.last_line())
    }

    /// Returns the levels of all release outputs as bits of one word.
    pub fn levels(&self) -> u64 {
        match self.undriven {
            Some(high) => self.machine.all_at(high),
            None => self.machine.levels(),
        }
    }

    /// Returns the number of releases since power-on.
    pub fn releases(&self) -> u64 {
        self.machine.releases()
    }

    /// Resets the machine to its power-on state.
    pub fn reset(&mut self, now: Time) {
        self.run_until(now);
        self.changes += 1;
        self.machine.reset();
    }

    /// Returns the time between this edge and the previous one.
    pub fn since_last_edge(&self, now: Time) -> Time {
        let before = self.oscillator.time_of(self.edge.saturating_sub(1));
        now - before.unwrap_or(now)
    }
}

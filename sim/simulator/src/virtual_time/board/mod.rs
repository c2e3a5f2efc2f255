//! A board: a machine with its clock and the levels at its pins.
//!
//! A file for each version of the machine. Every board of a [`Tree`] has its own clock with its own phase.

mod channels;
mod toggle;

use super::oscillator::Oscillator;
use super::{Parameters, RunError, Time};
use crate::virtual_time::Random;
use barrier_board::tree::Tree;
use channels::Channels;
use std::fmt::Debug;
use toggle::Toggle;

/// The machine on a board, of either version.
trait Machine: Debug {
    /// Sets the level at a pin.
    fn set(&mut self, pin: usize, line: usize, high: bool);

    /// Runs edges with constant levels.
    fn run(&mut self, edges: u64);

    /// Returns the number of edges after which an output next changes with constant levels.
    fn edges_to_change(&self) -> Option<u64>;

    /// Returns the number of edges after which the machine is stable with constant levels.
    fn latency_edges(&self) -> u64;

    /// Returns the level at the output that leads to this pin's line.
    fn output(&self, pin: usize, line: usize) -> bool;

    /// Returns the levels of all releases, as one word.
    fn levels(&self) -> u64;

    /// Returns the word of [`levels`](Self::levels) in which all levels are `high`.
    fn all_at(&self, high: bool) -> u64;

    fn releases(&self) -> u64;

    /// The reset line.
    fn reset(&mut self);

    /// Returns the level of the last inward line at each node; in version 1 all nodes have the same inward line.
    fn last_line(&self) -> u64 {
        0
    }

    /// Returns the flip-flops of version 1, and its machine's inputs.
    fn flip_flops(&self) -> Option<FlipFlops> {
        None
    }
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
    machine: Box<dyn Machine>,
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
        let machine: Box<dyn Machine> = match parameters.channels {
            0 => Box::new(Toggle::new(pins, parameters.filter).map_err(RunError::Board)?),
            channels => Box::new(Channels::new(pins, channels).map_err(RunError::Channels)?),
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
        self.machine.set(pin, line, high);
    }

    /// Runs all edges until `now`, with constant levels.
    pub fn run_until(&mut self, now: Time) {
        let cycles = self.oscillator.edges_until(now) - self.edge;
        self.edge += cycles;
        self.machine.run(cycles);
    }

    /// Returns the time of the next change of an output with constant inputs.
    pub fn next_change(&self) -> Option<Time> {
        let edges = self.machine.edges_to_change();
        self.oscillator.time_of(self.edge + edges?)
    }

    /// Returns the time of the next edge; `None` after the clock has stopped for good.
    pub fn next_edge(&self) -> Option<Time> {
        self.oscillator.time_of(self.edge + 1)
    }

    /// Returns the number of edges after which the machine is stable with constant pins.
    pub fn latency_edges(&self) -> u64 {
        self.machine.latency_edges()
    }

    /// Returns the flip-flops of a board of version 1, and its machine's inputs.
    pub fn flip_flops(&self) -> Option<FlipFlops> {
        self.machine.flip_flops()
    }

    /// Returns the level at the output that leads to this pin's line.
    pub fn output(&self, pin: usize, line: usize) -> bool {
        let driven = || self.machine.output(pin, line);
        self.undriven.unwrap_or_else(driven)
    }

    /// Returns all outputs.
    pub fn outputs(&self) -> (u64, u64) {
        (self.levels(), self.machine.last_line())
    }

    /// Returns the levels of all releases, as one word.
    pub fn levels(&self) -> u64 {
        match self.undriven {
            Some(high) => self.machine.all_at(high),
            None => self.machine.levels(),
        }
    }

    /// Returns the number of releases.
    pub fn releases(&self) -> u64 {
        self.machine.releases()
    }

    /// The reset line.
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

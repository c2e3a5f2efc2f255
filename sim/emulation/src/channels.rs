//! A version 2 board (five channels and a serial receiver) for nodes at emulated parallel ports.
//!
//! The machine is that of `fpga_model`; its clock follows the host's clock:
//! each access to a wire first steps the machine to the present.
//! The lines are those of `hdl/channels/README.md`: D0 to D4 are arrivals, and D5 to D7 are clock,
//! data and select. The five status lines, in the order of [`INPUTS`], are the release lines;
//! the last status line is also the reply.

use super::cable::CableEnd;
use super::parallel::{Connector, ParallelPort};
use barrier_driver::ports::parallel::{INPUTS, Line};
use fpga_model::CLOCK_HZ;
use fpga_model::channels::{BadSize, ChannelMachine, MAX_CHANNELS, Pins};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A board in this process; clones refer to the same board.
#[derive(Clone)]
pub struct ChannelBoard(Arc<Mutex<State>>);

struct State {
    machine: ChannelMachine,
    pins: Pins,
    power_on: Instant,
    /// Number of clock edges simulated since power-on.
    edges: u64,
}

impl State {
    fn catch_up(&mut self) {
        let ns = self.power_on.elapsed().as_nanos();
        let due = u64::try_from(ns * u128::from(CLOCK_HZ) / 1_000_000_000).unwrap_or(u64::MAX);
        self.machine
            .fast_forward(&self.pins, due.saturating_sub(self.edges));
        self.edges = self.edges.max(due);
    }
}

impl ChannelBoard {
    /// Returns a board of `nodes` nodes with five channels, in its state after power-on.
    pub fn power_on(nodes: usize) -> Result<Self, BadSize> {
        Ok(Self(Arc::new(Mutex::new(State {
            machine: ChannelMachine::new(nodes, MAX_CHANNELS)?,
            pins: Pins::default(),
            power_on: Instant::now(),
            edges: 0,
        }))))
    }

    /// Returns the parallel port of a node, with `data` in its data register.
    pub fn port(&self, node: usize, data: u8) -> ParallelPort {
        let board = self.clone();
        ParallelPort::with(data, Node { board, node })
    }

    /// Returns one line of a node for a GPIO chip:
    /// the outward line with this index, and the inward line with the same index, if there is one.
    pub fn line(&self, node: usize, line: usize) -> impl CableEnd + use<> {
        let board = self.clone();
        OneLine { board, node, line }
    }

    /// Returns the machine's present state.
    pub fn machine(&self) -> ChannelMachine {
        self.now().machine
    }

    fn now(&self) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.catch_up();
        state
    }
}

impl State {
    /// Drives an outward line of a node: lines are arrivals, then clock, data and select.
    fn drive(&mut self, node: usize, line: usize, high: bool) {
        self.pins.set(node, line, high);
    }
}

/// An outward line, and the inward line with the same index; see [`ChannelBoard::line`].
struct OneLine {
    board: ChannelBoard,
    node: usize,
    line: usize,
}

impl CableEnd for OneLine {
    fn drive(&mut self, high: bool) {
        self.board.now().drive(self.node, self.line, high);
    }

    fn level(&mut self) -> bool {
        // The level of a nonexistent inward line is high.
        self.line >= MAX_CHANNELS || self.board.now().machine.reads(self.node, self.line)
    }
}

/// All lines of one node, at one parallel port.
struct Node {
    board: ChannelBoard,
    node: usize,
}

impl Connector for Node {
    fn drive(&mut self, levels: u8) {
        let mut state = self.board.now();
        for line in 0..8 {
            state.drive(self.node, line, levels >> line & 1 == 1);
        }
    }

    fn level(&mut self, line: Line) -> bool {
        let channel = INPUTS.iter().position(|input| input.name == line.name);
        let state = self.board.now();
        channel.is_none_or(|channel| state.machine.reads(self.node, channel))
    }
}

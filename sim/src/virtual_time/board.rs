//! A board: a machine with its clock and the levels at its pins; and the tree of cascaded boards.
//!
//! One board is the root: its output goes to all nodes. Boards below it take the nodes' wires, and the output of each is one
//! wire of the board above ([`Tree`]). Every board has its own clock with its own phase.

use super::oscillator::Oscillator;
use super::{Parameters, RunError, Time};
use crate::virtual_time::Random;
use fpga_model::channels::{ChannelMachine, MAX_CHANNELS, Pins, SETTLE_EDGES};
use fpga_model::filter::FilteredMachine;

/// Maximum number of wires to one board, from nodes or from boards below it.
pub const BOARD_PINS: usize = 60;

/// The tree of nodes and boards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    nodes: usize,
    /// Number of nodes per leaf board; the last may have fewer.
    share: usize,
    /// The destination of each board's output: the board above it and the pin there; the last board is the root.
    above: Vec<Option<(usize, usize)>>,
    lowest: usize,
}

impl Tree {
    /// Builds the tree for `nodes` nodes on `boards` leaf boards, with as many levels above them as one root requires.
    pub fn new(nodes: usize, boards: usize) -> Self {
        let boards = boards.max(1);
        let mut above = vec![None; boards];
        let (mut first, mut count) = (0, boards);
        while count > 1 {
            let next = above.len();
            let parents = count.div_ceil(BOARD_PINS);
            for child in 0..count {
                above[first + child] = Some((next + child / BOARD_PINS, child % BOARD_PINS));
            }
            above.resize(next + parents, None);
            (first, count) = (next, parents);
        }
        Self {
            nodes,
            share: nodes.div_ceil(boards),
            above,
            lowest: boards,
        }
    }

    /// Returns the board and the pin at which a node's wire ends.
    pub fn place(&self, node: usize) -> (usize, usize) {
        (node / self.share.max(1), node % self.share.max(1))
    }

    /// Returns the destination of a board's output.
    pub fn above(&self, board: usize) -> Option<(usize, usize)> {
        self.above[board]
    }

    /// Returns the number of boards.
    pub fn boards(&self) -> usize {
        self.above.len()
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the number of leaf boards, which have the lowest numbers.
    pub fn lowest(&self) -> usize {
        self.lowest
    }

    /// Returns the root.
    pub fn root(&self) -> usize {
        self.above.len() - 1
    }

    /// Returns the number of boards that a level passes from a node to the root.
    pub fn levels(&self) -> usize {
        std::iter::successors(Some(0), |&board| self.above[board].map(|(above, _)| above)).count()
    }

    /// Returns the number of wires that end at a board.
    pub fn pins(&self, board: usize) -> usize {
        match board < self.lowest {
            true => self
                .share
                .min(self.nodes.saturating_sub(board * self.share)),
            false => self
                .above
                .iter()
                .filter(|above| above.is_some_and(|(parent, _)| parent == board))
                .count(),
        }
    }

    /// Returns the first node of a board, or of the first board below it.
    pub fn first_node(&self, board: usize) -> usize {
        let below = |board: usize| {
            let mut children = self.above.iter().enumerate();
            children.find_map(|(child, above)| {
                above
                    .is_some_and(|(parent, _)| parent == board)
                    .then_some(child)
            })
        };
        let lowest = std::iter::successors(Some(board), |&board| below(board)).last();
        lowest.unwrap_or(0) * self.share
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixteen_boards_hang_under_one() {
        let tree = Tree::new(960, 16);
        assert_eq!(
            (tree.boards(), tree.lowest(), tree.root(), tree.levels()),
            (17, 16, 16, 2)
        );
        assert_eq!(tree.place(959), (15, 59));
        assert_eq!((tree.pins(0), tree.pins(16)), (60, 16));
        assert_eq!((tree.above(3), tree.above(16)), (Some((16, 3)), None));
        assert_eq!((tree.first_node(5), tree.first_node(16)), (300, 0));
    }

    #[test]
    fn more_boards_than_one_takes_need_a_level_more() {
        let tree = Tree::new(61 * 2, 61);
        assert_eq!((tree.boards(), tree.levels()), (61 + 2 + 1, 3));
        assert_eq!(tree.above(60), Some((62, 0)));
        assert_eq!(tree.above(62), Some((63, 1)));
        assert_eq!((tree.pins(61), tree.pins(62), tree.pins(63)), (60, 1, 2));
    }

    #[test]
    fn one_board_is_the_root_of_itself() {
        let tree = Tree::new(7, 1);
        assert_eq!(
            (tree.boards(), tree.root(), tree.levels(), tree.pins(0)),
            (1, 0, 1, 7)
        );
    }

    #[test]
    fn a_last_board_may_have_fewer_nodes() {
        let tree = Tree::new(7, 3);
        assert_eq!([0, 1, 2].map(|board| tree.pins(board)), [3, 3, 1]);
    }
}

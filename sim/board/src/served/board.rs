//! The boards that a hub may have, of either version, with the operations of the protocol.
//!
//! Only writes step version 1: after [`LATENCY_EDGES`] with constant wires nothing changes any more, and one edge
//! later the eureka line does not change either.
//! Version 2 has leases and time limits, so its clock follows the hub's; a write also advances it at once by the edges that it needs.

use super::frame::{CHANNELS_VERSION, Eureka, Request, VERSION};
use crate::live::Snapshot;
use fpga_model::channels::{ChannelMachine, MAX_CHANNELS, Pins};
use fpga_model::eureka::EurekaLine;
use fpga_model::{BadNodeCount, CLOCK_HZ, LATENCY_EDGES, ToggleMachine};
use std::time::Duration;

/// Lines from a node of version 2 to the board: arrivals, then clock, data and select.
pub(super) const OUTWARD: usize = Pins::LINES;
/// The bit of select among them.
pub(super) const SELECT: u8 = 1 << (OUTWARD - 1);
/// Bits of a channel's counter in [`Snapshot::outputs`].
const COUNTER: u32 = 12;

#[derive(Debug)]
pub(super) enum Board {
    Toggle(Toggle),
    Channels(Box<Channels>),
}

/// The barrier and its eureka line, which share a clock.
#[derive(Debug)]
pub(super) struct Toggle {
    machine: ToggleMachine,
    /// Levels of the wires to the barrier.
    inputs: u64,
    line: EurekaLine,
    /// Levels of the wires to the line.
    says: u64,
}

#[derive(Debug)]
pub(super) struct Channels {
    nodes: usize,
    machine: ChannelMachine,
    pins: Pins,
    /// Edges since power-on.
    edges: u64,
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// The wires have their levels; `released` is true if that has released a node.
    Done { released: bool },
    /// Another node is sending; the write has to wait until it has ended.
    NotYet,
    /// The request is not for this kind of board.
    Foreign,
}

/// How a dead node's lines were made idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rested {
    /// True if it had entered a barrier that was not released.
    pub inside: bool,
    /// The level that its wire has now, if it has one wire.
    pub level: Option<bool>,
}

impl Board {
    pub fn toggle(nodes: usize) -> Result<Board, BadNodeCount> {
        let machine = ToggleMachine::new(nodes)?;
        // The wires are not filtered, as those of the barrier are not.
        let line = EurekaLine::new(nodes, 1).map_err(|_| BadNodeCount(nodes))?;
        Ok(Board::Toggle(Toggle {
            machine,
            inputs: 0,
            line,
            says: 0,
        }))
    }

    pub fn channels(nodes: usize) -> Result<Board, BadNodeCount> {
        let machine = ChannelMachine::new(nodes, MAX_CHANNELS);
        let machine = machine.map_err(|bad| BadNodeCount(bad.nodes))?;
        Ok(Board::Channels(Box::new(Channels {
            nodes,
            machine,
            pins: Pins::default(),
            edges: 0,
        })))
    }

    /// Returns the version of the protocol that serves this board.
    pub fn version(&self) -> u8 {
        match self {
            Board::Toggle(_) => VERSION,
            Board::Channels(_) => CHANNELS_VERSION,
        }
    }

    pub fn nodes(&self) -> usize {
        match self {
            Board::Toggle(board) => board.machine.nodes(),
            Board::Channels(board) => board.nodes,
        }
    }

    /// Returns the board now, as this node or an observer sees it; see [`frame`](super::frame) for the meaning of the words.
    pub fn snapshot(&mut self, node: Option<usize>, now: Duration) -> Snapshot {
        let at_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        match self {
            Board::Toggle(board) => Snapshot {
                at_ns,
                inputs: board.inputs,
                outputs: board.machine.outputs(),
                releases: board.machine.releases(),
            },
            Board::Channels(board) => {
                board.catch_up(now);
                Snapshot {
                    at_ns,
                    inputs: node.map_or(0, |node| board.levels(node)),
                    // An observer has no lines and receives only the releases.
                    outputs: node.map_or(0, |_| board.counters()),
                    releases: board.releases(),
                }
            }
        }
    }

    pub fn releases(&self) -> u64 {
        match self {
            Board::Toggle(board) => board.machine.releases(),
            Board::Channels(board) => board.releases(),
        }
    }

    /// Returns the eureka line now, if there is one.
    pub fn eureka(&self) -> Option<Eureka> {
        match self {
            Board::Toggle(board) => Some(Eureka {
                found: board.line.found(),
                first: board.line.registers().first,
            }),
            Board::Channels(_) => None,
        }
    }

    /// Performs a node's write.
    pub fn write(&mut self, node: usize, request: Request, now: Duration) -> Written {
        let before = self.releases();
        match (&mut *self, request) {
            (Board::Toggle(_), Request::Withdraw { seen, .. }) if seen != before => {}
            (Board::Toggle(board), Request::Write { high } | Request::Withdraw { high, .. }) => {
                set(&mut board.inputs, node, high);
                board.settle();
            }
            (Board::Toggle(board), Request::Say { high }) => {
                set(&mut board.says, node, high);
                board.settle();
            }
            (Board::Channels(board), Request::Drive { levels, seen }) => {
                board.catch_up(now);
                if levels & SELECT != 0 && board.pins.select & !(1 << node) != 0 {
                    return Written::NotYet;
                }
                board.drive(node, levels, seen);
            }
            _ => return Written::Foreign,
        }
        Written::Done {
            released: self.releases() != before,
        }
    }

    /// Returns the node that is sending over its serial lines.
    pub fn speaker(&self) -> Option<usize> {
        match self {
            Board::Toggle(_) => None,
            Board::Channels(board) => {
                let select = board.pins.select;
                (select != 0).then(|| select.trailing_zeros() as usize)
            }
        }
    }

    /// Ends the unfinished session of a node that disconnects.
    pub fn release_lines(&mut self, node: usize, now: Duration) {
        if let Board::Channels(board) = self {
            board.catch_up(now);
            board.release_lines(node);
        }
    }

    /// Makes a dead node's lines idle: this releases no node, because a line that equals its barrier's level is no arrival.
    pub fn rest(&mut self, node: usize, now: Duration) -> Rested {
        match self {
            Board::Toggle(board) => {
                let idle = board.machine.outputs() != 0;
                let inside = (board.inputs >> node & 1 == 1) != idle;
                set(&mut board.inputs, node, idle);
                set(&mut board.says, node, false);
                board.settle();
                Rested {
                    inside,
                    level: Some(idle),
                }
            }
            Board::Channels(board) => {
                board.catch_up(now);
                let inside = board.rest(node);
                Rested {
                    inside,
                    level: None,
                }
            }
        }
    }
}

impl Toggle {
    /// Runs barrier and line until they are stable.
    fn settle(&mut self) {
        // The line sees a release one edge after it.
        for _ in 0..=LATENCY_EDGES {
            let level = self.machine.outputs() != 0;
            self.line.step(self.says, level);
            self.machine.step(self.inputs);
        }
    }
}

/// Drives a node's wire among `wires`.
fn set(wires: &mut u64, node: usize, high: bool) {
    *wires = *wires & !(1 << node) | u64::from(high) << node;
}

impl Channels {
    fn catch_up(&mut self, now: Duration) {
        let due = now.as_nanos() * u128::from(CLOCK_HZ) / 1_000_000_000;
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        self.run(due.saturating_sub(self.edges));
    }

    fn run(&mut self, edges: u64) {
        self.machine.fast_forward(&self.pins, edges);
        self.edges = self.edges.saturating_add(edges);
    }

    fn releases(&self) -> u64 {
        let channels = (0..MAX_CHANNELS).filter_map(|number| self.machine.channel(number));
        channels.map(|channel| channel.releases).sum()
    }

    /// Returns each channel's number of releases modulo a few bits: enough to detect a release since the client's last view.
    fn counters(&self) -> u64 {
        let channels = (0..MAX_CHANNELS).rev();
        channels.fold(0, |all, number| {
            let releases = self.machine.channel(number).map_or(0, |c| c.releases);
            all << COUNTER | releases & ((1 << COUNTER) - 1)
        })
    }

    /// Returns a node's outward lines, and in the higher bits its inward ones.
    fn levels(&self, node: usize) -> u64 {
        let outward = self.outward().into_iter().enumerate();
        let outward = outward.fold(0, |all, (line, wires)| all | (wires >> node & 1) << line);
        let inward =
            (0..MAX_CHANNELS).map(|line| u64::from(self.machine.reads(node, line)) << line);
        outward | inward.fold(0, |all, level| all | level) << OUTWARD
    }

    fn outward(&self) -> [u64; OUTWARD] {
        let Pins {
            arrive,
            clock,
            data,
            select,
        } = self.pins;
        let mut all = [0; OUTWARD];
        let lines = arrive.into_iter().chain([clock, data, select]);
        all.iter_mut()
            .zip(lines)
            .for_each(|(place, wires)| *place = wires);
        all
    }

    /// Sets a node's lines, except arrivals that were used after the client had `seen` these counters:
    /// a level that would have withdrawn such an arrival would now be the next arrival.
    fn drive(&mut self, node: usize, levels: u8, seen: u64) {
        let used = self.counters() ^ seen;
        let is_used =
            |channel: usize| used >> (channel as u32 * COUNTER) & ((1 << COUNTER) - 1) != 0;
        for line in (0..OUTWARD).filter(|line| *line >= MAX_CHANNELS || !is_used(*line)) {
            self.set(node, line, levels >> line & 1 == 1);
        }
        self.run(LATENCY_EDGES);
    }

    fn set(&mut self, node: usize, line: usize, high: bool) {
        self.pins.set(node, line, high);
    }

    /// Makes the node's lines idle; returns true if the node was in a barrier.
    fn rest(&mut self, node: usize) -> bool {
        let mut inside = false;
        for number in 0..MAX_CHANNELS {
            let Some(channel) = self.machine.channel(number).copied() else {
                continue;
            };
            let member = channel.mask >> node & 1 == 1;
            inside |= member && (self.pins.arrive[number] >> node & 1 == 1) != channel.level;
            self.set(node, number, channel.level);
        }
        self.release_lines(node);
        inside
    }

    fn release_lines(&mut self, node: usize) {
        (MAX_CHANNELS..OUTWARD).for_each(|line| self.set(node, line, false));
        self.run(LATENCY_EDGES);
    }
}

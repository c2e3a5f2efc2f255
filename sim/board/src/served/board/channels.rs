//! The served board of version 2: five channels, with leases and time limits.
//!
//! The hub's clock drives the board's clock; a write also steps the board until the hardware has reacted.

use super::super::frame::{CHANNELS_VERSION, Request};
use super::{Board, Rested, Written, nanoseconds};
use crate::live::{ChannelLook, Snapshot};
use fpga_model::channels::{ChannelMachine, MAX_CHANNELS, Pins};
use fpga_model::{BadNodeCount, CLOCK_HZ, LATENCY_EDGES};
use std::time::Duration;

/// Number of lines from a node of version 2 to the board: arrivals, then clock, data and select.
pub(in crate::served) const OUTWARD: usize = Pins::LINES;
/// The bit of serial select in a node's outward lines.
pub(in crate::served) const SELECT: u8 = 1 << (OUTWARD - 1);
/// Width of a channel's counter in [`Snapshot::outputs`], in bits.
const COUNTER: u32 = 12;

#[derive(Debug)]
pub(in crate::served) struct Channels {
    nodes: usize,
    machine: ChannelMachine,
    pins: Pins,
    /// Number of clock edges since power-on.
    edges: u64,
}

impl Channels {
    pub fn new(nodes: usize) -> Result<Self, BadNodeCount> {
        let machine = ChannelMachine::new(nodes, MAX_CHANNELS);
        let machine = machine.map_err(|bad| BadNodeCount(bad.nodes))?;
        Ok(Self {
            nodes,
            machine,
            pins: Pins::default(),
            edges: 0,
        })
    }

    fn catch_up(&mut self, now: Duration) {
        let due = now.as_nanos() * u128::from(CLOCK_HZ) / 1_000_000_000;
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        self.run(due.saturating_sub(self.edges));
    }

    fn run(&mut self, edges: u64) {
        self.machine.fast_forward(&self.pins, edges);
        self.edges = self.edges.saturating_add(edges);
    }

    /// Returns the low [`COUNTER`] bits of each channel's number of releases.
    /// They suffice to detect a release since the client's last view.
    fn counters(&self) -> u64 {
        let channels = (0..MAX_CHANNELS).rev();
        channels.fold(0, |all, number| {
            let releases = self.machine.channel(number).map_or(0, |c| c.releases);
            all << COUNTER | releases & ((1 << COUNTER) - 1)
        })
    }

    /// Returns the levels of a node's lines:
    /// outward lines in the low bits, inward lines above them.
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

    /// Sets a node's outward lines. `seen` are the release counters that the client had received.
    /// An arrival line of a channel with a later release keeps its level: that release has
    /// consumed the arrival, so a new level, meant to withdraw it, would be the next arrival.
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

    /// Ends the node's session at the serial receiver.
    fn lower_serial_lines(&mut self, node: usize) {
        (MAX_CHANNELS..OUTWARD).for_each(|line| self.set(node, line, false));
        self.run(LATENCY_EDGES);
    }
}

impl Board for Channels {
    fn version(&self) -> u8 {
        CHANNELS_VERSION
    }

    fn nodes(&self) -> usize {
        self.nodes
    }

    fn snapshot(&mut self, node: Option<usize>, now: Duration) -> Snapshot {
        self.catch_up(now);
        Snapshot {
            at_ns: nanoseconds(now),
            inputs: node.map_or(0, |node| self.levels(node)),
            // An observer has no lines and receives only the releases.
            outputs: node.map_or(0, |_| self.counters()),
            releases: self.releases(),
        }
    }

    fn releases(&self) -> u64 {
        self.machine.all_releases()
    }

    fn write(&mut self, node: usize, request: Request, now: Duration) -> Written {
        let Request::Drive { levels, seen } = request else {
            return Written::Foreign;
        };
        let before = self.releases();
        self.catch_up(now);
        if levels & SELECT != 0 && self.pins.select & !(1 << node) != 0 {
            return Written::NotYet;
        }
        self.drive(node, levels, seen);
        Written::Done {
            released: self.releases() != before,
        }
    }

    fn rest(&mut self, node: usize, now: Duration) -> Rested {
        self.catch_up(now);
        let mut inside = false;
        for number in 0..MAX_CHANNELS {
            let Some(channel) = self.machine.channel(number).copied() else {
                continue;
            };
            let member = channel.mask >> node & 1 == 1;
            inside |= member && (self.pins.arrive[number] >> node & 1 == 1) != channel.level;
            self.set(node, number, channel.level);
        }
        self.lower_serial_lines(node);
        Rested {
            inside,
            level: None,
        }
    }

    fn channel(&mut self, channel: usize, now: Duration) -> Option<ChannelLook> {
        self.catch_up(now);
        let known = self.machine.channel(channel).map(ChannelLook::from);
        Some(known.unwrap_or_default())
    }

    fn speaker(&self) -> Option<usize> {
        let select = self.pins.select;
        (select != 0).then(|| select.trailing_zeros() as usize)
    }

    fn release_lines(&mut self, node: usize, now: Duration) {
        self.catch_up(now);
        self.lower_serial_lines(node);
    }
}

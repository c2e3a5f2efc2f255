//! Version 2: up to five toggle barriers on one parallel port, each with its own members, programmed over a serial line.
//!
//! # The lines of a node
//!
//! | line | to or from the hardware | carries |
//! |------|------|------|
//! | D0..D4 | to | arrival in channel 0..4 |
//! | D5 | to | serial clock |
//! | D6 | to | serial data |
//! | D7 | to | serial select |
//! | status 0..3 | from | release of channel 0..3, the same level for all nodes |
//! | status 4 | from | the reply while the node's own session is open, else the release of channel 4 |
//!
//! # A channel
//!
//! For its members a channel is the machine of version 1, with the same latency
//! [`LATENCY_EDGES`](crate::LATENCY_EDGES):
//! its level toggles when every member's line differs from it. Lines of other nodes are ignored.
//! A channel without members never toggles.
//! After power-on all nodes are members of channel 0, and the other channels have no members.
//!
//! # Programming
//!
//! A node raises select, shifts a request in and a reply out ([`frame`]), and lowers select.
//! Data are sampled at the rising clock; after the last bit of the request the first bit of the reply is valid,
//! and each further rising clock shifts out the next bit.
//! There is one receiver. Among the nodes that raise select,
//! the one with the lowest number gets the receiver and keeps it until its select falls
//! or its clock has not changed for the lease time.
//! A line changes when [`FILTER_EDGES`] samples agree, so a node holds each level for [`SETTLE_EDGES`] edges.
//!
//! A request takes effect only at the edge after its last bit, and only if its check is correct.
//! [`Operation`] and [`Status`] define the rules:
//!
//! * only a free channel can be taken, by a node that will be a member;
//! * only a member can free a channel or set its limit;
//! * to take or free a channel, the synchronised lines of all old and new members must be idle.
//!
//! # Time limit
//!
//! A barrier is in progress from the first synchronised arrival to the release.
//! If the barrier lasts more than `limit` edges, the missing members are latched.
//! The latch keeps its value until the limit or the mask is set again.
//! The limit has no other effect: when the late members arrive, the channel releases.
//!
//! # Failed members
//!
//! The time limit makes each barrier a heartbeat, which shows whether all members are alive.
//! If the limit has expired for some members, and all other members wait and are the
//! majority, any waiting member may drop the late members ([`Operation::Drop`]).
//! From that edge on the late nodes are not members, their lines are
//! ignored, and the barrier in progress releases the others.
//! Two counters ([`Operation::ReadCounts`]) have the numbers of expired limits and of early
//! releases.
//!
//! # State
//!
//! As in version 1 the machine is a plain value. [`ChannelMachine::channel`] and [`ChannelMachine::serial`] return its
//! flip-flops, which the RTL is compared with, and [`ChannelMachine::load`] sets them.
//! An implementation of [`ChannelGates`] computes an edge in place of the model.

mod channel;
pub mod frame;
mod serial;

pub use channel::{Channel, MOST_COUNTED};
pub use serial::{FILTER_EDGES, Line, Phase, Serial};

use crate::MAX_NODES;
use channel::Change;
use core::fmt;
use frame::{Body, Counts, Identity, Operation, Status, VERSION};

/// Maximum number of channels, which is the number of status inputs of a parallel port.
pub const MAX_CHANNELS: usize = 5;

/// The lease time, as binary logarithm of a number of clock edges (2^24 edges are 0.67 s):
/// a node whose serial clock does not change for this time loses the receiver.
pub const LEASE_BITS: u32 = 24;

/// The number of edges with constant lines after which the hardware has sampled a line and reacted:
/// two synchroniser stages, the filter, the edge that shifts a bit, and the edge that executes the request.
pub const SETTLE_EDGES: u64 = 2 + FILTER_EDGES as u64 + 2;

/// The levels at the pins from the nodes; bit `n` of a mask belongs to node `n`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pins {
    /// The arrival lines of each channel.
    pub arrive: [u64; MAX_CHANNELS],
    /// The serial select line of each node.
    pub select: u64,
    /// The serial clock line of each node.
    pub clock: u64,
    /// The serial data line of each node.
    pub data: u64,
}

impl Pins {
    /// The number of lines from each node.
    pub const LINES: usize = MAX_CHANNELS + 3;

    /// Drives a line of a node. Lines are numbered: first the arrivals, then clock, data and select.
    /// A nonexistent line is ignored.
    pub fn set(&mut self, node: usize, line: usize, high: bool) {
        let Pins {
            arrive,
            clock,
            data,
            select,
        } = self;
        if let Some(wires) = arrive.iter_mut().chain([clock, data, select]).nth(line) {
            *wires = *wires & !(1 << node) | u64::from(high) << node;
        }
    }

    /// Returns the level of a node's line, numbered as in [`set`](Self::set);
    /// a nonexistent line is low.
    pub fn get(&self, node: usize, line: usize) -> bool {
        let serial = [self.clock, self.data, self.select];
        let wires = self.arrive.iter().chain(&serial).nth(line);
        wires.is_some_and(|wires| wires >> node & 1 == 1)
    }
}

/// The error for numbers of nodes and channels that no board can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadSize {
    /// The number of nodes requested.
    pub nodes: usize,
    /// The number of channels requested.
    pub channels: usize,
}

impl fmt::Display for BadSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} channels for {} nodes cannot be built: there are 1 to {MAX_CHANNELS} for 1 to {MAX_NODES}",
            self.channels, self.nodes
        )
    }
}

impl core::error::Error for BadSize {}

/// A replacement of [`ChannelMachine::step`] that computes clock edges in another way,
/// for example by the RTL in Verilator (`hdl::cosim`).
///
/// The computation is a pure function: all state is in the flip-flops.
pub trait ChannelGates: Sync {
    /// Returns the machine after one rising clock edge with these levels at the pins; its counts of releases are updated.
    fn edge(&self, before: &ChannelMachine, pins: &Pins) -> ChannelMachine;
}

/// The cycle-accurate model of one board: its channels and its serial receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChannelMachine {
    wires: u64,
    channels: usize,
    lease: u32,
    channel: [Channel; MAX_CHANNELS],
    serial: Serial,
}

impl ChannelMachine {
    /// Returns the board in its state after power-on.
    pub fn new(nodes: usize, channels: usize) -> Result<Self, BadSize> {
        if !(1..=MAX_NODES).contains(&nodes) || !(1..=MAX_CHANNELS).contains(&channels) {
            return Err(BadSize { nodes, channels });
        }
        let mut board = Self {
            wires: u64::MAX >> (MAX_NODES - nodes),
            channels,
            lease: 1 << LEASE_BITS,
            channel: [Channel::default(); MAX_CHANNELS],
            serial: Serial::new(),
        };
        board.channel[0].mask = board.wires;
        Ok(board)
    }

    /// Returns the board with a lease of 2^`bits` edges (4 to 31); tests use a lease shorter than 0.67 s.
    pub fn with_lease_bits(self, bits: u32) -> Self {
        let lease = 1 << bits.clamp(4, 31);
        Self { lease, ..self }
    }

    /// Returns the board with these flip-flops and counts of releases.
    pub const fn load(self, channel: [Channel; MAX_CHANNELS], serial: Serial) -> Self {
        Self {
            channel,
            serial,
            ..self
        }
    }

    /// Resets every flip-flop to its power-on level; the numbers of releases do not change.
    pub fn reset(&mut self) {
        for (number, channel) in self.channel.iter_mut().enumerate() {
            *channel = Channel {
                mask: if number == 0 { self.wires } else { 0 },
                releases: channel.releases,
                ..Channel::default()
            };
        }
        self.serial = Serial::new();
    }

    /// Performs one rising clock edge with these levels at the pins.
    pub fn step(&mut self, pins: &Pins) {
        let (reply, change) = match self.serial.request() {
            Some((request, right)) => self.answer(request, right),
            None => (Body::default(), None),
        };
        for (number, channel) in self.channel[..self.channels].iter_mut().enumerate() {
            let change = change.and_then(|(to, change)| (to == number).then_some(change));
            channel.step(pins.arrive[number] & self.wires, change);
        }
        let [select, clock, data] =
            [pins.select, pins.clock, pins.data].map(|lines| lines & self.wires);
        self.serial.step(select, clock, data, self.lease, reply);
    }

    /// Returns the reply to the request of this edge, and the change that the request makes.
    /// `right` is true if the check bits of the request are correct.
    fn answer(&self, request: Body, right: bool) -> (Body, Option<(usize, Change)>) {
        let number = usize::from(request.channel);
        let verdict = match Operation::from_code(request.code) {
            _ if !right => Err((Status::BadCheck, 0)),
            None => Err((Status::NoSuchOperation, 0)),
            Some(Operation::Identify) => Ok((self.identity().value(), None)),
            Some(_) if number >= self.channels => Err((Status::NoSuchChannel, 0)),
            Some(operation) => self.carry_out(operation, &self.channel[number], request.value),
        };
        let (status, value, change) = match verdict {
            Ok((value, change)) => (Status::Done, value, change),
            Err((refusal, value)) => (refusal, value, None),
        };
        let reply = Body {
            code: status as u8,
            channel: request.channel,
            value,
        };
        (reply, change.map(|change| (number, change)))
    }

    fn carry_out(
        &self,
        operation: Operation,
        channel: &Channel,
        argument: u64,
    ) -> Result<(u64, Option<Change>), (Status, u64)> {
        let mask = channel.mask;
        let me = self.serial.grant;
        match operation {
            Operation::Identify => Ok((self.identity().value(), None)),
            Operation::ReadMask => Ok((mask, None)),
            Operation::ReadArrived => Ok((channel.arrived(), None)),
            Operation::ReadLate => Ok((channel.late, None)),
            Operation::ReadCounts => Ok((
                Counts {
                    expired: channel.expired,
                    early: channel.early,
                }
                .value(),
                None,
            )),
            Operation::Drop => {
                let arrived = channel.arrived();
                let awaited = channel.is_overdue() && argument == mask & !arrived;
                match () {
                    () if mask & me == 0 => Err((Status::NotMember, mask)),
                    () if !awaited => Err((Status::NotLate, arrived)),
                    () if arrived.count_ones() <= argument.count_ones() => {
                        Err((Status::Minority, arrived))
                    }
                    () => Ok((arrived, Some(Change::Keep(arrived)))),
                }
            }
            Operation::SetLimit => match u32::try_from(argument) {
                Err(_) => Err((Status::BadValue, argument >> 32 << 32)),
                Ok(_) if mask & me == 0 => Err((Status::NotMember, mask)),
                Ok(limit) => Ok((argument, Some(Change::Limit(limit)))),
            },
            Operation::SetMask => {
                let not_nodes = argument & !self.wires;
                // A node can take a channel only as a future member, and free it only as a present member.
                let concerned = if argument == 0 { mask } else { argument };
                let not_idle = channel.not_idle(mask | argument);
                match () {
                    () if not_nodes != 0 => Err((Status::BadValue, not_nodes)),
                    () if concerned != 0 && concerned & me == 0 => Err((Status::NotMember, mask)),
                    () if argument == mask => Ok((mask, None)),
                    () if argument != 0 && mask != 0 => Err((Status::Taken, mask)),
                    () if not_idle != 0 => Err((Status::NotIdle, not_idle)),
                    () => Ok((argument, Some(Change::Mask(argument)))),
                }
            }
        }
    }

    /// Simulates exactly `cycles` steps with constant pins, in time independent of `cycles`.
    ///
    /// The number of steps taken is at most a small multiple of [`SETTLE_EDGES`],
    /// because with constant pins each counter reaches its end once.
    pub fn fast_forward(&mut self, pins: &Pins, cycles: u64) {
        self.fast_forward_by(cycles, u64::MAX, |machine| machine.step(pins));
    }

    /// As [`ChannelMachine::fast_forward`], with edges computed by `step`, for example by gates.
    /// Takes at most `patience` steps and then returns,
    /// although edges remain if the machine never becomes stable.
    ///
    /// If a step has changed only counters, further steps only increment them
    /// until one of them reaches its end.
    /// The edges before that end are skipped, and the edge at the end is computed by a step.
    pub fn fast_forward_by(
        &mut self,
        mut cycles: u64,
        mut patience: u64,
        mut step: impl FnMut(&mut Self),
    ) {
        while cycles > 0 && patience > 0 {
            let before = *self;
            step(self);
            cycles -= 1;
            patience -= 1;
            if self.without_counters() != before.without_counters() {
                continue;
            }
            match self.edges_to_a_counter(&before) {
                Some(edges) => {
                    let edges = edges.min(cycles);
                    self.count_on(&before, edges as u32);
                    cycles -= edges;
                }
                // A counter was reset at this edge; only the next edge shows whether it is incremented.
                None if *self != before => {}
                None => return,
            }
        }
    }

    fn without_counters(&self) -> Self {
        let mut still = *self;
        still.serial.age = 0;
        still.channel.iter_mut().for_each(|c| c.count = 0);
        still
    }

    /// Returns the number of edges until a counter reaches its end;
    /// `None` if the edge after `before` incremented no counter.
    fn edges_to_a_counter(&self, before: &Self) -> Option<u64> {
        // Gates may count beyond the model's limit. The difference is then 0,
        // so the next edge is computed by a step.
        let lease = counted(self.serial.age, before.serial.age)
            .then_some((self.lease - 1).saturating_sub(self.serial.age));
        let limits = self.channel.iter().zip(&before.channel);
        let limits = limits.filter(|(now, then)| counted(now.count, then.count));
        let limits = limits.map(|(now, _)| now.limit.saturating_sub(now.count));
        limits.chain(lease).min().map(u64::from)
    }

    fn count_on(&mut self, before: &Self, edges: u32) {
        if counted(self.serial.age, before.serial.age) {
            self.serial.age += edges;
        }
        for (now, then) in self.channel.iter_mut().zip(&before.channel) {
            if counted(now.count, then.count) {
                now.count += edges;
            }
        }
    }

    /// Returns the levels of the channels' releases, bit `c` for channel `c`.
    pub fn releases(&self) -> u8 {
        let levels = self.channel.iter().enumerate();
        levels.fold(0, |bits, (number, c)| bits | u8::from(c.level) << number)
    }

    /// Returns the number of releases of all channels since power-on.
    pub fn all_releases(&self) -> u64 {
        self.channel.iter().map(|channel| channel.releases).sum()
    }

    /// Returns the level of status line 4 at each node:
    /// the reply while the node's session is open, else the release of channel 4.
    pub fn last_line(&self) -> u64 {
        let release = if self.channel[MAX_CHANNELS - 1].level {
            self.wires
        } else {
            0
        };
        match self.serial.open() {
            true if self.serial.bit() => release | self.serial.grant,
            true => release & !self.serial.grant,
            false => release,
        }
    }

    /// Returns the level that a node reads at the status line of a channel.
    pub fn reads(&self, node: usize, line: usize) -> bool {
        if line + 1 == MAX_CHANNELS {
            self.last_line() >> node & 1 == 1
        } else {
            self.releases() >> line & 1 == 1
        }
    }

    /// Returns the flip-flops of a channel; `None` if there is no such channel.
    pub fn channel(&self, number: usize) -> Option<&Channel> {
        self.channel[..self.channels].get(number)
    }

    /// Returns the flip-flops of the serial receiver.
    pub const fn serial(&self) -> &Serial {
        &self.serial
    }

    /// Returns the mask of existing nodes.
    pub const fn wires(&self) -> u64 {
        self.wires
    }

    /// Returns the board's identity, its reply to [`Operation::Identify`].
    pub const fn identity(&self) -> Identity {
        Identity {
            version: VERSION,
            nodes: self.wires.count_ones() as u8,
            channels: self.channels as u8,
        }
    }
}

/// Returns true if the counter was incremented by one,
/// and false if it did not change or was reset to zero.
const fn counted(now: u32, then: u32) -> bool {
    now == then.wrapping_add(1)
}

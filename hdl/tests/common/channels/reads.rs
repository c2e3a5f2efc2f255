//! Stimuli of version 2 that make each bit of its state visible at the pins: every state is read after each event.

use super::Edge;
use super::directed::{HOLD, Script, body};
use fpga_model::channels::frame::{FRAME_BITS, Operation};
use fpga_model::channels::{ChannelMachine, Pins};

const READS: [Operation; 4] = [
    Operation::ReadMask,
    Operation::ReadArrived,
    Operation::ReadLate,
    Operation::ReadCounts,
];

impl Script {
    /// Reads all of a channel's state, each part by another node.
    pub(super) fn read(&mut self, channel: usize) {
        for (number, operation) in READS.into_iter().enumerate() {
            let node = (number + channel) % self.nodes();
            self.ask(node, operation as u8, channel as u64, 0);
        }
    }

    pub(super) fn nodes(&self) -> usize {
        self.machine.wires().count_ones() as usize
    }

    pub(super) fn channels(&self) -> usize {
        usize::from(self.machine.identity().channels)
    }

    /// Makes these nodes the channel's members, with all lines at its level.
    pub(super) fn claim(&mut self, channel: usize, members: u64) {
        let node = |mask: u64| mask.trailing_zeros() as usize;
        self.pins.arrive[channel] = self.level(channel);
        self.hold(HOLD);
        let number = channel as u64;
        let present = self
            .machine
            .channel(channel)
            .map_or(0, |channel| channel.mask);
        if present != 0 {
            self.ask(node(present), Operation::SetMask as u8, number, 0);
        }
        if members != 0 {
            self.ask(node(members), Operation::SetMask as u8, number, members);
        }
    }

    pub(super) fn set_limit(&mut self, channel: usize, limit: u64) {
        let present = self
            .machine
            .channel(channel)
            .map_or(0, |channel| channel.mask);
        let node = present.trailing_zeros() as usize;
        self.ask(node, Operation::SetLimit as u8, channel as u64, limit);
    }
}

/// Returns barriers of each channel, at both levels, whose state is read after each arrival, in each order of the nodes,
/// before and after the time limit, after a late arrival has withdrawn, and after a reset.
pub fn every_state(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let wires = blank.wires();
    let nodes = script.nodes();
    for channel in 0..script.channels() {
        script.claim(channel, wires);
        for first in 0..nodes {
            for level in 0..2 {
                // Without a limit no node is late; with a limit of 9 edges the first reading finds the missing nodes.
                script.set_limit(channel, if level == 0 { 9 } else { 0 });
                for step in 0..nodes {
                    script.arrive(channel, 1 << ((first + step) % nodes));
                    script.hold(20);
                    script.read(channel);
                }
            }
        }
        // The missing nodes stay recorded while an arrival is withdrawn and another node arrives.
        script.set_limit(channel, 9);
        for changed in [0b001, 0b010, 0b010, 0b001, 0b100, 0b100] {
            script.arrive(channel, changed & wires);
            script.hold(20);
            script.read(channel);
        }
        // A reset in the middle of a barrier, with other members.
        script.claim(channel, wires & 0b011);
        script.set_limit(channel, 9);
        script.arrive(channel, 1);
        script.hold(20);
        script.reset();
        script.read(channel);
        script.arrive(channel, 1);
        script.hold(20);
        script.read(channel);
    }
    script.edges
}

/// Returns the counters of each channel, read at each power of two and around it, up to more than they can count.
pub fn counts(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let wires = blank.wires();
    let read = Operation::ReadCounts as u8;
    let is_read = |count: u32| count < 4 || (count + 1) & count == 0 || count & (count - 1) == 0;
    for channel in 0..script.channels() {
        let number = channel as u64;
        script.claim(channel, wires);
        script.set_limit(channel, 3);
        for count in 1..258 {
            script.arrive(channel, 1);
            script.hold(8);
            if is_read(count) {
                script.ask(0, read, number, 0);
            }
            // The second count of a barrier needs a time without a limit that has expired.
            script.arrive(channel, 1);
            script.hold(4);
        }
        // The early releases are counted beside a full counter of limits, then alone.
        for _ in 0..2 {
            for count in 1..258 {
                script.arrive(channel, wires & !0b10);
                script.hold(3);
                // An arrival of only two edges causes a release, which is counted as early when the arrival ends.
                script.arrive(channel, 0b10);
                script.hold(2);
                script.arrive(channel, 0b10);
                script.hold(4);
                script.pins.arrive[channel] = script.level(channel);
                script.hold(4);
                if is_read(count) {
                    script.ask(0, read, number, 0);
                }
            }
            script.claim(channel, wires);
        }
        // An arrival that ends exactly 1 to 6 edges after the release, at both levels.
        for edges in 1..7 {
            for _ in 0..2 {
                script.arrive(channel, wires & !0b10);
                script.hold(6);
                script.arrive(channel, 0b10);
                script.hold(edges);
                // The line then has its level before the arrival for 8 edges;
                // the release is counted as early at most once, not at each of these edges.
                script.arrive(channel, 0b10);
                script.hold(8);
                script.pins.arrive[channel] = script.level(channel);
                script.hold(8);
                script.ask(0, read, number, 0);
            }
        }
    }
    script.edges
}

/// Returns requests that differ from another in one bit: of the argument, of the time limit, or of the check.
pub fn every_bit(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let wires = blank.wires();
    let [set_mask, set_limit, drop] =
        [Operation::SetMask, Operation::SetLimit, Operation::Drop].map(|code| code as u8);
    // A bit of the check or of the body is wrong.
    for bit in 0..FRAME_BITS {
        let frame = body(set_limit, 0, 0x0123_4567).frame() ^ 1 << bit;
        script.session(0, frame, FRAME_BITS * 2);
    }
    for channel in 0..script.channels() {
        let number = channel as u64;
        script.claim(channel, wires);
        // With an additional high bit, the limit of nine edges does not expire here.
        for bit in 4..32 {
            script.set_limit(channel, 1 << bit | 9);
            script.arrive(channel, 1);
            script.hold(20);
            script.ask(0, Operation::ReadCounts as u8, number, 0);
            script.arrive(channel, 1);
            script.hold(HOLD);
        }
        script.set_limit(channel, 9);
        script.arrive(channel, wires & !1);
        script.hold(20);
        for bit in 0..64 {
            // Node 0 is missing; no other node may be dropped, alone or with it.
            script.ask(1, drop, number, 1 << bit | 1 << ((bit + 1) % 64));
        }
        script.arrive(channel, wires & !1);
        script.hold(HOLD);
        for bit in 0..64 {
            script.ask(0, set_limit, number, 1 << bit);
            script.claim(channel, 0);
            script.ask(0, set_mask, number, 1 << bit);
            script.ask(0, set_mask, number, 1 << bit | 1);
            script.claim(channel, wires);
        }
    }
    script.edges
}

/// Returns a barrier of a channel whose limit of 2^`bits` + `more` edges expires just before the last arrivals,
/// and the number of edges of the stimulus after which [`wait`] follows: 2^`bits` - 1 edges at which only the channel's counter changes.
pub fn long_barrier(
    blank: ChannelMachine,
    channel: usize,
    bits: u32,
    more: usize,
) -> (Vec<Edge>, usize) {
    let mut script = Script::new(blank);
    let wires = blank.wires();
    script.claim(channel, wires);
    script.set_limit(channel, (1 << bits) + more as u64);
    script.hold(20);
    script.arrive(channel, 1);
    let is_idle = |script: &Script| {
        let channel = script.machine.channel(channel);
        channel.is_none_or(|channel| channel.arrived() == 0)
    };
    while is_idle(&script) {
        script.hold(1);
    }
    let edge = script.edges.len();
    wait(&mut script.machine, &script.pins, bits);
    script.hold(more);
    script.arrive(channel, wires & !1);
    script.hold(8);
    let read = Operation::ReadCounts as u8;
    script.ask(0, read, channel as u64, 0);
    (script.edges, edge)
}

/// Performs 2^`bits` - 1 edges with these levels at the pins.
pub fn wait(machine: &mut ChannelMachine, pins: &Pins, bits: u32) {
    machine.fast_forward(pins, (1 << bits) - 1);
}

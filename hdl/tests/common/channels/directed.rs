//! The directed stimulus of version 2: each rule, each refusal, each hazard, and events that coincide at one edge.

use super::{Edge, LEASE_BITS, apply};
use fpga_model::channels::frame::{Body, FRAME_BITS, Operation};
use fpga_model::channels::{ChannelMachine, Phase, Pins};

/// Number of edges for which a serial line keeps a level: the filter's need and a margin.
pub(super) const HOLD: usize = 5;

pub(super) struct Script {
    pub(super) machine: ChannelMachine,
    pub(super) pins: Pins,
    pub(super) edges: Vec<Edge>,
}

/// Returns the stimulus for the board `blank`, which must have at least three nodes and two channels.
pub fn directed(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let wires = blank.wires();
    let last = wires.count_ones() as usize - 1;
    let channels = u64::from(blank.identity().channels);
    let (set_mask, set_limit) = (Operation::SetMask as u8, Operation::SetLimit as u8);
    let pair = 1 | 1 << last;

    // Every request about every channel, by a member and by a non-member, while no node has arrived.
    // Each request is also sent with wrong check bits.
    script.ask(0, set_mask, 1, pair);
    for node in [0, 1] {
        for code in 0..=9 {
            for channel in [1, channels] {
                script.ask(node, code, channel, wires & !1);
            }
            script.session(node, body(code, 1, pair).frame() ^ 1, FRAME_BITS * 2);
        }
        script.ask(node, set_limit, 1, 1 << 40);
        script.ask(node, set_limit, 1, 7);
    }
    // Requests for channel 1, whose members are nodes 0 and `last`:
    // node 0 names nodes that do not exist, node 1 claims the channel,
    // node 0 asks for other members, and node 0 repeats the present members.
    script.ask(0, set_mask, 1, u64::MAX << last << 1 | 1);
    script.ask(1, set_mask, 1, 0b10);
    script.ask(0, set_mask, 1, 1);
    script.ask(0, set_mask, 1, pair);

    // Barriers of channel 1 to both levels: one node arrives, the state is read, the limit expires, the other arrives.
    for _ in 0..2 {
        script.ask(last, set_limit, 1, 9);
        script.arrive(1, 1);
        script.hold(30);
        for read in [
            Operation::ReadArrived,
            Operation::ReadLate,
            Operation::ReadMask,
        ] {
            script.ask(1, read as u8, 1, 0);
        }
        // While a node has arrived, a change of the members is refused and a change of the limit is accepted.
        script.ask(0, set_mask, 1, 0);
        script.ask(0, set_limit, 1, 11);
        script.arrive(1, 1 << last);
        script.hold(8);
    }
    // A node arrives and withdraws its arrival, at both levels.
    for _ in 0..2 {
        script.arrive(1, 1);
        script.hold(5);
        script.arrive(1, 1);
        script.hold(5);
        script.arrive(1, pair);
        script.hold(8);
    }
    // The channel is freed and claimed again, now while its level is high.
    script.arrive(1, pair);
    script.hold(6);
    script.ask(last, set_mask, 1, 0);
    // A new member's line must be at the channel's level; tested at the high and at the low level.
    script.ask(last, set_mask, 1, pair | 0b10);
    script.arrive(1, 0b10);
    script.hold(6);
    script.ask(last, set_mask, 1, pair | 0b10);
    script.arrive(1, pair | 0b10);
    script.hold(6);
    script.ask(0, set_mask, 1, 0);
    // Node 0 arrives at each edge around the edge at which the channel is claimed or freed.
    for offset in 0..8 {
        for mask in [pair, 0] {
            script.ask_and(0, set_mask, 1, mask, offset);
            script.hold(6);
            // Whether the request was granted or not, all lines return to the channel's level.
            let level = script
                .machine
                .channel(1)
                .is_some_and(|channel| channel.level);
            script.pins.arrive[1] = if level { wires } else { 0 };
            script.hold(6);
            let members = script.machine.channel(1).map_or(0, |channel| channel.mask);
            if members != mask {
                script.ask(0, set_mask, 1, mask);
            }
        }
    }
    // At the low and at the high level of the channel: members that are late at the time limit
    // are dropped only if all other members have arrived and are the majority.
    let drop = Operation::Drop as u8;
    for _ in 0..2 {
        script.ask(0, set_mask, 1, 0);
        script.ask(0, set_mask, 1, pair);
        script.ask(0, set_limit, 1, 9);
        script.arrive(1, 1);
        script.hold(30);
        script.ask(1, drop, 1, 1 << last);
        script.ask(0, drop, 1, u64::MAX << last << 1 | 1 << last);
        script.ask(0, drop, 1, 1);
        script.ask(0, drop, 1, 1 << last);
        script.arrive(1, 1 << last);
        script.hold(8);
        script.ask(0, set_mask, 1, 0);
        // All nodes set their lines to the level, because all become members.
        script.pins.arrive[1] = script.level(1);
        script.hold(8);
        script.ask(0, set_mask, 1, 0b111);
        script.ask(0, set_limit, 1, 9);
        script.arrive(1, 0b001);
        script.hold(30);
        script.ask(0, drop, 1, 0b100);
        script.arrive(1, 0b010);
        script.hold(8);
        script.ask(0, drop, 1, 0b100);
        script.ask(0, Operation::ReadCounts as u8, 1, 0);
        // The two remaining members complete a barrier, regardless of the dropped node's line.
        script.arrive(1, 0b111);
        script.hold(8);
        script.arrive(1, 0b100);
        script.hold(8);
        // An arrival of only two edges causes a release, which is counted as early when the arrival ends.
        for _ in 0..2 {
            script.arrive(1, 0b01);
            script.hold(8);
            script.arrive(1, 0b10);
            script.hold(2);
            script.arrive(1, 0b10);
            script.hold(8);
            script.pins.arrive[1] = script.level(1);
            script.hold(8);
        }
        script.ask(1, Operation::ReadCounts as u8, 1, 0);
        // Five releases have occurred, so the next iteration has the other level.
    }
    script.ask(0, set_mask, 1, 0);
    script.ask(0, set_mask, 1, pair);
    // Frames interrupted after every 13th bit, and a frame with three additional bits.
    for bits in (0..FRAME_BITS * 2).step_by(13) {
        script.session(1, body(set_mask, 1, 0b10).frame(), bits);
    }
    script.session(
        last,
        body(Operation::Identify as u8, 0, 0).frame(),
        FRAME_BITS * 2 + 3,
    );
    // Nodes 0 and `last` request the receiver: node 0, the lower one, is granted it first.
    script.serial(0, true, false, false);
    script.serial(last, true, false, false);
    script.hold(HOLD);
    script.serial(0, false, false, false);
    script.hold(HOLD);
    script.serial(last, false, false, false);
    script.hold(HOLD);
    // A silent node loses the receiver and is not granted it again before its select falls.
    // In that time another node gets the receiver.
    script.serial(0, true, false, false);
    script.hold((1 << LEASE_BITS) + 20);
    script.ask(last, Operation::Identify as u8, 0, 0);
    script.hold(HOLD);
    script.ask(0, Operation::Identify as u8, 0, 0);
    // Pulses of 1 to 5 edges on each serial line of the node that has the receiver.
    for width in 1..=5 {
        for line in 0..3 {
            script.serial(1, true, false, false);
            script.hold(2 * HOLD);
            script.serial(1, line != 0, line == 1, line == 2);
            script.hold(width);
            script.serial(1, true, false, false);
            script.hold(2 * HOLD);
            script.serial(1, false, false, false);
            script.hold(HOLD);
        }
    }
    // A falling select and a reset in each phase of a frame, with a high level at the reset.
    for phase in [Phase::Receive, Phase::Execute, Phase::Reply, Phase::Over] {
        for reset in [false, true] {
            script.pins.arrive[0] = wires;
            script.hold(5);
            script.until(0, phase);
            if reset {
                script.reset();
            }
            script.pins = Pins::default();
            script.hold(12);
        }
    }
    script.edges
}

/// Returns a stimulus with more expired limits and early releases of channel 0 than its counters can count,
/// followed by a change of members, which clears the counters.
///
/// The board `blank` must have at least two nodes.
pub fn saturating(blank: ChannelMachine) -> Vec<Edge> {
    const MORE_THAN_ALL: usize = u8::MAX as usize + 2;
    let mut script = Script::new(blank);
    let wires = blank.wires();
    let read = Operation::ReadCounts as u8;
    script.ask(0, Operation::SetLimit as u8, 0, 3);
    for _ in 0..MORE_THAN_ALL {
        script.arrive(0, 1);
        script.hold(8);
        script.arrive(0, wires & !1);
        script.hold(4);
    }
    for _ in 0..MORE_THAN_ALL {
        script.arrive(0, wires & !0b10);
        script.hold(3);
        // An arrival of only two edges causes a release, which is counted as early when the arrival ends.
        script.arrive(0, 0b10);
        script.hold(2);
        script.arrive(0, 0b10);
        script.hold(4);
        script.pins.arrive[0] = script.level(0);
        script.hold(4);
    }
    script.ask(0, read, 0, 0);
    script.ask(0, Operation::SetMask as u8, 0, 0);
    script.ask(0, Operation::SetMask as u8, 0, wires);
    script.ask(0, read, 0, 0);
    script.edges
}

/// Returns a stimulus with all nodes in each channel. The limits use every bit of their register.
/// Each node is late once, and once it keeps the receiver without sending.
pub fn every_channel(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let wires = blank.wires();
    let nodes = wires.count_ones();
    let [set_mask, set_limit] = [Operation::SetMask, Operation::SetLimit].map(|code| code as u8);
    for channel in 0..usize::from(blank.identity().channels) {
        let number = channel as u64;
        script.ask(0, set_mask, number, wires);
        for limit in [0, u64::from(u32::MAX), 0, 9] {
            script.ask(0, set_limit, number, limit);
        }
        for node in 0..nodes {
            script.arrive(channel, wires & !(1 << node));
            script.hold(20);
            script.ask(0, set_limit, number, 9);
            script.arrive(channel, 1 << node);
            script.hold(8);
        }
        script.ask(0, set_mask, number, 0);
    }
    // Each node requests the receiver and then sends nothing until the lease expires.
    for node in 0..nodes as usize {
        script.serial(node, true, false, false);
        script.hold((1 << LEASE_BITS) + 20);
        script.serial(node, false, false, false);
        script.hold(2 * HOLD);
    }
    script.edges
}

pub(super) fn body(code: u8, channel: u64, value: u64) -> Body {
    Body {
        code,
        channel: channel as u8,
        value,
    }
}

impl Script {
    pub(super) fn new(blank: ChannelMachine) -> Script {
        Script {
            machine: blank,
            pins: Pins::default(),
            edges: Vec::new(),
        }
    }

    pub(super) fn hold(&mut self, times: usize) {
        for _ in 0..times {
            self.edge(false);
        }
    }

    pub(super) fn reset(&mut self) {
        self.edge(true);
    }

    fn edge(&mut self, reset: bool) {
        let edge = Edge {
            reset,
            pins: self.pins,
        };
        apply(&mut self.machine, &edge);
        self.edges.push(edge);
    }

    /// Inverts the lines of these nodes (a bit mask) in a channel.
    pub(super) fn arrive(&mut self, channel: usize, nodes: u64) {
        self.pins.arrive[channel] ^= nodes;
    }

    /// Returns the lines' levels with which all nodes are at this channel's level.
    pub(super) fn level(&self, channel: usize) -> u64 {
        let level = self.machine.channel(channel).map(|channel| channel.level);
        match level {
            Some(true) => self.machine.wires(),
            _ => 0,
        }
    }

    pub(super) fn serial(&mut self, node: usize, select: bool, clock: bool, data: bool) {
        for (lines, level) in [
            (&mut self.pins.select, select),
            (&mut self.pins.clock, clock),
            (&mut self.pins.data, data),
        ] {
            *lines = *lines & !(1 << node) | u64::from(level) << node;
        }
    }

    pub(super) fn ask(&mut self, node: usize, code: u8, channel: u64, value: u64) {
        let frame = body(code, channel, value).frame();
        self.session(node, frame, FRAME_BITS * 2);
    }

    /// Sends the first `clocks` bits of a request and its reply in a new session.
    pub(super) fn session(&mut self, node: usize, frame: u128, clocks: u8) {
        self.begin(node);
        for bit in 0..clocks {
            self.clock(node, frame, bit);
        }
        self.end(node);
    }

    /// Sends a request; node 0 arrives `offset` edges after the clock of the last bit rises.
    fn ask_and(&mut self, node: usize, code: u8, channel: u64, value: u64, offset: usize) {
        let frame = body(code, channel, value).frame();
        self.begin(node);
        for bit in 0..FRAME_BITS - 1 {
            self.clock(node, frame, bit);
        }
        self.serial(node, true, true, frame & 1 == 1);
        for edge in 0..10 {
            if edge == offset {
                self.arrive(channel as usize, 1);
            }
            self.hold(1);
        }
        self.end(node);
    }

    /// Runs a session up to this phase; `Phase::Over` is after all clocks.
    fn until(&mut self, node: usize, phase: Phase) {
        let frame = body(Operation::Identify as u8, 0, 0).frame();
        self.begin(node);
        let clocks = match phase {
            Phase::Receive => 5,
            Phase::Execute => FRAME_BITS - 1,
            Phase::Reply => FRAME_BITS + 5,
            Phase::Over => FRAME_BITS * 2,
        };
        for bit in 0..clocks {
            self.clock(node, frame, bit);
        }
        if phase == Phase::Execute {
            self.serial(node, true, true, frame & 1 == 1);
            // Select falls early enough that the filtered select falls at the edge that completes the request.
            self.hold(1);
            self.pins.select = 0;
            while self.machine.serial().phase == Phase::Receive && self.machine.serial().grant != 0
            {
                self.hold(1);
            }
        }
    }

    pub(super) fn begin(&mut self, node: usize) {
        self.serial(node, true, false, false);
        self.hold(HOLD + 2);
    }

    pub(super) fn clock(&mut self, node: usize, frame: u128, bit: u8) {
        // After the request's frame the data line is low.
        let data = bit < FRAME_BITS && frame >> (FRAME_BITS - 1 - bit) & 1 == 1;
        self.serial(node, true, true, data);
        self.hold(HOLD);
        self.serial(node, true, false, data);
        self.hold(HOLD);
    }

    pub(super) fn end(&mut self, node: usize) {
        self.serial(node, false, false, false);
        self.hold(HOLD + 4);
    }
}

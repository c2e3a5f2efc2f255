//! Stimuli of version 2 for rare coincidences: each was written for mutants that the other stimuli do not detect.

use super::Edge;
use super::LEASE_BITS;
use super::directed::{HOLD, Script, body};
use fpga_model::channels::ChannelMachine;
use fpga_model::channels::frame::{FRAME_BITS, Operation};

/// Returns every operation code with existing and other channels and with alternating bits, sent by each node in turn.
pub fn every_code(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let channels = script.channels() as u64;
    let values = [u64::MAX, 0x5555_5555_5555_5555, 0xaaaa_aaaa_aaaa_aaaa];
    for code in 0..16 {
        for (number, channel) in (0..=channels).chain([4, 8, 12, 15]).enumerate() {
            let turn = number + usize::from(code);
            let node = turn % script.nodes();
            script.ask(node, code, channel, values[turn % 3]);
        }
    }
    script.edges
}

/// Returns barriers of each channel that end at each edge around the expiry of the limit, at both levels, and barriers of single members.
pub fn exact_limits(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let wires = blank.wires();
    for channel in 0..script.channels() {
        script.claim(channel, wires);
        script.set_limit(channel, 6);
        for gap in 1..12 {
            for _ in 0..2 {
                script.arrive(channel, 1);
                script.hold(gap);
                script.arrive(channel, wires & !1);
                script.hold(12);
            }
            script.ask(1, Operation::ReadCounts as u8, channel as u64, 0);
            script.ask(2, Operation::ReadLate as u8, channel as u64, 0);
        }
        for node in 0..script.nodes() {
            script.claim(channel, 1 << node);
            for _ in 0..2 {
                script.arrive(channel, 1 << node);
                script.hold(12);
            }
        }
    }
    script.edges
}

/// Returns attempts to drop each node of each channel, at both levels: before the limit has expired, as a minority,
/// as one of two, and then successfully.
pub fn drops(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let wires = blank.wires();
    let drop = Operation::Drop as u8;
    for channel in 0..script.channels() {
        let number = channel as u64;
        for late in 0..script.nodes() {
            let other = (late + 1) % script.nodes();
            for level in 0..2 {
                // One of two members drops the other.
                script.claim(channel, 1 << late | 1 << other);
                script.set_limit(channel, 9);
                script.arrive(channel, 1 << other);
                script.hold(30);
                script.ask(other, drop, number, 1 << late);
                // One of three members drops the others.
                script.claim(channel, wires);
                script.set_limit(channel, 9);
                script.arrive(channel, 1 << other);
                script.hold(30);
                script.ask(other, drop, number, wires & !(1 << other));
                // All others drop one member: without a limit, before it expires, and after it has expired.
                script.claim(channel, wires);
                script.arrive(channel, wires & !(1 << late));
                script.hold(30);
                script.ask(other, drop, number, 1 << late);
                script.set_limit(channel, 1 << 31);
                script.ask(other, drop, number, 1 << late);
                script.set_limit(channel, 9);
                script.hold(30);
                // Another operation with the argument of the drop changes nothing.
                let reads = Operation::ReadLate as u8;
                script.ask(other, reads, number, 1 << late);
                script.ask(other, drop, number, 1 << late);
                script.read(channel);
                // An odd number of releases changes the level for the next turn.
                script.claim(channel, 1 << late);
                script.arrive(channel, 1 << late);
                script.hold(12);
                if level == 1 {
                    script.arrive(channel, 1 << late);
                    script.hold(12);
                }
            }
        }
    }
    script.edges
}

/// Returns claims of each set of at least two nodes while the lines of each set of nodes are not at the channel's level.
pub fn unquiet_claims(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let wires = blank.wires() & 0b111;
    for channel in 0..script.channels() {
        for members in [0b011, 0b101, 0b110, 0b111] {
            for unquiet in 1..=wires {
                script.claim(channel, 0);
                script.pins.arrive[channel] ^= unquiet;
                script.hold(HOLD);
                let node = u64::trailing_zeros(members) as usize;
                script.ask(node, Operation::SetMask as u8, channel as u64, members);
                script.ask(node, Operation::ReadMask as u8, channel as u64, 0);
            }
        }
    }
    script.edges
}

/// Returns sessions that stop in a reply until the lease expires, while another node requests the receiver,
/// sessions of two nodes at once, and sessions with more clocks than two frames.
pub fn sessions(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let frame = body(Operation::Identify as u8, 0, 0).frame();
    let nodes = script.nodes();
    for silent in 0..nodes {
        for other in (0..nodes).filter(|other| *other != silent) {
            for phase in 0..2 {
                script.begin(silent);
                for bit in 0..FRAME_BITS {
                    script.clock(silent, frame, bit);
                }
                // The reply's first high bit stays on the line.
                let mut bit = FRAME_BITS;
                while script.machine.last_line() == 0 && bit < FRAME_BITS * 2 {
                    script.clock(silent, frame, bit);
                    bit += 1;
                }
                if phase == 1 {
                    script.serial(other, true, false, false);
                }
                script.hold((1 << LEASE_BITS) + 20);
                // The silent node's select is still high.
                script.ask(other, Operation::Identify as u8, 0, 0);
                script.hold(2 * HOLD);
                script.end(silent);
                script.ask(silent, Operation::Identify as u8, 0, 0);
            }
            // The other node requests the receiver in the middle of a session, and sends its own clock and data.
            script.begin(silent);
            for bit in 0..FRAME_BITS * 2 {
                if bit == 20 {
                    script.serial(other, true, false, false);
                }
                script.clock(silent, frame, bit);
                script.serial(other, bit >= 20, bit % 3 == 0, bit % 2 == 0);
            }
            script.end(silent);
            script.end(other);
        }
        // Resets with high serial lines, at each edge of a clock's level.
        for edges in 0..12 {
            script.begin(silent);
            script.serial(silent, true, true, true);
            script.hold(edges);
            script.reset();
            script.hold(12);
            script.end(silent);
        }
        for code in [Operation::Identify, Operation::ReadMask] {
            let frame = body(code as u8, 0, 0).frame();
            script.begin(silent);
            for _ in 0..4 {
                for bit in 0..FRAME_BITS {
                    script.clock(silent, frame, bit);
                }
            }
            script.end(silent);
        }
    }
    script.edges
}

/// Returns sessions in which a node loses the receiver while other nodes wait for it: with a high clock,
/// and two nodes that request it at the same edge.
pub fn handovers(blank: ChannelMachine) -> Vec<Edge> {
    let mut script = Script::new(blank);
    let frame = body(Operation::Identify as u8, 0, 0).frame();
    let nodes = script.nodes();
    for silent in 0..nodes {
        let others = (0..nodes).filter(|other| *other != silent);
        let others: Vec<usize> = others.collect();
        for &other in &others {
            for lines in 0..8 {
                let (clock, data) = (lines & 1 == 1, lines & 2 == 2);
                script.begin(silent);
                script.serial(silent, true, lines & 4 == 4, data);
                script.serial(other, true, clock, data);
                script.hold((1 << LEASE_BITS) + 20);
                // The clock is high when the session opens, so its fall and the next bits count, but not this level.
                script.serial(other, true, false, data);
                script.hold(2 * HOLD);
                for bit in 0..FRAME_BITS * 2 {
                    script.clock(other, frame, bit);
                }
                script.end(other);
                script.end(silent);
            }
        }
        // While the silent node is blocked, the others request the receiver at the same edge, an even or odd one.
        for edges in 0..2 {
            script.begin(silent);
            script.hold((1 << LEASE_BITS) + 20 + edges);
            let &[first, second] = &others[..2] else {
                continue;
            };
            script.serial(second, true, false, false);
            script.ask(first, Operation::Identify as u8, 0, 0);
            script.end(second);
            script.end(silent);
        }
    }
    script.edges
}

/// Returns requests after which exactly one bit of the computed check is wrong, for each bit.
pub fn wrong_checks(blank: ChannelMachine) -> Vec<Edge> {
    const POLYNOMIAL: u16 = 0x1021;
    let computed = |pattern: u16| {
        (0..16).rev().fold(0u16, |check, bit| {
            let feedback = check >> 15 != pattern >> bit & 1;
            check << 1 ^ if feedback { POLYNOMIAL } else { 0 }
        })
    };
    let mut script = Script::new(blank);
    let frame = body(Operation::Identify as u8, 0, 0).frame();
    for pattern in 1..=u16::MAX {
        if computed(pattern).is_power_of_two() {
            script.session(0, frame ^ u128::from(pattern), FRAME_BITS * 2);
        }
    }
    script.edges
}

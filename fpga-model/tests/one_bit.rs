//! Test of an AND-reduction of one bit per member with three channels (two for values,
//! one barrier), as docs/adr/0011 describes it for the existing hardware.
//!
//! Rounds use the two value channels alternately.
//! A member whose bit is 1 toggles its line of the round's value channel;
//! then every member enters the barrier. If all bits were 1, the value channel has released when
//! the barrier releases. If not, the members toggle their lines of the value channel back.

use fpga_model::channels::{Channel, ChannelMachine, Pins};

/// The index of the barrier's channel; the value channels have the next indices.
const BARRIER: usize = 0;

/// A generator of random numbers: G. Marsaglia, "Xorshift RNGs", 2003.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// The next action of a member.
#[derive(Clone, Copy)]
enum Step {
    Value,
    Arrive,
    Leave,
    Read,
}

/// A member; its lines equal the levels of the channels, except for lines that it has toggled.
struct Member {
    step: Step,
    /// Number of edges until the next action.
    delay: u64,
    /// The levels of the member's lines.
    lines: [bool; 3],
    /// The member's result of each completed round.
    found: Vec<bool>,
}

/// Simulates a round per element of `bits` on `values` value channels;
/// the members' delays are random.
/// Returns for each member its result of each round.
fn play(bits: &[Vec<bool>], values: usize, random: &mut Random) -> Vec<Vec<bool>> {
    let nodes = bits[0].len();
    let blank = ChannelMachine::new(nodes, 1 + values).expect("a legal size");
    let all = blank.wires();
    let channels = std::array::from_fn(|_| Channel {
        mask: all,
        ..Channel::default()
    });
    let mut machine = blank.load(channels, *blank.serial());
    let mut pins = Pins::default();
    let mut members: Vec<_> = (0..nodes)
        .map(|_| Member {
            step: Step::Value,
            delay: 0,
            lines: [false; 3],
            found: Vec::new(),
        })
        .collect();
    while members.iter().any(|member| member.found.len() < bits.len()) {
        let levels = machine.releases();
        for (node, member) in members.iter_mut().enumerate() {
            let round = member.found.len();
            if round == bits.len() {
                continue;
            }
            if member.delay > 0 {
                member.delay -= 1;
                continue;
            }
            let value = 1 + round % values;
            let level = |channel: usize| levels >> channel & 1 == 1;
            let mut moves = |lines: &mut [bool; 3], channel: usize| {
                lines[channel] = !lines[channel];
                pins.set(node, channel, lines[channel]);
            };
            member.step = match member.step {
                Step::Value => {
                    if bits[round][node] {
                        moves(&mut member.lines, value);
                    }
                    Step::Arrive
                }
                Step::Arrive => {
                    moves(&mut member.lines, BARRIER);
                    Step::Leave
                }
                Step::Leave if level(BARRIER) != member.lines[BARRIER] => continue,
                Step::Leave => Step::Read,
                Step::Read => {
                    let moved = bits[round][node];
                    let released = moved && level(value) == member.lines[value];
                    if moved && !released {
                        moves(&mut member.lines, value);
                    }
                    member.found.push(released);
                    Step::Value
                }
            };
            // A member is usually fast;
            // with probability 1/8 its next delay may exceed several rounds of the others.
            member.delay = match random.next() % 8 {
                0 => random.next() % 60,
                _ => random.next() % 3,
            };
        }
        machine.step(&pins);
    }
    members.into_iter().map(|member| member.found).collect()
}

/// Returns true if all members have the correct result in all rounds of random bits.
/// About half of the rounds have only ones.
fn is_right(nodes: usize, values: usize, seed: u64) -> bool {
    let mut random = Random(seed);
    let bits: Vec<Vec<bool>> = (0..200)
        .map(|_| {
            let missing = random.next() as usize % (2 * nodes);
            (0..nodes).map(|node| node != missing).collect()
        })
        .collect();
    let expected: Vec<bool> = bits
        .iter()
        .map(|round| round.iter().all(|bit| *bit))
        .collect();
    let found = play(&bits, values, &mut random);
    found.iter().all(|found| *found == expected)
}

#[test]
fn two_channels_in_turn_show_all_nodes_whether_all_bits_are_1() {
    for nodes in [1, 2, 3, 5, 9] {
        for seed in 1..=20 {
            assert!(is_right(nodes, 2, seed), "{nodes} nodes, seed {seed}");
        }
    }
}

/// With only one value channel, a slow member would read the release of the next round.
#[test]
fn one_value_channel_is_not_enough() {
    assert!((1..=20).any(|seed| !is_right(3, 1, seed)));
}

//! One bit of every member, and whether all are 1, by three channels: what docs/adr/0011 says of the hardware as it is.
//!
//! A member whose bit is 1 moves its line of the round's value channel, then every member moves the line of the barrier;
//! when the barrier has released, the value channel has released exactly if all bits were 1, else lines are taken back.

use fpga_model::channels::{Channel, ChannelMachine, Pins};

/// The barrier's channel; those of values follow.
const BARRIER: usize = 0;

/// G. Marsaglia, "Xorshift RNGs", 2003.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// What a member does next.
#[derive(Clone, Copy)]
enum Step {
    Value,
    Arrive,
    Leave,
    Read,
}

/// A member: its lines are at rest at the levels of its channels, but for what it has moved.
struct Member {
    step: Step,
    /// Edges until it does it.
    delay: u64,
    /// Its lines.
    lines: [bool; 3],
    /// What it has found in each round.
    found: Vec<bool>,
}

/// Plays rounds of these bits with so many value channels, every member at its own pace; what each found.
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
            // Mostly quick, now and then slower than several rounds of the others.
            member.delay = match random.next() % 8 {
                0 => random.next() % 60,
                _ => random.next() % 3,
            };
        }
        machine.step(&pins);
    }
    members.into_iter().map(|member| member.found).collect()
}

/// Whether all members of all rounds found what the bits say; rounds in which all bits are 1 come often.
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
fn two_value_channels_by_turns_tell_everybody_whether_all_bits_are_1() {
    for nodes in [1, 2, 3, 5, 9] {
        for seed in 1..=20 {
            assert!(is_right(nodes, 2, seed), "{nodes} nodes, seed {seed}");
        }
    }
}

/// A slow member would read the release of the round after its own.
#[test]
fn one_value_channel_is_not_enough() {
    assert!((1..=20).any(|seed| !is_right(3, 1, seed)));
}

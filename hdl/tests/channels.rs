//! Version 2: the model and the RTL are the same machine, edge by edge and flip-flop by flip-flop.
//!
//! The stimulus is what ports and cables do: members that come and go, frames good and bad, torn, noisy, too fast,
//! two nodes that speak at once, one that falls silent, and resets.
//! What it has reached is counted by the model, so that a stimulus that exercises nothing fails.

mod common;

use common::or_skip;
use fpga_model::channels::frame::{Body, FRAME_BITS, Operation, Status};
use fpga_model::channels::{ChannelMachine, Line, MAX_CHANNELS, Phase, Pins};
use hdl::tool::{self, Tool, ToolError};
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// Edges for each size.
const EDGES: usize = 40_000;

/// So short that the stimulus can wait for it.
const LEASE_BITS: u32 = 8;

const LIMIT: Duration = Duration::from_secs(300);

/// What is applied before one edge.
#[derive(Clone, Copy)]
struct Edge {
    reset: bool,
    pins: Pins,
}

fn apply(machine: &mut ChannelMachine, edge: &Edge) {
    if edge.reset {
        machine.reset();
    } else {
        machine.step(&edge.pins);
    }
}

/// xorshift64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// One write of a node's serial lines, and for how many edges they stay so.
#[derive(Clone, Copy)]
struct Write {
    select: bool,
    clock: bool,
    data: bool,
    edges: u64,
}

/// The writes of a session of one node, which may go wrong in every way.
fn session(random: &mut Random, machine: &ChannelMachine, node: usize) -> VecDeque<Write> {
    let channels = u64::from(machine.identity().channels);
    // Now and then one channel more than there are.
    let end = channels + u64::from(random.one_in(10));
    let channel = random.below(end);
    let mask = machine
        .channel(channel as usize)
        .map_or(0, |channel| channel.mask);
    let code = match random.below(16) {
        0..7 => Operation::SetMask as u8,
        7..11 => Operation::SetLimit as u8,
        11 => Operation::Identify as u8,
        12 => Operation::ReadMask as u8,
        13 => Operation::ReadArrived as u8,
        14 => Operation::ReadLate as u8,
        _ => random.below(16) as u8,
    };
    let value = match random.below(8) {
        0 => random.next(),
        1 => mask,
        _ if code == Operation::SetLimit as u8 => random.below(60),
        2..6 if mask != 0 => 0,
        _ => random.next() & machine.wires() | u64::from(!random.one_in(8)) << node,
    };
    let body = Body {
        code,
        channel: channel as u8,
        value,
    };
    let mut frame = body.frame();
    if random.one_in(12) {
        frame ^= 1 << random.below(u64::from(FRAME_BITS));
    }
    let aligned = frame << (128 - FRAME_BITS);
    let bits = match random.one_in(16) {
        true => random.below(u64::from(2 * FRAME_BITS)),
        false => u64::from(2 * FRAME_BITS),
    };
    // Four samples make a level, so a clock of three is not heard, and a data line may be late for a fast one.
    let edges = if random.one_in(16) {
        3
    } else {
        4 + random.below(3)
    };
    let write = |select, clock, data| Write {
        select,
        clock,
        data,
        edges,
    };
    let mut writes = VecDeque::from([write(false, random.one_in(10), false); 2]);
    writes.push_back(write(true, false, false));
    for bit in 0..bits {
        // Low after the end of the frame.
        let rest = aligned.checked_shl(bit as u32);
        let data = rest.is_some_and(|rest| rest >> 127 == 1);
        writes.push_back(write(true, true, data));
        writes.push_back(write(true, false, data));
    }
    if random.one_in(16) {
        // Silence, longer than the lease.
        writes.extend([write(true, false, false); 80]);
    }
    writes.extend([write(false, false, false); 3]);
    writes
}

/// What a stimulus has reached in the model.
#[derive(Debug, Default)]
struct Reached {
    answers: BTreeSet<u8>,
    answered: usize,
    masks_set: usize,
    releases: u64,
    latched: usize,
    leases_lost: usize,
}

fn stimulus(nodes: usize, blank: ChannelMachine) -> (Vec<Edge>, Reached) {
    let mut random = Random(0x2545_f491_4f6c_dd1d ^ nodes as u64);
    let mut machine = blank;
    let mut reached = Reached::default();
    let mut sessions: Vec<VecDeque<Write>> = vec![VecDeque::new(); nodes];
    let mut pins = Pins::default();
    let mut edges = Vec::with_capacity(EDGES);
    let mut calm = 0u64;
    for number in 0..EDGES {
        if number % 512 == 0 {
            // Channels where everybody rests for a while can be programmed.
            calm = random.next() | random.next() | random.next();
        }
        if random.one_in(600) || sessions.iter().all(VecDeque::is_empty) {
            let node = random.below(nodes as u64) as usize;
            if sessions[node].is_empty() {
                sessions[node] = session(&mut random, &machine, node);
            }
        }
        for (node, writes) in sessions.iter_mut().enumerate() {
            let Some(write) = writes.front_mut() else {
                continue;
            };
            for (lines, level) in [
                (&mut pins.select, write.select),
                (&mut pins.clock, write.clock),
                (&mut pins.data, write.data),
            ] {
                *lines = *lines & !(1 << node) | u64::from(level) << node;
            }
            write.edges -= 1;
            if write.edges == 0 {
                writes.pop_front();
            }
        }
        for (number, lines) in pins.arrive.iter_mut().enumerate() {
            let Some(channel) = machine.channel(number) else {
                continue;
            };
            let level = if channel.level { machine.wires() } else { 0 };
            match random.below(64) {
                _ if calm >> number & 1 == 1 => *lines = level,
                // Everybody goes to rest, everybody comes, some come, some withdraw.
                0 => *lines = level,
                1 => *lines = !level & machine.wires(),
                2..5 => *lines ^= random.next() & !(*lines ^ level) & machine.wires(),
                5 if random.one_in(16) => *lines ^= random.next() & machine.wires(),
                _ => {}
            }
        }
        let mut edge = Edge {
            reset: random.one_in(20_000),
            pins,
        };
        if random.one_in(1000) {
            // A pulse of one sample on some line.
            let node = 1 << random.below(nodes as u64);
            match random.below(3) {
                0 => edge.pins.select ^= node,
                1 => edge.pins.clock ^= node,
                _ => edge.pins.data ^= node,
            }
        }
        count(&mut reached, machine, &edge);
        apply(&mut machine, &edge);
        edges.push(edge);
    }
    reached.releases = (0..MAX_CHANNELS)
        .filter_map(|channel| machine.channel(channel))
        .map(|channel| channel.releases)
        .sum();
    (edges, reached)
}

fn count(reached: &mut Reached, before: ChannelMachine, edge: &Edge) {
    let mut after = before;
    apply(&mut after, edge);
    if edge.reset {
        return;
    }
    let (was, is) = (before.serial(), after.serial());
    if was.phase == Phase::Execute && is.phase == Phase::Reply {
        reached.answers.insert(Body::from_bits(is.shift).code);
        reached.answered += 1;
    }
    reached.leases_lost += usize::from(is.blocked & !was.blocked != 0);
    for (was, is) in (0..MAX_CHANNELS)
        .filter_map(|number| Option::zip(before.channel(number), after.channel(number)))
    {
        reached.masks_set += usize::from(was.mask != is.mask);
        reached.latched += usize::from(was.late == 0 && is.late != 0);
    }
}

/// Hexadecimal digits of a number of any width, given from its lowest word of so many bits; as `%h` prints it.
fn hex(words: &[u64], bits: usize) -> String {
    let digit = |number: usize| {
        (0..4).fold(0, |digit, bit| {
            let place = number * 4 + bit;
            let word = words.get(place / bits).copied().unwrap_or(0);
            digit | (word >> (place % bits) & 1) << bit
        })
    };
    let digits = (words.len() * bits).div_ceil(4);
    (0..digits).rev().fold(String::new(), |mut text, number| {
        let _ = write!(text, "{:x}", digit(number));
        text
    })
}

fn line(line: Line) -> u64 {
    let [stage1, stage2, level] = [line.stage1, line.stage2, line.level].map(u64::from);
    stage1 << 4 | stage2 << 3 | level << 2 | u64::from(line.run)
}

/// The names of the fields of a trace line and what the model has there.
fn state(machine: &ChannelMachine, nodes: usize, channels: usize) -> Vec<(&'static str, String)> {
    let of = |field: fn(&fpga_model::channels::Channel) -> u64, bits| {
        let words: Vec<u64> = (0..channels)
            .filter_map(|number| machine.channel(number))
            .map(field)
            .collect();
        hex(&words, bits)
    };
    let s = machine.serial();
    let one = |value: u64, bits| hex(&[value], bits);
    vec![
        ("release", one(u64::from(machine.releases()), channels)),
        ("last line", one(machine.last_line(), nodes)),
        ("stage1", of(|c| c.stage1, nodes)),
        ("stage2", of(|c| c.stage2, nodes)),
        ("mask", of(|c| c.mask, nodes)),
        ("late", of(|c| c.late, nodes)),
        ("limit", of(|c| u64::from(c.limit), 32)),
        ("count", of(|c| u64::from(c.count), 32)),
        ("select1", one(s.select1, nodes)),
        ("select2", one(s.select2, nodes)),
        ("grant", one(s.grant, nodes)),
        ("blocked", one(s.blocked, nodes)),
        ("age", one(u64::from(s.age), LEASE_BITS as usize)),
        ("select line", one(line(s.select), 5)),
        ("clock line", one(line(s.clock), 5)),
        ("data line", one(line(s.data), 5)),
        (
            "was",
            one(u64::from(s.select_was) << 1 | u64::from(s.clock_was), 2),
        ),
        ("phase", one(s.phase as u64, 2)),
        ("count of bits", one(u64::from(s.count), 7)),
        ("check", one(u64::from(s.check), 16)),
        (
            "shift",
            hex(
                &[s.shift as u64 & 0xf_ffff_ffff, (s.shift >> 36) as u64],
                36,
            ),
        ),
    ]
}

/// Lets Icarus play the stimulus; the trace it writes.
fn simulate(
    edges: &[Edge],
    nodes: usize,
    channels: usize,
    folder: &Path,
) -> Result<String, ToolError> {
    let lines = edges.iter().fold(String::new(), |mut text, edge| {
        let Pins {
            arrive,
            select,
            clock,
            data,
        } = edge.pins;
        let (reset, arrive) = (u8::from(edge.reset), hex(&arrive[..channels], nodes));
        let _ = writeln!(text, "{reset} {arrive} {select:x} {clock:x} {data:x}");
        text
    });
    tool::write(&folder.join("stimulus"), &lines)?;
    let sources = hdl::CHANNEL_RTL
        .into_iter()
        .chain([hdl::CHANNEL_TRACE_BENCH]);
    let sources = sources.map(|source| source.path().to_string_lossy().into_owned());
    let parameters = [
        ("N", nodes),
        ("C", channels),
        ("LEASE_BITS", LEASE_BITS as usize),
    ];
    let parameters = parameters.map(|(name, value)| format!("-Pchannel_trace_tb.{name}={value}"));
    let options = "-g2001 -Wall -Wno-timescale -s channel_trace_tb -o tb.vvp";
    let arguments = options.split(' ').map(String::from);
    let log = Tool::IVERILOG.run(
        "compiling version 2",
        arguments.chain(parameters).chain(sources),
        folder,
        LIMIT,
    )?;
    assert_eq!(log.trim(), "", "Icarus warns");
    let arguments = ["-n", "tb.vvp", "+stimulus=stimulus", "+trace=trace"];
    Tool::VVP.run("simulating version 2", arguments, folder, LIMIT)?;
    tool::read(&folder.join("trace"))
}

#[test]
fn the_channels_in_rtl_do_what_the_model_does_at_every_edge() {
    let mut all = Reached::default();
    for (nodes, channels) in [
        (1, 1),
        (2, 5),
        (3, 4),
        (4, 5),
        (5, 1),
        (6, 2),
        (7, 3),
        (8, 5),
        (60, 5),
        (64, 2),
    ] {
        let blank = ChannelMachine::new(nodes, channels)
            .expect("a legal size")
            .with_lease_bits(LEASE_BITS);
        let (edges, reached) = stimulus(nodes, blank);
        let folder = tempfile::tempdir().expect("a folder");
        let simulated = simulate(&edges, nodes, channels, folder.path());
        let Some(trace) = or_skip("version 2 in RTL is the model", simulated) else {
            return;
        };
        let mut machine = blank;
        let mut compared = 0;
        for (number, (edge, line)) in edges.iter().zip(trace.lines()).enumerate() {
            apply(&mut machine, edge);
            let expected = state(&machine, nodes, channels);
            let seen: Vec<_> = line.split(' ').collect();
            assert_eq!(seen.len(), expected.len(), "fields of the trace");
            for ((name, model), rtl) in expected.iter().zip(seen) {
                assert_eq!(
                    rtl,
                    model,
                    "{name} of {nodes} nodes, {channels} channels after edge {}",
                    number + 1
                );
            }
            compared += 1;
        }
        assert_eq!(compared, EDGES, "the trace of {nodes} nodes is cut short");
        println!("{nodes} nodes, {channels} channels: {compared} edges agree; {reached:?}");
        all.answers.extend(reached.answers);
        all.answered += reached.answered;
        all.releases += reached.releases;
        all.masks_set += reached.masks_set;
        all.latched += reached.latched;
        all.leases_lost += reached.leases_lost;
    }
    assert!(
        all.answered > 150
            && all.releases > 5000
            && all.masks_set > 15
            && all.latched > 0
            && all.leases_lost > 10,
        "the stimulus exercises too little: {all:?}"
    );
    let missing: Vec<_> = (1..=8)
        .filter(|code| !all.answers.contains(code))
        .map(Status::from_code)
        .collect();
    assert_eq!(missing, [], "answers that no stimulus has provoked");
}

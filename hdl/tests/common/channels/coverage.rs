//! Coverage of a stimulus, counted by the model.

use super::Edge;
use fpga_model::channels::frame::{Body, Operation, Status};
use fpga_model::channels::{ChannelMachine, MAX_CHANNELS, Phase};
use std::collections::{BTreeMap, BTreeSet};

/// Counts of the states and transitions that a stimulus reached, and of the replies to each operation.
#[derive(Debug, Default)]
pub struct Coverage {
    pub edges: u64,
    /// Number of replies by operation code (0 for a nonexistent operation) and status.
    pub answers: BTreeMap<(u8, u8), u64>,
    /// Number of transitions by the numbers of the old and the new phase of the frame; 9 means a reset.
    pub frame: BTreeMap<(u8, u8), u64>,
    /// Numbers of a channel's events ([`CHANNEL`]), by event and level.
    pub channel: BTreeMap<(&'static str, bool), u64>,
    /// Numbers of the arbiter's events ([`ARBITER`]).
    pub arbiter: BTreeMap<&'static str, u64>,
}

const CHANNEL: [&str; 11] = [
    "released",
    "withheld",
    "withdrawn",
    "mask set",
    "limit set",
    "late latched",
    "reset",
    "dropped",
    "early",
    "one more expiry than the counter holds",
    "one more early release than the counter holds",
];

const ARBITER: [&str; 5] = [
    "granted",
    "granted the lowest of several",
    "given back",
    "lease lost",
    "kept blocked",
];

/// Returns all pairs of operation and status that the rules allow.
fn possible() -> BTreeSet<(u8, u8)> {
    use Operation::{
        Drop, Identify, ReadArrived, ReadCounts, ReadLate, ReadMask, SetLimit, SetMask,
    };
    use Status::{
        BadCheck, BadValue, Done, Minority, NoSuchChannel, NoSuchOperation, NotIdle, NotLate,
        NotMember, Taken,
    };
    let mut all: BTreeSet<(u8, u8)> = BTreeSet::from([
        (0, NoSuchOperation as u8),
        (0, BadCheck as u8),
        (SetMask as u8, BadValue as u8),
        (SetMask as u8, NotMember as u8),
        (SetMask as u8, Taken as u8),
        (SetMask as u8, NotIdle as u8),
        (SetLimit as u8, BadValue as u8),
        (SetLimit as u8, NotMember as u8),
        (Drop as u8, NotMember as u8),
        (Drop as u8, NotLate as u8),
        (Drop as u8, Minority as u8),
    ]);
    for operation in [
        Identify,
        SetMask,
        SetLimit,
        ReadMask,
        ReadArrived,
        ReadLate,
        Drop,
        ReadCounts,
    ] {
        all.extend([Done, BadCheck].map(|status| (operation as u8, status as u8)));
        if operation != Identify {
            all.insert((operation as u8, NoSuchChannel as u8));
        }
    }
    all
}

/// The transitions receive, execute, reply, over (0 to 3); a falling select (to 0) or a reset (9) interrupts a phase.
const FRAME: [(u8, u8); 10] = [
    (0, 1),
    (1, 2),
    (2, 3),
    (1, 0),
    (2, 0),
    (3, 0),
    (0, 9),
    (1, 9),
    (2, 9),
    (3, 9),
];

impl Coverage {
    /// Counts the events of one clock edge of the model.
    pub fn note(&mut self, before: &ChannelMachine, edge: &Edge, after: &ChannelMachine) {
        self.edges += 1;
        let (was, is) = (before.serial(), after.serial());
        let to = if edge.reset { 9 } else { is.phase as u8 };
        if was.phase as u8 != to {
            *self.frame.entry((was.phase as u8, to)).or_default() += 1;
        }
        for number in 0..MAX_CHANNELS {
            let Some((was, is)) = Option::zip(before.channel(number), after.channel(number)) else {
                continue;
            };
            let arrived = was.arrived();
            let happened = [
                !edge.reset && was.level != is.level,
                !edge.reset && was.level == is.level && arrived != 0,
                !edge.reset && was.level == is.level && arrived & !is.arrived() != 0,
                !edge.reset && was.mask != is.mask,
                !edge.reset && was.limit != is.limit && was.mask == is.mask,
                was.late == 0 && is.late != 0,
                edge.reset,
                !edge.reset && was.mask != is.mask && is.mask & was.mask == is.mask && is.mask != 0,
                !edge.reset && is.early > was.early,
                is.overdue && !was.overdue && was.expired == u8::MAX,
                !edge.reset
                    && arrived != 0
                    && (was.toggled1 || was.toggled2)
                    && was.early == u8::MAX
                    && is.early == u8::MAX,
            ];
            for (what, _) in CHANNEL.into_iter().zip(happened).filter(|(_, did)| *did) {
                *self.channel.entry((what, was.level)).or_default() += 1;
            }
        }
        if edge.reset {
            return;
        }
        if was.phase == Phase::Execute && is.phase == Phase::Reply {
            let code = Body::from_bits(was.shift).code;
            let operation = Operation::from_code(code).map_or(0, |operation| operation as u8);
            let answer = (operation, Body::from_bits(is.shift).code);
            *self.answers.entry(answer).or_default() += 1;
        }
        let asking = was.select2 & !was.blocked;
        let happened = [
            was.grant == 0 && is.grant != 0,
            was.grant == 0 && is.grant != 0 && asking.count_ones() > 1,
            was.grant != 0 && is.grant == 0,
            is.blocked & !was.blocked != 0,
            was.grant == 0 && was.select2 & was.blocked != 0,
        ];
        for (what, _) in ARBITER.into_iter().zip(happened).filter(|(_, did)| *did) {
            *self.arbiter.entry(what).or_default() += 1;
        }
    }

    /// Adds the counts of another stimulus.
    pub fn add(&mut self, other: &Coverage) {
        fn all<K: Ord + Clone>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
            for (what, times) in from {
                *to.entry(what.clone()).or_default() += times;
            }
        }
        self.edges += other.edges;
        all(&mut self.answers, &other.answers);
        all(&mut self.frame, &other.frame);
        all(&mut self.channel, &other.channel);
        all(&mut self.arbiter, &other.arbiter);
    }

    /// Returns a description of each reply, transition and event that was not reached.
    pub fn missing(&self) -> Vec<String> {
        let answers = possible();
        let answers = answers
            .iter()
            .filter(|pair| !self.answers.contains_key(pair))
            .map(|(operation, status)| format!("answer {status} to operation {operation}"));
        let frame = FRAME
            .iter()
            .filter(|pair| !self.frame.contains_key(pair))
            .map(|(from, to)| format!("frame from {from} to {to}"));
        let channel = CHANNEL
            .iter()
            .flat_map(|what| [(*what, false), (*what, true)])
            .filter(|pair| !self.channel.contains_key(pair))
            .map(|(what, level)| format!("channel {what} at level {level}"));
        let arbiter = ARBITER
            .iter()
            .filter(|what| !self.arbiter.contains_key(*what))
            .map(|what| format!("arbiter {what}"));
        answers.chain(frame).chain(channel).chain(arbiter).collect()
    }

    /// Prints the counts for the documentation.
    pub fn report(&self, what: &str) {
        println!("{what}: {} edges", self.edges);
        println!("  answers  {:?}", self.answers);
        println!("  frame    {:?}", self.frame);
        println!("  channel  {:?}", self.channel);
        println!("  arbiter  {:?}", self.arbiter);
    }
}

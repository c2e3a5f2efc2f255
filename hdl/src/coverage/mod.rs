//! Measures how much of the RTL a stimulus covers, in Verilog and in VHDL: lines, branches, toggles, states.
//!
//! | count | Verilog | VHDL |
//! |---|---|---|
//! | lines | Verilator's line points | gcov's lines with code, of GHDL's gcc back end |
//! | branches | Verilator's points of `if`, `else` and `case` | arms of `if`, `elsif`, `else` and `case`, from gcov's counts of lines |
//! | toggles | each bit of each signal in a dump of Icarus rises and falls | the same in a dump of GHDL |
//! | states | values and transitions of named registers in the dump of Icarus | the same in the dump of GHDL |
//!
//! gcov's own branch counts of VHDL are not used, because they count the compiler's branches, such as range checks.

mod verilog;
mod vhdl;

use std::collections::BTreeMap;

use crate::play::Play;
use crate::source::Source;
use crate::vcd::Signal;

pub use verilog::{measure as verilog, trace as verilog_trace};
pub use vhdl::{measure as vhdl, trace as vhdl_trace};

/// A design and its stimulus.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The design's name in tables.
    pub name: &'static str,
    /// The design, its parameters and its ports.
    pub play: Play,
    /// The Verilog files of the design.
    pub verilog: Vec<Source>,
    /// The VHDL files of the design, in analysis order.
    pub vhdl: Vec<Source>,
    /// The inputs, one line of bits for each clock edge.
    pub stimulus: String,
    /// The registers whose values are states of a state machine.
    pub states: &'static [Machine],
}

/// A register that holds the state of a state machine.
#[derive(Debug, Clone, Copy)]
pub struct Machine {
    /// The end of the register's path in the dump.
    pub register: &'static str,
    /// Number of states of the state machine.
    pub states: usize,
    /// Number of the design's transitions between two different states.
    pub steps: usize,
}

/// Coverage points of one kind: their number, and the names of those not reached.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of points, reached or not.
    pub all: usize,
    /// The names of the points that were not reached.
    pub missed: Vec<String>,
}

impl Tally {
    fn note(&mut self, name: impl FnOnce() -> String, reached: bool) {
        self.all += 1;
        if !reached {
            self.missed.push(name());
        }
    }

    /// Returns the number of points that the stimulus reached.
    pub fn reached(&self) -> usize {
        self.all - self.missed.len()
    }
}

/// Points by name, each with the number of times that the stimulus reached it.
pub type Points = BTreeMap<String, u64>;

/// The coverage of one language's sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Lines, by `FILE:LINE`.
    pub lines: Points,
    /// Branches, by `FILE:LINE` and arm (such as `if` or `else`).
    pub branches: Points,
    /// Rises and falls of the bits of flip-flops and ports.
    pub toggles: Tally,
    /// States and transitions of state machines.
    pub states: Tally,
    /// The outputs before each edge, one line of bits per edge.
    pub trace: String,
}

/// Adds up the counts of several designs: a point of a file counts as reached if one design reaches it.
pub fn added(all: impl IntoIterator<Item = Points>) -> Points {
    let mut sum = Points::new();
    for (name, times) in all.into_iter().flatten() {
        *sum.entry(name).or_default() += times;
    }
    sum
}

/// Counts the changes of flip-flops, ports and states in a dump.
///
/// Counted are flip-flops, whose names end in `_q`, and ports of the design; other wires are left out.
/// VHDL's integers are left out too, because a dump does not contain their bits as signals.
fn note_signals(signals: &[Signal], machines: &[Machine], counts: &mut Counts) {
    for signal in signals {
        let (_, path) = signal.path.split_once(".dut.").unwrap_or_default();
        let is_port = !path.contains('.') && (path.ends_with("_i") || path.ends_with("_o"));
        let is_signal = matches!(signal.kind.as_str(), "reg" | "wire" | "logic");
        if is_signal && (is_port || path.ends_with("_q")) {
            note_toggles(path, signal, &mut counts.toggles);
        }
        for machine in machines
            .iter()
            .filter(|machine| path.ends_with(machine.register))
        {
            note_states(path, signal, machine, &mut counts.states);
        }
    }
    for machine in machines {
        let name = |signal: &Signal| signal.path.ends_with(machine.register);
        let found = signals.iter().any(name);
        counts
            .states
            .note(|| format!("{} is not in the dump", machine.register), found);
    }
}

fn note_toggles(path: &str, signal: &Signal, tally: &mut Tally) {
    for (at, bit) in signal.bits.iter().enumerate() {
        for (times, verb) in [(bit.rises, "rises"), (bit.falls, "falls")] {
            let name = || match signal.bits.len() {
                1 => format!("{path} {verb}"),
                _ => format!("{path}[{at}] {verb}"),
            };
            tally.note(name, times > 0);
        }
    }
}

fn note_states(path: &str, signal: &Signal, machine: &Machine, tally: &mut Tally) {
    let known = |value: &str| value.bytes().all(|bit| matches!(bit, b'0' | b'1'));
    let steps = signal.steps.iter();
    let steps = steps.filter(|(from, to)| known(from) && known(to)).count();
    let states = signal.values().len();
    for number in 0..machine.states {
        let name = || format!("{path}: {states} of {} states", machine.states);
        tally.note(name, number < states);
    }
    for number in 0..machine.steps {
        let name = || format!("{path}: {steps} of {} steps", machine.steps);
        tally.note(name, number < steps);
    }
}

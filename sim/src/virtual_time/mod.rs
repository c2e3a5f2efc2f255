//! Virtual time: a deterministic discrete-event run of nodes, ports, cables and the machine.
//!
//! Time is counted in picoseconds and moves from event to event, so a run depends on its parameters only
//! and is the same on every machine, however busy.
//! The driver is the real one ([`barrier_driver::ToggleBarrier`]) and the machine is the model;
//! what is simulated between them is when an access takes effect and how long a level travels.
//!
//! # A node's way through one barrier
//!
//! ```text
//! enter --port write--> level at the connector --cable, pad--> pin of the machine --clock edges--> output toggles
//!                       first poll begins                                                            |
//! leave <--port read that samples the new level-- level at the connector <--pad, cable---------------+
//! ```
//!
//! An access of the parallel port takes about a microsecond whatever the processor's speed, because it is a cycle of
//! the ISA or LPC bus; a write takes effect, and a read samples, at its end.
//! The defaults are measured or documented values: port access 1.2 us (lirc's measurement and the Linux
//! IO-Port-Programming mini-HOWTO give 1 to 1.56 us), 5 ns per metre of cable, 4.9 ns into and 4.3 ns out of the chip
//! (nextpnr for iCE40 HX), 25.175 MHz.

mod arrivals;
mod board;
mod gate;
mod hardware;
mod host;
mod measure;
mod observe;
mod oscillator;
mod random;
mod setup;
mod stats;
mod time;
mod wiring;
mod world;

pub use arrivals::{Arrivals, BadArrivals, Table};
pub(crate) use board::Board;
pub use board::{BOARD_PINS, Tree};
pub use gate::Gate;
pub use hardware::{BadProtocol, Protocol};
pub use host::{Delay, Disagreement, Down, FenceFailed, Host, Pin, Program};
pub use measure::Meter;
pub use observe::{Observer, Sight};
pub use random::Random;
pub use setup::{End, Incident, Setup};
pub use stats::{Distribution, Phase, Summary};
pub use time::{BadTime, Time};
pub use wiring::{Coupling, Disturbance, Line, Sink, Source, Wiring};
pub use world::run_world;

use crate::event::{ChannelRecord, Event, LineChange, Record};
use fpga_model::channels::{BadSize, MAX_CHANNELS, Pins};
use fpga_model::filter::BadFilter;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// What a run depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// How many nodes there are, 1 to 64 on one board.
    pub nodes: usize,
    /// How many barriers each node passes.
    pub barriers: usize,
    /// How long the nodes compute between two barriers.
    pub arrivals: Arrivals,
    /// Until a level that is written appears at the connector.
    pub port_write: Time,
    /// Until the level that a read samples is known, from the start of the access; the sample is at its end.
    pub port_read: Time,
    /// One way between the connector and the machine.
    pub cable: Time,
    /// From the pin into the machine.
    pub pad_in: Time,
    /// From the machine to the pin.
    pub pad_out: Time,
    /// The machine's clock.
    pub clock_hz: u64,
    /// An access of the port takes up to this much longer, as it happens.
    pub jitter: Time,
    /// What a software barrier takes, which the nodes need once, to open.
    pub fence: Time,
    /// Which of the possible random runs.
    pub seed: u64,
    /// How many samples of a wire have to agree at the board, 1 to 256.
    pub filter: u16,
    /// How many reads of the port have to agree on a release.
    pub reads: u8,
    /// Which way through a barrier the driver takes.
    pub protocol: Protocol,
    /// How many channels of version 2 the nodes pass in turn; 0 for a board of version 1.
    pub channels: usize,
    /// What resistors pull wires to that no node drives; `None` where there are none.
    pub pull: Option<bool>,
    /// How many boards the nodes' wires come to; more than one hang below others.
    pub boards: usize,
    /// One way between two boards.
    pub trunk: Time,
    /// From the pads of the last board to where the cables to the nodes begin.
    pub fan_out: Time,
    /// From the end of a node's cable through the receivers in front of the board's pads.
    pub receivers: Time,
    /// From when a level is driven onto a node's cable until its slow edge is at the receiver's threshold, either way.
    pub edge: Time,
}

impl Parameters {
    /// What a level needs for a metre of cable.
    pub const CABLE_PER_METRE: Time = Time::from_ns(5);

    /// The prototype's hardware with `nodes` nodes and 3 m of cable; without receivers and buffers, and with steep edges.
    pub fn new(nodes: usize, barriers: usize) -> Self {
        Self {
            nodes,
            barriers,
            arrivals: Arrivals::Uniform(Time::from_ns(10_000)),
            port_write: Time::from_ns(1200),
            port_read: Time::from_ns(1200),
            cable: Time::from_ns(15),
            pad_in: Time::from_ps(4900),
            pad_out: Time::from_ps(4300),
            clock_hz: fpga_model::CLOCK_HZ,
            jitter: Time::ZERO,
            fence: Time::from_ns(20_000),
            seed: 1,
            filter: 1,
            reads: 1,
            protocol: Protocol::Toggle,
            channels: 0,
            pull: None,
            boards: 1,
            trunk: Time::from_ns(25),
            fan_out: Time::ZERO,
            receivers: Time::ZERO,
            edge: Time::ZERO,
        }
    }

    /// The same with the receivers, buffers and edges of the circuit for builders (`hdl/boards/WIRING.md`), for nodes of one board.
    pub fn in_circuit(self) -> Self {
        Self {
            receivers: Self::SCHMITT_INVERTERS,
            fan_out: Self::BUFFER + Self::CABLE_BUFFER,
            edge: Self::PORT_EDGE,
            ..self
        }
    }

    /// How many lines a node has to the board and from it.
    pub fn lines(&self) -> [usize; 2] {
        match self.channels {
            0 => [1, 1],
            _ => [Pins::LINES, MAX_CHANNELS],
        }
    }

    /// One way through a buffer that drives eight others, a 74LVC244A at 3.3 V: at most, by its data sheet.
    pub const BUFFER: Time = Time::from_ns(6);
    /// One way through a buffer that drives eight cables, a 74HCT244 at 4.5 V: at most, by its data sheet.
    pub const CABLE_BUFFER: Time = Time::from_ns(22);
    /// One way through two Schmitt inverters in a row, of a 74LVC14A at 3.3 V: at most 6.4 ns each, by its data sheet.
    pub const SCHMITT_INVERTERS: Time = Time::from_ps(12_800);

    /// 0.69 RC of a series resistor of 47 ohms and a port's capacitor of 2.2 nF: half of the swing.
    pub const PORT_EDGE: Time = Time::from_ns(71);

    /// From one board's pin to the cables of its nodes: one buffer that drives eight, each of which drives eight cables.
    /// The cables of more nodes than a board has begin behind a trunk cable and as many buffers as it takes.
    pub fn fan_out_to(nodes: usize, trunk: Time) -> Time {
        if nodes <= BOARD_PINS {
            return Self::BUFFER + Self::CABLE_BUFFER;
        }
        let (mut served, mut way) = (8 * BOARD_PINS, trunk + Self::CABLE_BUFFER);
        while served < nodes {
            served *= 8;
            way = way + Self::BUFFER;
        }
        way
    }
}

/// What a run gives: its statistics, and if asked for the record of every change at the machine's pins.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Latencies, as a whole and by phase.
    pub summary: Summary,
    /// The waveform's events; empty if they were not kept.
    pub record: Record,
    /// The same of all lines of a board of version 2.
    pub lines: ChannelRecord,
}

/// Why there is no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// No board is like this.
    Board(BadFilter),
    /// No board of version 2 is like this.
    Channels(BadSize),
    /// Boards of boards are of version 1.
    ChannelsOnBoards,
    /// A port whose read takes no time has no polls to choose the sampling one from.
    InstantRead,
    /// The machine has no clock.
    NoClock,
    /// The system gives no memory for a node's program.
    Stack(std::io::ErrorKind),
    /// A node's program did not do what it should.
    Node {
        /// Which.
        node: usize,
        /// What its driver says.
        sentence: String,
    },
    /// Time ran past the end of the 64-bit picosecond counter, which is 213 days.
    TooLong {
        /// Barriers that were complete by then.
        completed: u64,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Board(bad) => bad.fmt(f),
            Self::Channels(bad) => bad.fmt(f),
            Self::ChannelsOnBoards => f.write_str(
                "boards of boards are of version 1: give --channels or --boards, not both",
            ),
            Self::InstantRead => f.write_str(
                "a port read must take some time, or a node would poll for ever in one instant",
            ),
            Self::NoClock => f.write_str("the machine needs a clock of at least 1 Hz"),
            Self::Stack(kind) => write!(f, "there is no memory for the nodes' programs: {kind}"),
            Self::Node { node, sentence } => write!(f, "node {node}: {sentence}"),
            Self::TooLong { completed } => {
                write!(
                    f,
                    "the run exceeds 213 days of virtual time, after {completed} barriers"
                )
            }
        }
    }
}

impl std::error::Error for RunError {}

/// Runs the nodes through all barriers; `keep_record` for a waveform.
pub fn run(parameters: &Parameters, keep_record: bool) -> Result<Outcome, RunError> {
    let record = keep_record.then(Vec::<Event>::new);
    let lines = (keep_record && parameters.channels > 0).then(Vec::<LineChange>::new);
    let (summary, (record, lines)) = run_observed(parameters, (record, lines))?;
    Ok(Outcome {
        summary,
        record: Record {
            nodes: parameters.nodes,
            events: record.unwrap_or_default(),
            dropped: 0,
        },
        lines: ChannelRecord {
            nodes: parameters.nodes,
            changes: lines.unwrap_or_default(),
            dropped: 0,
        },
    })
}

/// The same with an observer.
pub fn run_observed<O: Observer>(
    parameters: &Parameters,
    observer: O,
) -> Result<(Summary, O), RunError> {
    let observer = (Meter::new(parameters.nodes), observer);
    let trouble = Rc::new(RefCell::new(None));
    let (end, (meter, observer)) = run_world(Setup::new(parameters.clone()), observer, |_| {
        let (parameters, trouble) = (parameters.clone(), trouble.clone());
        Box::new(move |host| {
            if let Err(sentence) = pass_barriers(host, &parameters) {
                let node = host.node();
                *trouble.borrow_mut() = Some(RunError::Node { node, sentence });
            }
        })
    })?;
    match trouble.take() {
        Some(trouble) => Err(trouble),
        None => Ok((meter.summary(end.releases, end.at), observer)),
    }
}

/// The program of each node: open, compute and pass barriers, close.
fn pass_barriers(host: &Host<'_>, parameters: &Parameters) -> Result<(), String> {
    let mut gate = Gate::open(host, parameters).map_err(|said| said.sentence)?;
    gate.begin(None)?;
    let mut random = Random::new(parameters.seed, host.node());
    for number in 0..parameters.barriers {
        let Parameters {
            arrivals, nodes, ..
        } = parameters;
        host.compute(arrivals.sample(&mut random, *nodes, host.node(), number));
        host.enter();
        gate.enter(number)?;
        gate.wait(number, None)?;
        host.leave();
    }
    gate.close()
}

#[cfg(test)]
mod tests;

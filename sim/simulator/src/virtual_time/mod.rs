//! Virtual time: a deterministic discrete-event simulation of nodes,
//! ports, cables and barrier boards.
//!
//! Time is counted in picoseconds and advances from event to event, so a run depends only on its
//! parameters and is the same on every machine, whatever the load.
//! The driver is the real driver ([`barrier_driver::ToggleBarrier`]), and the machine is the model.
//! Between them the simulation models when an access takes effect and how long a level propagates.
//!
//! # A node's path through one barrier
//!
//! ```text
//! enter --port write--> level at the connector --cable, pad--> pin of the machine --clock edges--> output toggles
//!                       first poll begins                                                            |
//! leave <--port read that samples the new level-- level at the connector <--pad, cable---------------+
//! ```
//!
//! An access of the parallel port takes about a microsecond at any processor speed, because it is a
//! cycle of the ISA or LPC bus. A write takes effect at the end of the access; a read samples the level there.
//! The defaults are measured or documented values: port access 1.2 us (lirc's measurement and the Linux
//! IO-Port-Programming mini-HOWTO give 1 to 1.56 us), 5 ns per metre of cable, 4.9 ns into and 4.3 ns out of the chip
//! (nextpnr for iCE40 HX), 25.175 MHz.

mod arrivals;
mod board;
mod hardware;
mod host;
mod measure;
mod node_barriers;
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
pub use hardware::{BadProtocol, Protocol};
pub use host::{Delay, Disagreement, Down, FenceFailed, Host, Pin, Program};
pub use measure::Meter;
pub use node_barriers::NodeBarriers;
pub use observe::{Observation, Observer};
pub use random::Random;
pub use setup::{End, Incident, Setup};
pub use stats::{Distribution, Phase, Summary};
pub use time::{BadTime, Time};
pub use wiring::{Coupling, Disturbance, Line, Sink, Source, Wiring};
pub use world::run_world;

use barrier_board::event::{ChannelRecord, Event, LineChange, Record};
use barrier_board::tree::BOARD_PINS;
use fpga_model::channels::{BadSize, MAX_CHANNELS, Pins};
use fpga_model::filter::BadFilter;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// The parameters of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// Number of nodes, 1 to 64 on one board.
    pub nodes: usize,
    /// Number of barriers of each node.
    pub barriers: usize,
    /// The distribution of the nodes' computing time between two barriers.
    pub arrivals: Arrivals,
    /// Duration of a write access; the level is at the connector at its end.
    pub port_write: Time,
    /// Duration of a read access; the level is sampled at its end.
    pub port_read: Time,
    /// Delay of the cable between the connector and the board, one way.
    pub cable: Time,
    /// Delay from the board's input pin into the machine.
    pub pad_in: Time,
    /// Delay from the machine to the board's output pin.
    pub pad_out: Time,
    /// Frequency of the machine's clock, in hertz.
    pub clock_hz: u64,
    /// Maximum of the random additional duration of each port access.
    pub jitter: Time,
    /// Duration of a software barrier (fence) among the nodes, which the driver needs to open the barrier.
    pub fence: Time,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of samples of a wire that must agree before the machine accepts a level, 1 to 256.
    pub filter: u16,
    /// Number of successive reads of the port that must
    /// show a release before the driver accepts it.
    pub reads: u8,
    /// The driver's barrier protocol.
    pub protocol: Protocol,
    /// Number of channels of version 2 that the nodes use in turn; 0 for a board of version 1.
    pub channels: usize,
    /// The level to which resistors pull undriven wires; `None` without resistors.
    pub pull: Option<bool>,
    /// Number of leaf boards for the nodes' wires; more than one means cascaded boards.
    pub boards: usize,
    /// Delay of the cable between two boards, one way.
    pub trunk: Time,
    /// Delay of the buffers between the pads of the root board and the cables to the nodes.
    pub fan_out: Time,
    /// Delay of the receivers between a node's cable and the board's pads.
    pub receivers: Time,
    /// Delay of a slow edge: from driving a cable until the level passes the receiver's threshold;
    /// for both directions, unless `edge_back` is set.
    pub edge: Time,
    /// Delay of a slow edge from the board to a node; `None` if it equals `edge`.
    /// The delays differ if the resistors at the two ends of the cable differ.
    pub edge_back: Option<Time>,
}

impl Parameters {
    /// Delay per metre of cable.
    pub const CABLE_PER_METRE: Time = Time::from_ns(5);

    /// Returns the prototype's hardware with `nodes` nodes and 3 m of cable, without receivers and
    /// buffers, and with steep edges.
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
            edge_back: None,
        }
    }

    /// Returns the parameters with the receivers, buffers and edges of the circuit to be built
    /// (`hdl/boards/WIRING.md`), for nodes of one board.
    pub fn in_circuit(self) -> Self {
        Self {
            receivers: Self::SCHMITT_INVERTERS,
            fan_out: Self::BUFFER + Self::CABLE_BUFFER,
            edge: Self::PORT_EDGE,
            ..self
        }
    }

    /// Returns the delay of a slow edge on a cable from the board to a node.
    pub fn edge_to_node(&self) -> Time {
        self.edge_back.unwrap_or(self.edge)
    }

    /// Returns how many lines a node has to the board, and how many from the board.
    pub fn lines(&self) -> [usize; 2] {
        match self.channels {
            0 => [1, 1],
            _ => [Pins::LINES, MAX_CHANNELS],
        }
    }

    /// Maximum delay of a buffer that drives eight others, by its data sheet: 74LVC244A at 3.3 V.
    pub const BUFFER: Time = Time::from_ns(6);
    /// Maximum delay of a buffer that drives eight cables, by its data sheet: 74HCT244 at 4.5 V.
    pub const CABLE_BUFFER: Time = Time::from_ns(22);
    /// Delay of two Schmitt inverters in series, 74LVC14A at 3.3 V:
    /// at most 6.4 ns each, by data sheet.
    pub const SCHMITT_INVERTERS: Time = Time::from_ps(12_800);

    /// Delay until half of the swing, 0.69 RC, of a node's slow edge: a series resistor of 47 ohms,
    /// a capacitor of 2.2 nF.
    pub const PORT_EDGE: Time = Time::from_ns(71);

    /// Delay from a pin of the board to its nodes' cables:
    /// a buffer drives eight buffers, each of which drives eight cables.
    /// For more than [`BOARD_PINS`] nodes, the cables start after a trunk cable and the required
    /// number of buffer stages.
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

/// The results of a run: its statistics, and the record of every pin change if requested.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The latencies in total and by phase.
    pub summary: Summary,
    /// The waveform's events; empty if they were not recorded.
    pub record: Record,
    /// The changes of all lines of a board of version 2.
    pub lines: ChannelRecord,
}

/// The reason why a run failed or cannot start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// The parameters of a version 1 board are out of range.
    Board(BadFilter),
    /// The parameters of a version 2 board are out of range.
    Channels(BadSize),
    /// Cascaded boards were requested for version 2; they exist in version 1 only.
    ChannelsOnBoards,
    /// A read takes no time, so a node would poll infinitely often before a release.
    InstantRead,
    /// The machine has no clock: its frequency is zero.
    NoClock,
    /// The system has no memory for the stack of a node's program.
    Stack(std::io::ErrorKind),
    /// A node's program failed.
    Node {
        /// The node whose program failed.
        node: usize,
        /// The message of that node's driver.
        sentence: String,
    },
    /// The run exceeded the 64-bit picosecond counter, which overflows after 213 days.
    TooLong {
        /// Number of barriers completed before the overflow.
        completed: u64,
    },
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Board(bad) => bad.fmt(f),
            Self::Channels(bad) => bad.fmt(f),
            Self::ChannelsOnBoards => f.write_str(
                "cascaded boards are of version 1: give --channels or --boards, not both",
            ),
            Self::InstantRead => f.write_str(
                "a port read must take some time, or a node would poll without end in one instant",
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

/// Runs the nodes through all barriers; with `keep_record`, records the events for a waveform.
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

/// Like [`run`], with an additional observer.
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

/// The program of each node: opens the barrier,
/// alternates computing and barriers, closes the barrier.
fn pass_barriers(host: &Host<'_>, parameters: &Parameters) -> Result<(), String> {
    let mut node_barriers = NodeBarriers::open(host, parameters).map_err(|said| said.sentence)?;
    node_barriers.begin(None)?;
    let mut random = Random::new(parameters.seed, host.node());
    for number in 0..parameters.barriers {
        let Parameters {
            arrivals, nodes, ..
        } = parameters;
        host.compute(arrivals.sample(&mut random, *nodes, host.node(), number));
        host.enter();
        node_barriers.enter(number)?;
        node_barriers.wait(number, None)?;
        host.leave();
    }
    node_barriers.close()
}

#[cfg(test)]
mod tests;

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
pub use host::{Disagreement, Down, FenceFailed, Host, Pin, Program};
pub use measure::Meter;
pub use observe::{Observer, Sight};
pub use random::Random;
pub use setup::{End, Incident, Setup};
pub use stats::{Distribution, Phase, Summary};
pub use time::{BadTime, Time};
pub use wiring::{Coupling, Disturbance, Line, Sink, Source, Wiring};
pub use world::run_world;

use crate::event::Record;
use barrier_driver::ToggleBarrier;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

/// What a run depends on.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    /// How many nodes there are, 1 to 64.
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
}

impl Parameters {
    /// What a level needs for a metre of cable.
    pub const CABLE_PER_METRE: Time = Time::from_ns(5);

    /// The prototype's hardware with `nodes` nodes and 3 m of cable.
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
        }
    }
}

/// What a run gives: its statistics, and if asked for the record of every change at the machine's pins.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Latencies, as a whole and by phase.
    pub summary: Summary,
    /// The waveform's events; empty if they were not kept.
    pub record: Record,
}

/// Why there is no run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunError {
    /// No barrier has this many nodes.
    Nodes(fpga_model::BadNodeCount),
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
            Self::Nodes(bad) => bad.fmt(f),
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
    let record = keep_record.then(Vec::new);
    let observer = (Meter::new(parameters.nodes), record);
    let trouble = Rc::new(RefCell::new(None));
    let (end, (meter, record)) = run_world(Setup::new(parameters.clone()), observer, |_| {
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
        None => Ok(Outcome {
            summary: meter.summary(end.releases, end.at),
            record: Record {
                nodes: parameters.nodes,
                events: record.unwrap_or_default(),
                dropped: 0,
            },
        }),
    }
}

/// The program of each node: open, compute and pass barriers, close.
fn pass_barriers(host: &Host<'_>, parameters: &Parameters) -> Result<(), String> {
    let (out, input) = host.pins();
    let say = |e: &dyn fmt::Display| e.to_string();
    let mut barrier = ToggleBarrier::open(out, input, || host.fence()).map_err(|e| say(&e))?;
    // Everybody has checked that nothing moves before anybody enters.
    host.fence().map_err(|e| say(&e))?;
    let mut random = Random::new(parameters.seed, host.node());
    for number in 0..parameters.barriers {
        let Parameters {
            arrivals, nodes, ..
        } = parameters;
        host.compute(arrivals.sample(&mut random, *nodes, host.node(), number));
        host.enter();
        barrier.enter().map_err(|e| say(&e))?;
        while barrier.poll().map_err(|e| say(&e))?.is_pending() {
            host.watch(None);
        }
        host.leave();
    }
    barrier.close().map_err(|e| say(&e))
}

#[cfg(test)]
mod tests;

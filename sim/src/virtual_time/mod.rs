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

mod engine;
mod random;
mod stats;
mod time;

pub use engine::run;
pub use stats::{Distribution, Phase, Summary};
pub use time::{BadTime, Time};

use crate::event::Record;
use random::Random;
use std::fmt;
use std::str::FromStr;

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
            seed: 1,
        }
    }
}

/// How long a node computes before it enters the next barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrivals {
    /// Not at all: everybody enters the next barrier as soon as it has left the last.
    Together,
    /// Any time up to this, equally likely.
    Uniform(Time),
    /// Without memory, with this mean.
    Exponential(Time),
}

impl Arrivals {
    fn sample(self, random: &mut Random) -> Time {
        match self {
            Self::Together => Time::ZERO,
            Self::Uniform(spread) => spread.scaled(random.unit()),
            // The inverse of the distribution function; `1 - u` is never zero.
            Self::Exponential(mean) => mean.scaled(-(1.0 - random.unit()).ln()),
        }
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Together => f.write_str("together"),
            Self::Uniform(spread) => write!(f, "uniform:{spread}"),
            Self::Exponential(mean) => write!(f, "exponential:{mean}"),
        }
    }
}

/// A word that is no arrival distribution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadArrivals(String);

impl fmt::Display for BadArrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is none of together, uniform:TIME, exponential:TIME (TIME as in 10us)",
            self.0
        )
    }
}

impl std::error::Error for BadArrivals {}

impl FromStr for Arrivals {
    type Err = BadArrivals;

    fn from_str(text: &str) -> Result<Self, BadArrivals> {
        let bad = || BadArrivals(text.to_owned());
        let (kind, time) = text.split_once(':').unwrap_or((text, ""));
        let time = || time.parse().map_err(|_| bad());
        match kind {
            "together" if text == kind => Ok(Self::Together),
            "uniform" => time().map(Self::Uniform),
            "exponential" => time().map(Self::Exponential),
            _ => Err(bad()),
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

#[cfg(test)]
mod tests;

//! Software barriers under the cost models LogP and LogGP,
//! for comparison with the hardware barrier.
//!
//! An [`Algorithm`] is a schedule: the messages that each node sends and receives, in order.
//! A [`Network`] defines the cost of a message:
//!
//! * LogP (Culler, Karp, Patterson, Sahay, Schauser, Santos, Subramonian and von Eicken, PPoPP 1993): a send or a receive
//!   occupies the processor for the overhead `o`, a message is in flight for the latency `L`, and two sends, or two receives,
//!   of one processor start at least the gap `g` apart.
//! * LogGP (Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995): each byte of a message after its first takes
//!   a further `G` at the network interface.
//!
//! LogP is LogGP with `G = 0`, so one rule (module `rule`) covers both.
//! It is the rule of the simulator LogGOPSim.
//! The rule starts from the times at which the nodes enter,
//! so a comparison with a hardware run uses the same arrivals.
//!
//! [`Collective`] evaluates the library's own algorithms, for larger numbers of ranks,
//! and [`fit()`] fits a network's parameters to measurements.
//!
//! The models give lower limits for software:
//! no contention, no unexpected message, no operating system.

mod algorithms;
mod collectives;
mod fit;
#[cfg(test)]
mod independent;
mod rule;
mod schedule;

pub use algorithms::{ALGORITHMS, Algorithm};
pub use collectives::{BARRIERS, COLLECTIVES, Collective};
pub use fit::{BadFit, Point, fit};
pub use schedule::{BadSchedule, Operation, Schedule};

use crate::virtual_time::{Distribution, Time};
use rule::Rank;
use std::fmt;

/// The parameters of the LogGP model, and the message length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// `L`: latency, the time that a message is in flight.
    pub latency: Time,
    /// `o`: overhead, the time that a send or a receive occupies the processor.
    pub overhead: Time,
    /// `g`: gap, the minimum interval between the starts of two sends, or two receives,
    /// of a processor.
    pub gap: Time,
    /// `G`: gap per byte, the time for each byte after the first.
    pub byte_gap: Time,
    /// Length of a message in bytes.
    pub bytes: u64,
}

impl Network {
    /// The default network of the simulator LogGOPSim (file `simulator.ggo` of spcl/LogGOPSim):
    /// L 2500, o 1500, g 1000 and G 6 nanoseconds.
    /// Messages have 64 bytes, one cache line for the envelope.
    pub const LOGGOPSIM: Self = Self {
        latency: Time::from_ns(2500),
        overhead: Time::from_ns(1500),
        gap: Time::from_ns(1000),
        byte_gap: Time::from_ns(6),
        bytes: 64,
    };

    /// A current cluster with InfiniBand HDR. L is the "sub 0.6 us" of the product brief of the
    /// ConnectX-6 adapter, and G is its 200 Gb/s.
    /// The values o and g of 0.2 us (five million messages per second of one process) are assumed,
    /// so a message takes 1.0 us in total.
    pub const HDR: Self = Self {
        latency: Time::from_ns(600),
        overhead: Time::from_ns(200),
        gap: Time::from_ns(200),
        byte_gap: Time::from_ps(40),
        bytes: 64,
    };

    /// The named networks as name, description and parameters; the network of a current cluster is first.
    pub const NAMED: [(&str, &str, Self); 2] = [
        ("hdr", "a cluster of today, InfiniBand HDR", Self::HDR),
        (
            "loggopsim",
            "a cluster of 2009, LogGOPSim's default",
            Self::LOGGOPSIM,
        ),
    ];

    /// Returns the parameters L, o, g and G as text, without a name.
    pub fn parameters(&self) -> impl fmt::Display + use<> {
        let Self {
            latency,
            overhead,
            gap,
            byte_gap,
            ..
        } = *self;
        format!("L {latency}, o {overhead}, g {gap}, G {byte_gap} for each byte after the first")
    }

    /// Returns the name of a network with these parameters; the message length may differ.
    pub fn name(&self) -> Option<&'static str> {
        let found = Self::NAMED.iter().find(|(.., named)| {
            Self {
                bytes: self.bytes,
                ..*named
            } == *self
        });
        found.map(|(name, ..)| *name)
    }

    /// Returns the network under a cost model: for LogP, the gap per byte is set to zero.
    pub fn seen_by(self, model: Model) -> Self {
        match model {
            Model::LogP => Self {
                byte_gap: Time::ZERO,
                ..self
            },
            Model::LogGP => self,
        }
    }

    /// Returns the time at which each node leaves, if node `i` enters at `entries[i]`.
    pub fn leave_times(&self, schedule: &Schedule, entries: &[Time]) -> Vec<Time> {
        let mut ranks: Vec<_> = entries.iter().copied().map(Rank::starting).collect();
        let mut arrivals = vec![Time::ZERO; schedule.messages()];
        let mut waiting = Vec::new();
        for (node, operation) in schedule.in_order() {
            match operation {
                Operation::Send(message) => {
                    arrivals[message] = ranks[node].send(self, self.bytes);
                }
                Operation::Receive(messages) => {
                    // A node receives messages in order of arrival, from any sender.
                    waiting.clear();
                    waiting.extend(messages.iter().map(|&message| arrivals[message]));
                    waiting.sort_unstable();
                    for &there in &waiting {
                        ranks[node].receive(self, there, self.bytes);
                    }
                }
            }
        }
        ranks.into_iter().map(|rank| rank.now).collect()
    }

    /// Returns for each barrier the time from the last entry until every node has left.
    pub fn latencies(&self, schedule: &Schedule, barriers: &[Vec<Time>]) -> Distribution {
        let last = |times: &[Time]| times.iter().copied().max().unwrap_or_default();
        let latency =
            |entries: &Vec<Time>| last(&self.leave_times(schedule, entries)) - last(entries);
        Distribution::new(barriers.iter().map(latency).collect())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            latency,
            overhead,
            gap,
            byte_gap,
            bytes,
        } = self;
        match Self::NAMED
            .iter()
            .find(|(name, ..)| Some(*name) == self.name())
        {
            Some((name, what, _)) => write!(f, "network {name} ({what}): ")?,
            None => f.write_str("network of the options: ")?,
        }
        write!(
            f,
            "L {latency}, o {overhead}, g {gap}; LogGP: and G {byte_gap} for each of {bytes} bytes after the first"
        )
    }
}

/// A cost model for messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// The model in which the message length has no influence.
    LogP,
    /// The model in which each byte of a message takes time.
    LogGP,
}

impl Model {
    /// All cost models.
    pub const ALL: [Self; 2] = [Self::LogP, Self::LogGP];

    /// Returns the model's name in the literature.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogP => "LogP",
            Self::LogGP => "LogGP",
        }
    }
}

#[cfg(test)]
mod tests;

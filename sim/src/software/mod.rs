//! Software barriers as a network's cost models see them, to compare the hardware with.
//!
//! An [`Algorithm`] is a schedule: what each node sends and receives, in which order.
//! A [`Network`] says what a message costs:
//!
//! * LogP (Culler, Karp, Patterson, Sahay, Schauser, Santos, Subramonian and von Eicken, PPoPP 1993): a send or a receive
//!   keeps the processor for the overhead `o`, a message is under way for the latency `L`, and two sends, or two receives,
//!   of one processor begin at least the gap `g` apart.
//! * LogGP (Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995): each byte of a message after its first takes
//!   a further `G` of the sender's network interface.
//!
//! LogP is LogGP with `G = 0`, so there is one [`Network::leave_times`] for both.
//! It starts from when each node enters, so that a comparison with a hardware run uses the same arrivals.
//!
//! [`Collective`] is the same in closed form for the library's own algorithms, for more ranks than schedules are made for,
//! and [`fit()`] finds a network's parameters in what was measured on it.
//!
//! The models are kind to software: no contention, no unexpected message, no operating system.

mod algorithms;
mod collectives;
mod fit;
mod schedule;

pub use algorithms::{ALGORITHMS, Algorithm};
pub use collectives::{BARRIERS, COLLECTIVES, Collective};
pub use fit::{BadFit, Point, fit};
pub use schedule::{BadSchedule, Operation, Schedule};

use crate::virtual_time::{Distribution, Time};
use std::fmt;

/// What a message costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    /// `L`: how long a message is under way.
    pub latency: Time,
    /// `o`: how long a send or a receive keeps the processor.
    pub overhead: Time,
    /// `g`: how far apart sends of one processor begin at least, and receives too.
    pub gap: Time,
    /// `G`: what each byte after the first adds.
    pub byte_gap: Time,
    /// How long a message is.
    pub bytes: u64,
}

impl Network {
    /// The default network of the simulator LogGOPSim (file `simulator.ggo` of spcl/LogGOPSim: L 2500, o 1500, g 1000 and
    /// G 6 nanoseconds), with messages of 64 bytes, which is one cache line for the envelope.
    pub const LOGGOPSIM: Self = Self {
        latency: Time::from_ns(2500),
        overhead: Time::from_ns(1500),
        gap: Time::from_ns(1000),
        byte_gap: Time::from_ns(6),
        bytes: 64,
    };

    /// The same network as a model sees it.
    pub fn seen_by(self, model: Model) -> Self {
        match model {
            Model::LogP => Self {
                byte_gap: Time::ZERO,
                ..self
            },
            Model::LogGP => self,
        }
    }

    fn bytes_time(&self) -> Time {
        self.byte_gap.scaled(self.bytes.saturating_sub(1) as f64)
    }

    /// When each node leaves, if each enters at its time of `entries`.
    pub fn leave_times(&self, schedule: &Schedule, entries: &[Time]) -> Vec<Time> {
        let Self {
            latency,
            overhead,
            gap,
            ..
        } = *self;
        let bytes = self.bytes_time();
        // When each processor, its sender and its receiver are free again, and when each message arrives.
        let mut now = entries.to_vec();
        let mut sender = vec![Time::ZERO; now.len()];
        let mut receiver = sender.clone();
        let mut arrivals = vec![Time::ZERO; schedule.messages()];
        let mut waiting = Vec::new();
        for (node, operation) in schedule.in_order() {
            match operation {
                Operation::Send(message) => {
                    let start = now[node].max(sender[node]);
                    now[node] = start + overhead;
                    sender[node] = start + gap.max(overhead) + bytes;
                    arrivals[message] = start + overhead + bytes + latency;
                }
                Operation::Receive(messages) => {
                    // In the order in which they arrive, whoever sent them.
                    waiting.clear();
                    waiting.extend(messages.iter().map(|&message| arrivals[message]));
                    waiting.sort_unstable();
                    for &arrival in &waiting {
                        let start = now[node].max(receiver[node]).max(arrival);
                        now[node] = start + overhead;
                        receiver[node] = start + gap;
                    }
                }
            }
        }
        now
    }

    /// From the last entry of each barrier until everybody has left.
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
        write!(
            f,
            "L {latency}, o {overhead}, g {gap}; LogGP: and G {byte_gap} for each of {bytes} bytes after the first"
        )
    }
}

/// Which of the two models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// Messages have no length.
    LogP,
    /// Messages have a length.
    LogGP,
}

impl Model {
    /// Both.
    pub const ALL: [Self; 2] = [Self::LogP, Self::LogGP];

    /// As the literature calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::LogP => "LogP",
            Self::LogGP => "LogGP",
        }
    }
}

#[cfg(test)]
mod tests;

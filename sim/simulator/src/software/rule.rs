//! The LogGP rule: the cost of a send and of a receive for a rank, and the arrival time of the message.
//!
//! A send that starts at t occupies the processor until t + o.
//! The network interface accepts the next send of a rank at t + g + (k-1) G, for k bytes.
//! So consecutive sends start max(o, g + (k-1) G) apart.
//! The message arrives at t + o + (k-1) G + L.
//! A receive takes o. It starts when the message has arrived, the processor is free, and
//! g + (k-1) G has passed since the last receive.
//! This is the rule of the simulator LogGOPSim (Hoefler, Schneider and Lumsdaine,
//! HPDC 2010) with its parameters O and S at zero.
//! Alexandrov et al. (SPAA 1995) count the gap from a message's last byte instead.
//! For messages of one byte both rules are the same.

use super::Network;
use crate::virtual_time::Time;

/// A rank: its processor, and both directions of its network interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rank {
    /// The time from which the rank's processor is free.
    pub now: Time,
    send_free: Time,
    receive_free: Time,
}

impl Rank {
    /// Returns a rank whose processor and network interface are free from `now` on.
    pub fn starting(now: Time) -> Self {
        Self {
            now,
            ..Self::default()
        }
    }

    /// Sends a message of `bytes` bytes; returns its arrival time.
    pub fn send(&mut self, network: &Network, bytes: u64) -> Time {
        let start = self.now.max(self.send_free);
        let train = network.train(bytes);
        self.now = start + network.overhead;
        self.send_free = start + network.gap + train;
        self.now + train + network.latency
    }

    /// Receives a message of `bytes` bytes that arrives at time `there`.
    pub fn receive(&mut self, network: &Network, there: Time, bytes: u64) {
        let start = self.now.max(self.receive_free).max(there);
        self.now = start + network.overhead;
        self.receive_free = start + network.gap + network.train(bytes);
    }
}

impl Network {
    /// Returns the time `(bytes - 1) G`,
    /// during which the bytes after the first pass the network interface.
    pub(super) fn train(&self, bytes: u64) -> Time {
        let more = bytes.saturating_sub(1);
        Time::from_ps(self.byte_gap.ps().saturating_mul(more))
    }
}

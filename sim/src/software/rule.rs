//! The one LogGP rule: what a send and a receive cost a rank, and when the message is there.
//!
//! A send that begins at t keeps the processor until t + o; the network interface takes the next send at t + g + (k-1) G,
//! for k bytes, so that two sends in a row begin max(o, g + (k-1) G) apart; the message is there at t + o + (k-1) G + L.
//! A receive begins when the message is there, the processor is free and the last receive is g + (k-1) G ago; it takes o.
//! This is the rule of the simulator LogGOPSim (Hoefler, Schneider and Lumsdaine, HPDC 2010) with its O and S at zero.
//! Alexandrov et al. (SPAA 1995) draw the gap from a message's last byte instead; for messages of one byte both are the same.

use super::Network;
use crate::virtual_time::Time;

/// A rank: its processor, and both directions of its network interface.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rank {
    /// When its processor is free.
    pub now: Time,
    send_free: Time,
    receive_free: Time,
}

impl Rank {
    /// A rank that begins at this time.
    pub fn starting(now: Time) -> Self {
        Self {
            now,
            ..Self::default()
        }
    }

    /// Sends a message of so many bytes, and says when it is there.
    pub fn send(&mut self, network: &Network, bytes: u64) -> Time {
        let start = self.now.max(self.send_free);
        let train = network.train(bytes);
        self.now = start + network.overhead;
        self.send_free = start + network.gap + train;
        self.now + train + network.latency
    }

    /// Receives a message of so many bytes that is there at this time.
    pub fn receive(&mut self, network: &Network, there: Time, bytes: u64) {
        let start = self.now.max(self.receive_free).max(there);
        self.now = start + network.overhead;
        self.receive_free = start + network.gap + network.train(bytes);
    }
}

impl Network {
    /// How long the bytes of a message after its first take.
    pub(super) fn train(&self, bytes: u64) -> Time {
        let more = bytes.saturating_sub(1);
        Time::from_ps(self.byte_gap.ps().saturating_mul(more))
    }
}

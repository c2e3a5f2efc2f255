//! The simulated machine of version 2, with five channels.

use super::Machine;
use fpga_model::LATENCY_EDGES;
use fpga_model::channels::{BadSize, ChannelMachine, MAX_CHANNELS, Pins, SETTLE_EDGES};

#[derive(Debug)]
pub(super) struct Channels {
    machine: ChannelMachine,
    /// Levels at the board's pins.
    pins: Pins,
}

impl Channels {
    /// Returns a machine with this number of pins and with at least `channels` channels.
    pub(super) fn new(pins: usize, channels: usize) -> Result<Self, BadSize> {
        let machine = ChannelMachine::new(pins, MAX_CHANNELS.max(channels))?;
        let pins = Pins::default();
        Ok(Self { machine, pins })
    }
}

impl Machine for Channels {
    fn set(&mut self, pin: usize, line: usize, high: bool) {
        self.pins.set(pin, line, high);
    }

    fn run(&mut self, edges: u64) {
        self.machine.fast_forward(&self.pins, edges);
    }

    fn edges_to_change(&self) -> Option<u64> {
        let mut ahead = self.machine;
        let outputs = |m: &ChannelMachine| (m.releases(), m.last_line());
        let now = outputs(&ahead);
        // Within this number of edges, every effect of a change at a pin has occurred,
        // except the expiry of a lease.
        (1..=SETTLE_EDGES + LATENCY_EDGES).find(|_| {
            ahead.step(&self.pins);
            outputs(&ahead) != now
        })
    }

    fn latency_edges(&self) -> u64 {
        SETTLE_EDGES
    }

    fn output(&self, pin: usize, line: usize) -> bool {
        self.machine.reads(pin, line)
    }

    fn levels(&self) -> u64 {
        u64::from(self.machine.releases())
    }

    fn all_at(&self, high: bool) -> u64 {
        u64::from(high) * ((1 << MAX_CHANNELS) - 1)
    }

    fn releases(&self) -> u64 {
        self.machine.all_releases()
    }

    fn reset(&mut self) {
        self.machine.reset();
    }

    fn last_line(&self) -> u64 {
        self.machine.last_line()
    }
}

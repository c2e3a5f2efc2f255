//! Type-erased pins of a port that is chosen at run time.

use super::claimed::Claimed;
use super::error::Failure;
use super::{Resting, WireError};
use crate::InputEvents;
use crate::channels::{LastLine, Programmer, ReleaseLine};
use core::fmt;
use embedded_hal::delay::DelayNs;
use embedded_hal::digital::{ErrorType, InputPin, OutputPin, PinState};
use fpga_model::channels::MAX_CHANNELS;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The two wires of this node at a claimed port.
#[derive(Debug)]
pub struct BoxedWires {
    /// The wire to the barrier.
    pub out: BoxedOut,
    /// The wire from the barrier.
    pub input: BoxedIn,
    /// Restores the wires when a process ends without closing them.
    pub resting: Resting,
}

/// A node's programmer at a port that is chosen at run time.
pub type BoxedProgrammer = Programmer<BoxedOut, LastLine<BoxedIn>, Pause>;

/// A claimed port with the lines of barrier version 2: five channels, and the serial lines that program them.
#[derive(Debug)]
pub struct BoxedChannels {
    /// The wire pair of each channel.
    pub channels: [BoxedChannel; MAX_CHANNELS],
    /// Sends requests to the hardware for this node.
    pub programmer: BoxedProgrammer,
    /// Restores the wires when a process ends without closing them.
    pub resting: Resting,
}

/// One channel's wires at a port chosen at run time; clones are the same wires.
#[derive(Debug, Clone)]
pub struct BoxedChannel {
    /// The arrival wire.
    pub out: BoxedOut,
    /// The release wire; on the last channel it also carries the serial replies.
    pub input: ReleaseLine<BoxedIn>,
}

/// The wire to the barrier at a port chosen at run time; `Debug` prints the wire's name, and clones refer to the same wire.
#[derive(Clone)]
pub struct BoxedOut {
    port: Arc<dyn Claimed>,
    line: usize,
}

/// The wire from the barrier at a port chosen at run time; `Debug` prints the wire's name, and clones refer to the same wire.
#[derive(Clone)]
pub struct BoxedIn {
    port: Arc<dyn Claimed>,
    line: usize,
}

impl BoxedOut {
    /// Returns the pin of an outgoing line.
    pub(super) fn of(port: &Arc<dyn Claimed>, line: usize) -> Self {
        let port = port.clone();
        Self { port, line }
    }

    fn set(&self, high: bool) -> Result<(), WireError> {
        self.port.set(self.line, high).map_err(|failure| WireError {
            wire: self.port.out_name(self.line),
            cause: failure.to_string(),
        })
    }
}

impl BoxedIn {
    /// Returns the pin of an incoming line.
    pub(super) fn of(port: &Arc<dyn Claimed>, line: usize) -> Self {
        let port = port.clone();
        Self { port, line }
    }

    fn get(&self) -> Result<bool, WireError> {
        self.port.get(self.line).map_err(|e| self.failed(&e))
    }

    fn failed(&self, failure: &Failure) -> WireError {
        WireError {
            wire: self.port.in_name(self.line),
            cause: failure.to_string(),
        }
    }

    /// Returns this pin as the line that the last channel shares with the replies.
    pub(super) fn shared(self) -> LastLine<Self> {
        LastLine::new(self)
    }
}

impl fmt::Debug for BoxedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.port.out_name(self.line))
    }
}

impl fmt::Debug for BoxedIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.port.in_name(self.line))
    }
}

impl ErrorType for BoxedOut {
    type Error = WireError;
}

impl ErrorType for BoxedIn {
    type Error = WireError;
}

impl OutputPin for BoxedOut {
    fn set_low(&mut self) -> Result<(), WireError> {
        self.set(false)
    }

    fn set_high(&mut self) -> Result<(), WireError> {
        self.set(true)
    }
}

impl InputPin for BoxedIn {
    fn is_high(&mut self) -> Result<bool, WireError> {
        self.get()
    }

    fn is_low(&mut self) -> Result<bool, WireError> {
        self.get().map(|high| !high)
    }
}

impl InputEvents for BoxedIn {
    fn wakes_sleepers(&mut self) -> bool {
        self.port.wakes_sleepers(self.line)
    }

    fn arm(&mut self) -> Result<(), WireError> {
        self.port.arm(self.line).map_err(|e| self.failed(&e))
    }

    fn sleep_until_edge(&mut self, awaited: PinState, limit: Duration) -> Result<(), WireError> {
        let high = awaited == PinState::High;
        let slept = self.port.sleep(self.line, high, limit);
        slept.map_err(|e| self.failed(&e))
    }
}

/// Implementation of embedded-hal's delay with the machine's clock.
/// Short delays spin, because a sleep takes far longer than a serial bit.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pause;

impl DelayNs for Pause {
    fn delay_ns(&mut self, ns: u32) {
        const SHORT: Duration = Duration::from_micros(100);
        let delay = Duration::from_nanos(ns.into());
        if delay > SHORT {
            return thread::sleep(delay);
        }
        let start = Instant::now();
        while start.elapsed() < delay {
            core::hint::spin_loop();
        }
    }
}

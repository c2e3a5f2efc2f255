//! The receiver's side of flow control: whether a peer must use rendezvous for every message, and whether it has been notified.

use std::cell::Cell;

#[derive(Default)]
pub struct Throttle {
    /// Whether it must use rendezvous, because this process buffers too much.
    asks: Cell<bool>,
    /// The value that was last sent to it.
    told: Cell<bool>,
}

impl Throttle {
    /// Sets whether it must use rendezvous. Returns the previous value.
    pub fn set(&self, asks: bool) -> bool {
        self.asks.replace(asks)
    }

    /// Returns the value to be sent to it, unless it has that already.
    pub fn news(&self) -> Option<bool> {
        let asks = self.asks.get();
        (self.told.get() != asks).then_some(asks)
    }

    /// Notes that the value has been sent.
    pub fn was_told(&self, asks: bool) {
        self.told.set(asks);
    }
}

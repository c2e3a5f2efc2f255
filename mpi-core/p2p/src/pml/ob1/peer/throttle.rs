//! The receiver's side of flow control: whether a peer must use rendezvous for every message,
//! and whether the peer has been notified.

use std::cell::Cell;

#[derive(Default)]
pub struct Throttle {
    /// Whether the peer must use rendezvous, because this process buffers too many bytes.
    asks: Cell<bool>,
    /// The value of `asks` that was last sent to the peer.
    told: Cell<bool>,
}

impl Throttle {
    /// Sets whether the peer must use rendezvous. Returns the previous value.
    pub fn set(&self, asks: bool) -> bool {
        self.asks.replace(asks)
    }

    /// Returns the value to send to the peer, or `None` if the peer already has it.
    pub fn news(&self) -> Option<bool> {
        let asks = self.asks.get();
        (self.told.get() != asks).then_some(asks)
    }

    /// Records that the value has been sent.
    pub fn was_told(&self, asks: bool) {
        self.told.set(asks);
    }
}

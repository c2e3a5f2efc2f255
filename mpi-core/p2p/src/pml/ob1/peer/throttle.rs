//! The receiver's side of flow control for one peer: whether the peer must use rendezvous for every message,
//! and whether the peer has been notified of this.

use std::cell::Cell;

#[derive(Default)]
pub struct Throttle {
    /// True if the peer must use rendezvous, because this process buffers too many bytes.
    asks: Cell<bool>,
    /// The value of `asks` that was last sent to the peer.
    told: Cell<bool>,
}

impl Throttle {
    /// Sets whether the peer must use rendezvous. Returns the previous value.
    pub fn set(&self, asks: bool) -> bool {
        self.asks.replace(asks)
    }

    /// Returns the value of `asks` if it must be sent to the peer, or `None` if it was already sent.
    pub fn news(&self) -> Option<bool> {
        let asks = self.asks.get();
        (self.told.get() != asks).then_some(asks)
    }

    /// Records that the value `asks` was sent to the peer.
    pub fn was_told(&self, asks: bool) {
        self.told.set(asks);
    }
}

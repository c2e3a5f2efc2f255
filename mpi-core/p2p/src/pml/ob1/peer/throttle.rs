//! Whether a peer is to ask first with every message, and whether it knows: the receiver's side of flow control.

use std::cell::Cell;

#[derive(Default)]
pub struct Throttle {
    /// Whether it is to ask first, because we hold too much.
    asks: Cell<bool>,
    /// What it has been told of that.
    told: Cell<bool>,
}

impl Throttle {
    /// From now on it is to ask first, or not any more; answers what was the case before.
    pub fn set(&self, asks: bool) -> bool {
        self.asks.replace(asks)
    }

    /// What it has to be told, unless it knows.
    pub fn news(&self) -> Option<bool> {
        let asks = self.asks.get();
        (self.told.get() != asks).then_some(asks)
    }

    /// It has been told.
    pub fn was_told(&self, asks: bool) {
        self.told.set(asks);
    }
}

//! What the component tells of this process's wire, for reports and traces that are made elsewhere in the process.

use std::sync::OnceLock;

/// The number of the wire, how many barriers it has entered, how many are released.
pub type Told = fn(u32, u64, u64);

static TOLD: OnceLock<Told> = OnceLock::new();

/// From now on a function hears of the wire, the first one that asks.
pub fn hear(told: Told) {
    let _ = TOLD.set(told);
}

/// The wire was driven, or was seen to have changed.
pub(crate) fn changes(wire: u32, entered: u64, released: u64) {
    if let Some(told) = TOLD.get() {
        told(wire, entered, released);
    }
}

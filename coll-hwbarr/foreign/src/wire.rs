//! A process-wide callback that observes the barrier wire.
//! The preloaded library registers it for its hang reports and traces.

use std::sync::OnceLock;

/// The callback that observes the wire. Arguments: the wire's number and the numbers of barriers entered and
/// released.
pub type Told = fn(u32, u64, u64);

static TOLD: OnceLock<Told> = OnceLock::new();

/// Registers the callback; a second registration is ignored.
pub fn notify(told: Told) {
    let _ = TOLD.set(told);
}

/// Calls the callback after the wire was driven or has changed.
pub(crate) fn changes(wire: u32, entered: u64, released: u64) {
    if let Some(told) = TOLD.get() {
        told(wire, entered, released);
    }
}

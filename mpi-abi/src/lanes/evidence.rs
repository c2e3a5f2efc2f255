//! Evidence that no thread of this process can continue without another rank: polls of lanes in which
//! no thread waits, and the messages of lane 0's transports.

use super::{count, within_if_free};
use crate::state::{self, state};
use crate::thread_waits::{self, Sources, found, found_nothing, is_polled};
use mpi_base::clock::now_ns;
use mpi_core::Engine;

/// The functions that gather the evidence for waiting threads.
pub const SOURCES: Sources = Sources {
    poll_idle,
    record_outside,
};

/// Returns the engine of lane 0. The caller holds its lock.
fn base() -> Option<Engine> {
    let engine = state().engines().engine().try_borrow();
    engine.ok().and_then(|engine| engine.clone())
}

/// Polls a lane, and records the result. The caller holds its lock.
fn poll(lane: usize, engine: &Engine) {
    let before_ns = now_ns();
    if engine.progress() {
        found(lane);
        return;
    }
    if lane == 0 {
        record_outside();
    }
    found_nothing(lane, before_ns);
}

/// Polls each lane that no thread has polled recently, if its lock is free.
///
/// The caller may be in a lane: its own lock is not free, and it waits for no lock.
fn poll_idle() {
    let now = now_ns();
    for lane in (0..count()).filter(|lane| !is_polled(*lane, now)) {
        match lane {
            0 => state::locked_if_free(|| {
                if let Some(engine) = base() {
                    poll(0, &engine);
                }
            }),
            lane => within_if_free(lane, |contents| {
                if let Some(engine) = contents.engine() {
                    poll(lane, engine);
                }
            }),
        };
    }
}

/// Records the messages of lane 0's transports, and whether another job could end a wait.
fn record_outside() {
    if let (Some(engine), Some(page)) = (base(), thread_waits::page()) {
        let (counts, is_open) = engine.published().outside();
        page.outside(counts, is_open);
    }
}

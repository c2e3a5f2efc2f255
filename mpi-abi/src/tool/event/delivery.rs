//! Event delivery: calls the tools' callbacks, and holds the event that a callback reads.

use super::queue::{Instance, Next, has_begun, queue};
use crate::abi::*;
use crate::error::Failure;
use crate::phase;
use std::cell::Cell;

thread_local! {
    /// The event whose callback this thread executes, with its instance number.
    static CURRENT: Cell<Option<(usize, Instance)>> = const { Cell::new(None) };
    /// The number of the latest event instance.
    static LATEST: Cell<usize> = const { Cell::new(0) };
}

/// Calls the callbacks of queued events at the end of an MPI call.
///
/// Before `MPI_Init` and after `MPI_Finalize` a callback must not call MPI.
pub fn deliver_after_call() {
    deliver(match phase::running() {
        true => MPI_T_CB_REQUIRE_NONE,
        false => MPI_T_CB_REQUIRE_MPI_RESTRICTED,
    });
}

/// Calls the callbacks of queued events in a call that waits.
/// Callbacks that may call MPI are deferred to the end of the call.
pub fn deliver_in_wait() {
    if has_begun() {
        deliver(MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    }
}

fn deliver(safety: MPI_T_cb_safety) {
    if CURRENT.get().is_some() {
        // A callback has called MPI. Events of that call are delivered after the callback's return.
        return;
    }
    loop {
        let next = queue().take(safety);
        match next {
            None => return,
            Some(Next::Dropped(registration, handler, callback, count)) => {
                callback.report_dropped(handler, count, registration, safety);
            }
            Some(Next::Callback(registration, callback, instance)) => {
                let number = LATEST.get() + 1;
                LATEST.set(number);
                CURRENT.set(Some((number, instance)));
                callback.call(number, registration, safety);
                CURRENT.set(None);
            }
        }
        let freed = queue().has_run();
        if let Some(freed) = freed {
            freed.call(safety);
        }
    }
}

/// Returns the event of an instance handle, valid only within its callback.
pub fn instance(handle: MPI_T_event_instance) -> Result<Instance, Failure> {
    match CURRENT.get() {
        Some((number, instance)) if number == handle.0 => Ok(instance),
        _ => Err(Failure::new(
            MPI_T_ERR_INVALID_HANDLE,
            format!(
                "{:#x} is not the instance of an event whose callback runs in this thread",
                handle.0
            ),
        )),
    }
}

/// Returns the elements of an event.
pub fn copy_of(instance: &Instance) -> &[i64] {
    let len = super::table::EVENTS
        .get(instance.event)
        .map_or(0, |event| event.elements.len());
    instance.elements.get(..len).unwrap_or_default()
}

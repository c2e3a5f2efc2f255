//! A registration of a tool for an event, with its callbacks.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::error::Failure;
use std::ffi::c_void;

/// The safety levels, from the least to the most restrictive for a callback.
const SAFETIES: [MPI_T_cb_safety; 4] = [
    MPI_T_CB_REQUIRE_NONE,
    MPI_T_CB_REQUIRE_MPI_RESTRICTED,
    MPI_T_CB_REQUIRE_THREAD_SAFE,
    MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
];

/// Returns the index of a safety level in [`SAFETIES`].
fn rank_of(safety: MPI_T_cb_safety) -> Option<usize> {
    SAFETIES.iter().position(|known| *known == safety)
}

/// Returns an error unless the argument is a safety level.
pub fn is_safety(safety: MPI_T_cb_safety) -> Result<(), Failure> {
    rank_of(safety).map(|_| ()).ok_or_else(|| {
        let sentence = format!("{safety} is no safety level of callbacks, MPI_T_CB_REQUIRE_...");
        Failure::new(MPI_T_ERR_INVALID, sentence)
    })
}

/// A callback of a tool, with its data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callback {
    function: MPI_T_event_cb_function,
    user_data: *mut c_void,
}

// SAFETY: the pointer is only passed to the tool.
// The tool's callback may run in any thread that calls MPI.
unsafe impl Send for Callback {}

impl Callback {
    pub(super) fn new(function: MPI_T_event_cb_function, user_data: *mut c_void) -> Callback {
        Callback {
            function,
            user_data,
        }
    }

    /// Calls the callback with an event.
    pub(super) fn call(self, instance: usize, registration: usize, safety: MPI_T_cb_safety) {
        // SAFETY: the tool registered this callback with this data.
        // By the head of module `event`, no state of the library is borrowed during the call.
        unsafe {
            (self.function)(
                MPI_T_event_instance(instance),
                MPI_T_event_registration(registration),
                safety,
                self.user_data,
            );
        }
    }

    /// Reports the number of dropped events to the tool.
    pub(super) fn report_dropped(
        self,
        handler: DroppedHandler,
        count: u64,
        registration: usize,
        safety: MPI_T_cb_safety,
    ) {
        let count = MPI_Count::try_from(count).unwrap_or(MPI_Count::MAX);
        // SAFETY: the tool set this handler for dropped events.
        // The handler receives the data of the callback of this safety level.
        unsafe {
            handler(
                count,
                MPI_T_event_registration(registration),
                0,
                safety,
                self.user_data,
            );
        }
    }
}

/// The callback for dropped events.
pub(super) type DroppedHandler = MPI_T_event_dropped_cb_function;

/// The callback that runs after a registration was freed and its callbacks have returned.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreeCallback {
    registration: usize,
    function: Option<MPI_T_event_free_cb_function>,
    user_data: *mut c_void,
}

impl Default for FreeCallback {
    fn default() -> FreeCallback {
        FreeCallback {
            registration: 0,
            function: None,
            user_data: std::ptr::null_mut(),
        }
    }
}

// SAFETY: the pointer is only passed to the tool.
// The tool's callback may run in any thread that calls MPI.
unsafe impl Send for FreeCallback {}

impl FreeCallback {
    pub(super) fn new(
        registration: MPI_T_event_registration,
        function: Option<MPI_T_event_free_cb_function>,
        user_data: *mut c_void,
    ) -> FreeCallback {
        FreeCallback {
            registration: registration.0,
            function,
            user_data,
        }
    }

    /// Notifies the tool that its registration is no longer used.
    pub(super) fn call(self, safety: MPI_T_cb_safety) {
        if let Some(function) = self.function {
            // SAFETY: the tool passed this function with this data to MPI_T_event_handle_free.
            unsafe {
                function(
                    MPI_T_event_registration(self.registration),
                    safety,
                    self.user_data,
                );
            }
        }
    }
}

/// The registration of an event.
#[derive(Debug)]
pub(super) struct Registration {
    event: usize,
    /// The id of the communicator to which the registration is bound, or `None` for the process.
    comm: Option<u64>,
    /// The callbacks, indexed like [`SAFETIES`].
    callbacks: [Option<Callback>; SAFETIES.len()],
    dropped_handler: Option<DroppedHandler>,
    dropped: u64,
}

impl Registration {
    pub(super) fn new(event: usize, comm: Option<u64>) -> Registration {
        Registration {
            event,
            comm,
            callbacks: [None; SAFETIES.len()],
            dropped_handler: None,
            dropped: 0,
        }
    }

    /// Returns true if the registration has a callback for this event of this communicator.
    pub(super) fn wants(&self, event: usize, comm: Option<u64>) -> bool {
        self.event == event && self.comm == comm && self.callbacks.iter().any(Option::is_some)
    }

    /// Counts an event that was dropped because the queue was full.
    pub(super) fn drops(&mut self) {
        self.dropped += 1;
    }

    /// Returns true if dropped events must be reported to the handler.
    #[cfg(test)]
    pub(super) fn has_dropped(&self) -> bool {
        self.dropped > 0 && self.dropped_handler.is_some()
    }

    /// Sets or removes the callback of a safety level.
    pub(super) fn set_callback(&mut self, safety: MPI_T_cb_safety, callback: Option<Callback>) {
        if let Some(at) = rank_of(safety) {
            self.callbacks[at] = callback;
        }
    }

    /// Returns true if the registration has a callback of exactly this safety level.
    pub(super) fn has_callback(&self, safety: MPI_T_cb_safety) -> bool {
        rank_of(safety).is_some_and(|at| self.callbacks[at].is_some())
    }

    pub(super) fn set_dropped_handler(&mut self, handler: Option<DroppedHandler>) {
        self.dropped_handler = handler;
        self.dropped = 0;
    }

    /// Returns the callback for the safety level `safety`, or else that of the next stricter level.
    pub(super) fn callback(&self, safety: MPI_T_cb_safety) -> Option<Callback> {
        let from = rank_of(safety)?;
        self.callbacks[from..].iter().flatten().next().copied()
    }

    /// Takes the number of dropped events, with the handler that receives it.
    pub(super) fn take_dropped(
        &mut self,
        safety: MPI_T_cb_safety,
    ) -> Option<(DroppedHandler, Callback, u64)> {
        if self.dropped == 0 {
            return None;
        }
        let found = (self.dropped_handler?, self.callback(safety)?);
        Some((found.0, found.1, std::mem::take(&mut self.dropped)))
    }
}

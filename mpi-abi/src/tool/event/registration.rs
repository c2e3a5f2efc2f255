//! Registrations: which events a tool wants, and its callbacks.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::error::Failure;
use std::ffi::c_void;

/// The safety levels, from the one that allows a callback most to the one that allows it least.
const SAFETIES: [MPI_T_cb_safety; 4] = [
    MPI_T_CB_REQUIRE_NONE,
    MPI_T_CB_REQUIRE_MPI_RESTRICTED,
    MPI_T_CB_REQUIRE_THREAD_SAFE,
    MPI_T_CB_REQUIRE_ASYNC_SIGNAL_SAFE,
];

/// Returns the position of a safety level.
fn rank_of(safety: MPI_T_cb_safety) -> Option<usize> {
    SAFETIES.iter().position(|known| *known == safety)
}

/// Returns an error unless a number is a safety level.
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

// SAFETY: the pointer is only handed back to the tool, whose callback may be called by any thread that makes MPI calls.
unsafe impl Send for Callback {}

impl Callback {
    pub(super) fn new(function: MPI_T_event_cb_function, user_data: *mut c_void) -> Callback {
        Callback {
            function,
            user_data,
        }
    }

    /// Shows an event to the tool.
    pub(super) fn call(self, instance: usize, registration: usize, safety: MPI_T_cb_safety) {
        // SAFETY: the tool has registered this function for such calls with this data; the call is not inside the library's own state,
        // by the head of this folder.
        unsafe {
            (self.function)(
                MPI_T_event_instance(instance),
                MPI_T_event_registration(registration),
                safety,
                self.user_data,
            );
        }
    }

    /// Reports to the tool how many events were dropped.
    pub(super) fn report_dropped(
        self,
        handler: DroppedHandler,
        count: u64,
        registration: usize,
        safety: MPI_T_cb_safety,
    ) {
        let count = MPI_Count::try_from(count).unwrap_or(MPI_Count::MAX);
        // SAFETY: the tool has set this function as the handler of such calls; it gets the data of the callback of this level.
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

/// The function that learns the number of dropped events.
pub(super) type DroppedHandler = MPI_T_event_dropped_cb_function;

/// The function that is called when a registration has been freed and its callbacks have returned, with its data.
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

// SAFETY: as for `Callback`: the pointer is only handed back to the tool.
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

    /// Tells the tool that its registration is no longer used.
    pub(super) fn call(self, safety: MPI_T_cb_safety) {
        if let Some(function) = self.function {
            // SAFETY: the tool has passed this function and these data to MPI_T_event_handle_free for this call.
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
    /// The number of the communicator that it is bound to.
    comm: Option<u64>,
    /// A callback for each of [`SAFETIES`].
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

    /// Returns true if it has a callback for such an event of this communicator.
    pub(super) fn wants(&self, event: usize, comm: Option<u64>) -> bool {
        self.event == event && self.comm == comm && self.callbacks.iter().any(Option::is_some)
    }

    /// Counts an event for which the queue had no space.
    pub(super) fn drops(&mut self) {
        self.dropped += 1;
    }

    /// Returns true if its handler must learn of dropped events.
    #[cfg(test)]
    pub(super) fn has_dropped(&self) -> bool {
        self.dropped > 0 && self.dropped_handler.is_some()
    }

    /// Sets or removes the callback of a level.
    pub(super) fn set_callback(&mut self, safety: MPI_T_cb_safety, callback: Option<Callback>) {
        if let Some(at) = rank_of(safety) {
            self.callbacks[at] = callback;
        }
    }

    /// Returns true if it has a callback of exactly this level.
    pub(super) fn has_callback(&self, safety: MPI_T_cb_safety) -> bool {
        rank_of(safety).is_some_and(|at| self.callbacks[at].is_some())
    }

    pub(super) fn set_dropped_handler(&mut self, handler: Option<DroppedHandler>) {
        self.dropped_handler = handler;
        self.dropped = 0;
    }

    /// Returns the callback that may be called where `safety` is required: the one of the lowest level that suffices.
    pub(super) fn callback(&self, safety: MPI_T_cb_safety) -> Option<Callback> {
        let from = rank_of(safety)?;
        self.callbacks[from..].iter().flatten().next().copied()
    }

    /// Takes the number of dropped events, with the handler that must learn it.
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

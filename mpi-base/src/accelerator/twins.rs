//! Twins: host memory that represents device memory during one message,
//! and is filled from the device only if a processor reads it.
//!
//! The sender of a long message passes a twin to the engine instead of a complete host copy.
//! A receiver on the same node may copy from the device directly ([`Accelerator::export`]);
//! the twin is then never filled.
//! Otherwise the message is sent in fragments. Each fragment waits only for its part of the twin
//! ([`Twin::fill_to`]), while the copies of the next pieces are in flight.
//!
//! While no twin is registered, each message that is not short costs one more load ([`at`]).

use super::{Accelerator, AcceleratorError, Direction, Flight, Memory, PIECE, Strip};
use std::collections::VecDeque;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum number of asynchronous copies in flight for one twin.
const AHEAD: usize = 3;

static ALL: Mutex<Vec<Arc<Twin>>> = Mutex::new(Vec::new());
static NUMBER: AtomicUsize = AtomicUsize::new(0);

/// Contiguous host memory and the device memory that it represents.
pub struct Twin {
    by: &'static dyn Accelerator,
    memory: Memory,
    device: usize,
    host: usize,
    len: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Number of bytes whose copies to the host have been started.
    /// `filled`: number of bytes whose copies have ended.
    started: usize,
    filled: usize,
    /// The copies in flight, oldest first, each with the end of its piece in bytes.
    flights: VecDeque<(usize, Flight)>,
    failure: Option<AcceleratorError>,
    /// Number of bytes at the start of the message that another process's device has already sent.
    arrived: usize,
}

fn all() -> MutexGuard<'static, Vec<Arc<Twin>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the registered twin whose host memory starts at this address; `None` if no twin does.
#[inline]
pub fn at(host: *const u8) -> Option<Arc<Twin>> {
    match NUMBER.load(Acquire) {
        0 => None,
        _ => find(host),
    }
}

#[cold]
fn find(host: *const u8) -> Option<Arc<Twin>> {
    let all = all();
    all.iter().find(|twin| twin.host == host.addr()).cloned()
}

/// A registered twin. Drop waits for the copies in flight and removes the twin from the registry.
pub struct Registered(Arc<Twin>);

impl Registered {
    /// Registers host memory as a representation of device memory of the same length.
    ///
    /// # Safety
    /// The host memory is valid for reading and writing until the value is dropped.
    pub unsafe fn new(
        (by, memory): (&'static dyn Accelerator, Memory),
        device: *mut u8,
        host: *mut u8,
        len: usize,
    ) -> Registered {
        let twin = Arc::new(Twin {
            by,
            memory,
            device: device.expose_provenance(),
            host: host.expose_provenance(),
            len,
            state: Mutex::default(),
        });
        let mut all = all();
        all.push(twin.clone());
        NUMBER.store(all.len(), Release);
        Registered(twin)
    }

    /// Returns the registered twin.
    pub fn twin(&self) -> &Twin {
        &self.0
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.0.land_flights();
        let mut all = all();
        all.retain(|twin| !Arc::ptr_eq(twin, &self.0));
        NUMBER.store(all.len(), Relaxed);
    }
}

impl Twin {
    /// Returns the accelerator, the properties of the device memory that the twin represents,
    /// and the device address of the first byte of this memory.
    pub fn device(&self) -> (&'static dyn Accelerator, &Memory, *mut u8) {
        let at = std::ptr::with_exposed_provenance_mut(self.device);
        (self.by, &self.memory, at)
    }

    /// Returns the length of the host memory and of the device memory in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns true if the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prepares the twin for another message: nothing is filled, and no copy has failed.
    pub fn restart(&self) {
        self.land_flights();
        *self.state() = State::default();
    }

    /// Waits until the first `end` bytes are in host memory, and starts the next copies.
    /// After a failed copy the bytes are arbitrary, and [`Twin::failure`] returns the error.
    pub fn fill_to(&self, end: usize) {
        let end = end.min(self.len);
        let mut state = self.state();
        while state.filled < end {
            self.start_ahead(&mut state, end);
            let Some((filled, flight)) = state.flights.pop_front() else {
                return;
            };
            if let Some(Err(error)) = self.by.end(flight, true) {
                state.failure.get_or_insert(error);
            }
            state.filled = filled;
        }
        self.start_ahead(&mut state, end);
    }

    /// Starts copies until [`AHEAD`] are in flight; without asynchronous copies, copies up to `end`.
    fn start_ahead(&self, state: &mut State, end: usize) {
        while state.started < self.len && state.failure.is_none() && state.flights.len() < AHEAD {
            // Synchronous copies of pieces beyond `end` would only delay this fragment.
            if !self.by.has_flights() && state.started >= end {
                return;
            }
            let at = state.started;
            let len = PIECE.min(self.len - at);
            state.started = at + len;
            match self.start(at, len) {
                Ok(Some(flight)) => state.flights.push_back((at + len, flight)),
                Ok(None) => state.filled = at + len,
                Err(error) => state.failure = Some(error),
            }
        }
        if state.failure.is_some() && state.flights.is_empty() {
            state.filled = self.len;
        }
    }

    /// Starts the copy of a piece; returns `None` if the copy was synchronous and has ended.
    fn start(&self, at: usize, len: usize) -> Result<Option<Flight>, AcceleratorError> {
        let strip = Strip {
            device: std::ptr::with_exposed_provenance_mut(self.device + at),
            host: std::ptr::with_exposed_provenance_mut(self.host + at),
            len,
            stride: len,
            blocks: 1,
        };
        if self.by.has_flights() {
            // SAFETY: the host memory is valid until the registration ends, which waits for all flights.
            return unsafe { self.by.begin(&self.memory, Direction::ToHost, strip) }.map(Some);
        }
        let mut strips = std::iter::once(strip);
        // SAFETY: the host memory is valid until the registration ends.
        unsafe { self.by.copy(&self.memory, Direction::ToHost, &mut strips) }?;
        Ok(None)
    }

    fn land_flights(&self) {
        let mut state = self.state();
        for (_, flight) in std::mem::take(&mut state.flights) {
            let _ended = self.by.end(flight, true);
        }
        // A message that still refers to this twin must not start more copies.
        state.started = self.len;
    }

    /// Returns the error of the first failed copy to the host memory, if any copy failed.
    pub fn failure(&self) -> Option<AcceleratorError> {
        self.state().failure.clone()
    }

    /// Records that the message's first `bytes` bytes were copied to the device directly.
    pub fn arrive(&self, bytes: usize) {
        self.state().arrived = bytes;
    }

    /// Returns true if the first `bytes` bytes were copied to the device directly ([`Twin::arrive`]).
    pub fn has_arrived(&self, bytes: usize) -> bool {
        self.state().arrived >= bytes.max(1)
    }
}

//! Twins: host memory that represents device memory during one operation.
//!
//! *Sends.* The sender of a long message passes a twin to the engine instead of a complete host copy.
//! A receiver on the same node may copy from the device directly ([`Accelerator::export`]);
//! the twin is then never filled.
//! Otherwise the message is sent in fragments. Each fragment waits only for its part of the twin
//! ([`Part::fill_to`]), while the copies of the next pieces are in flight.
//!
//! *Receives.* The engine reports the bytes that have arrived in the twin ([`Part::arrive`]),
//! and the twin copies complete pieces to the device while later bytes arrive.
//! [`Twin::land`] copies the rest and waits for all copies.
//!
//! A message may use a part of a twin, as the partitions of a partitioned send do.
//!
//! While no twin is registered, each message that is not short costs one more load ([`of`]).

pub use super::twin::Twin;

use super::{Accelerator, Memory};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The registered twins by the address of their host memory.
static ALL: Mutex<BTreeMap<usize, Arc<Twin>>> = Mutex::new(BTreeMap::new());
static NUMBER: AtomicUsize = AtomicUsize::new(0);

fn all() -> MutexGuard<'static, BTreeMap<usize, Arc<Twin>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns true if a twin is registered.
#[inline]
pub fn exist() -> bool {
    NUMBER.load(Acquire) != 0
}

/// Returns the part of a registered twin whose host memory is the `len` bytes at this address;
/// `None` if the bytes are not in a twin.
#[inline]
pub fn of(host: *const u8, len: usize) -> Option<Part> {
    match exist() {
        false => None,
        true => find(host.addr(), len),
    }
}

#[cold]
fn find(host: usize, len: usize) -> Option<Part> {
    let all = all();
    let (start, twin) = all.range(..=host).next_back()?;
    let at = host - start;
    let is_inside = len > 0 && len <= twin.len().saturating_sub(at);
    is_inside.then(|| Part {
        twin: twin.clone(),
        range: at..at + len,
    })
}

/// A registered twin. Drop waits for the copies in flight and removes the twin from the registry.
pub struct Registered(Arc<Twin>);

impl Registered {
    /// Registers host memory as a representation of device memory of the same length.
    ///
    /// # Safety
    /// The host memory is valid for reading and writing until the value is dropped.
    pub unsafe fn new(
        by: (&'static dyn Accelerator, Memory),
        device: *mut u8,
        host: *mut u8,
        len: usize,
    ) -> Registered {
        let twin = Arc::new(Twin::new(by, device, host, len));
        let mut all = all();
        all.insert(twin.host(), twin.clone());
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
        self.0.close();
        let mut all = all();
        all.remove(&self.0.host());
        NUMBER.store(all.len(), Relaxed);
    }
}

/// The part of a twin that contains the data of one message.
#[derive(Clone)]
pub struct Part {
    twin: Arc<Twin>,
    range: Range<usize>,
}

impl Part {
    /// Returns the accelerator, the properties of the device memory that the part represents,
    /// and the device address of the part's first byte.
    pub fn device(&self) -> (&'static dyn Accelerator, &Memory, *mut u8) {
        self.twin.device(self.range.start)
    }

    /// Converts a range of the part's bytes to a range of the twin's bytes.
    fn bytes(&self, range: Range<usize>) -> Range<usize> {
        let limit = |at: usize| self.range.start.saturating_add(at).min(self.range.end);
        limit(range.start)..limit(range.end)
    }

    /// Starts the first copies to the host, if the accelerator supports asynchronous copies.
    pub fn begin(&self) {
        self.twin.begin(&self.range);
    }

    /// Waits until the first `end` bytes are in host memory, and starts the next copies.
    /// After a failed copy the bytes are arbitrary, and [`Twin::failure`] returns the error.
    pub fn fill_to(&self, end: usize) {
        self.twin.fill(&self.range, self.bytes(0..end).end);
    }

    /// Waits until all bytes are in host memory, as [`Part::fill_to`] does.
    pub fn fill(&self) {
        self.twin.fill(&self.range, self.range.end);
    }

    /// Handles the arrival of the bytes `range` in host memory: starts the copies of complete pieces to the device.
    pub fn arrive(&self, range: Range<usize>) {
        self.twin.arrive(self.bytes(range));
    }

    /// Starts the copies of all other bytes that have arrived, because no more bytes will arrive.
    pub fn arrived(&self) {
        self.twin.arrived(&self.range);
    }

    /// Records that another process's device has written the first `bytes` bytes of the device memory.
    pub fn skip(&self, bytes: usize) {
        self.twin.skip(self.bytes(0..bytes));
    }
}

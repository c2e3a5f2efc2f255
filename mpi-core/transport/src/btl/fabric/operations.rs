//! Operations on peers' registered memory (remote reads, writes and flushes):
//! the IDs of active operations, and the outcomes of ended operations.

#![allow(unsafe_code)]

use super::Fabric;
use super::peer::State;
use super::port::{Operation, Port};
use crate::btl::{Endpoint, Exposed, GetError, Region, RemoteMemory, Rights, Span};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Maximum time in which `give_up` waits for the end of an operation.
const GIVEN_UP: Duration = Duration::from_secs(2);
/// Maximum number of operations without a fetched outcome, which limits the library's memory.
const MOST: usize = 64;

/// The operations of one process whose outcome has not been fetched.
#[derive(Default)]
pub(super) struct Operations {
    last: Cell<u64>,
    /// The outcome of each operation by its ID: true for success, `None` while the operation is active.
    all: RefCell<HashMap<u64, Option<bool>>>,
    /// Number of ended operations in `all`.
    ended: Cell<usize>,
}

impl Operations {
    /// Returns the ID of a new operation; `None` if there are too many.
    fn begin(&self) -> Option<u64> {
        let mut all = self.all.borrow_mut();
        if all.len() >= MOST {
            return None;
        }
        let number = self.last.get() + 1;
        self.last.set(number);
        all.insert(number, None);
        Some(number)
    }

    /// Records the end of an operation. The end of an abandoned operation is ignored.
    pub fn end(&self, number: u64, succeeded: bool) {
        if let Some(outcome @ None) = self.all.borrow_mut().get_mut(&number) {
            *outcome = Some(succeeded);
            self.ended.set(self.ended.get() + 1);
        }
    }

    /// Returns true if an operation has ended and its outcome has not been fetched.
    pub fn have_ended(&self) -> bool {
        self.ended.get() > 0
    }

    fn is_active(&self, number: u64) -> bool {
        matches!(self.all.borrow().get(&number), Some(None))
    }

    /// Removes an operation, whether it is active or has ended.
    /// Returns false if the operation was removed before.
    fn forget(&self, number: u64) -> bool {
        match self.all.borrow_mut().remove(&number) {
            None => return false,
            Some(None) => {}
            Some(Some(_)) => self.ended.set(self.ended.get() - 1),
        }
        true
    }

    fn take(&self, number: u64) -> Option<bool> {
        let mut all = self.all.borrow_mut();
        let outcome = (*all.get(&number)?)?;
        all.remove(&number);
        self.ended.set(self.ended.get() - 1);
        Some(outcome)
    }
}

impl<P: Port> Fabric<P> {
    /// Starts an operation on a peer's registered memory. Returns the operation's ID.
    ///
    /// # Safety
    /// As for [`super::port::Memory::start`].
    unsafe fn start(&self, to: Endpoint, operation: Operation<'_>) -> Result<u64, GetError> {
        let peer = self.peer(to.0).ok_or(GetError::PeerGone)?;
        match peer.state.get() {
            State::Up => {}
            State::Fresh => self.connect(peer).map_err(|_| GetError::PeerGone)?,
            State::Lost => return Err(GetError::PeerGone),
        }
        let memory = self.port.memory().ok_or(GetError::Forbidden)?;
        let number = self.operations.begin().ok_or(GetError::Busy)?;
        // SAFETY: the caller guarantees what the port requires of the local memory.
        match unsafe { memory.start(to.0, operation, number) } {
            Ok(true) => self.operations.end(number, true),
            Ok(false) => {}
            Err(error) => {
                self.operations.all.borrow_mut().remove(&number);
                return Err(error);
            }
        }
        // An active operation counts as a message in flight, because a process may wait for its end.
        self.sent.set(self.sent.get() + 1);
        Ok(number)
    }
}

impl<P: Port> RemoteMemory for Fabric<P> {
    fn shortest(&self) -> usize {
        self.read_min
    }

    unsafe fn expose(&self, region: Region, rights: Rights) -> Option<Exposed> {
        // SAFETY: the caller guarantees that the memory remains valid until `withdraw`.
        unsafe { self.port.memory()?.register(region, rights) }
    }

    fn withdraw(&self, number: u64) {
        if let Some(memory) = self.port.memory() {
            memory.unregister(number);
        }
    }

    unsafe fn read(&self, from: Endpoint, span: Span<'_>) -> Result<u64, GetError> {
        // SAFETY: the caller guarantees that only this read accesses the local memory until its outcome is known.
        unsafe { self.start(from, Operation::Read(span)) }
    }

    unsafe fn write(&self, to: Endpoint, span: Span<'_>) -> Result<u64, GetError> {
        // SAFETY: the caller guarantees that the local memory is neither freed nor written until the outcome is known.
        unsafe { self.start(to, Operation::Write(span)) }
    }

    fn flush(&self, to: Endpoint) -> Result<u64, GetError> {
        // SAFETY: a flush accesses no local memory.
        unsafe { self.start(to, Operation::Flush) }
    }

    fn outcome(&self, access: u64) -> Option<bool> {
        let outcome = self.operations.take(access)?;
        self.received.set(self.received.get() + 1);
        Some(outcome)
    }

    fn give_up(&self, access: u64) {
        let deadline = Instant::now() + GIVEN_UP;
        // If a poll is running (`busy`), this call must not poll.
        // In this case the library has already stopped all operations with the lost peer.
        while self.operations.is_active(access) && !self.busy.replace(true) {
            self.turn(None);
            self.busy.set(false);
            if Instant::now() >= deadline {
                break;
            }
        }
        if self.operations.forget(access) {
            self.received.set(self.received.get() + 1);
        }
    }
}

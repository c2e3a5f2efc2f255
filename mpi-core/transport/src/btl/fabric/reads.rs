//! Reads of peers' registered memory: the numbers of those that are active, and their outcomes.

#![allow(unsafe_code)]

use super::Fabric;
use super::peer::State;
use super::port::Port;
use crate::btl::{Endpoint, Exposed, GetError, Region, RemoteRead};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// How long a receive that is given up waits for its read to end.
const GIVEN_UP: Duration = Duration::from_secs(2);
/// Maximum number of reads that the library has not finished, so that its memory is bounded.
const MOST: usize = 64;

/// The reads of one process that have not been asked for their outcome.
#[derive(Default)]
pub(super) struct Reads {
    last: Cell<u64>,
    /// The outcome of each read; `None` while it is active.
    all: RefCell<HashMap<u64, Option<bool>>>,
    /// Number of outcomes in `all`.
    ended: Cell<usize>,
}

impl Reads {
    /// Returns the number of a new read; `None` if too many are active.
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

    /// Records the end of a read; one whose receive was given up is forgotten.
    pub fn end(&self, number: u64, succeeded: bool) {
        if let Some(outcome @ None) = self.all.borrow_mut().get_mut(&number) {
            *outcome = Some(succeeded);
            self.ended.set(self.ended.get() + 1);
        }
    }

    /// Returns true if an outcome has not been asked for.
    pub fn have_ended(&self) -> bool {
        self.ended.get() > 0
    }

    fn is_active(&self, number: u64) -> bool {
        matches!(self.all.borrow().get(&number), Some(None))
    }

    fn take(&self, number: u64) -> Option<bool> {
        let mut all = self.all.borrow_mut();
        let outcome = (*all.get(&number)?)?;
        all.remove(&number);
        self.ended.set(self.ended.get() - 1);
        Some(outcome)
    }
}

impl<P: Port> RemoteRead for Fabric<P> {
    fn shortest(&self) -> usize {
        self.read_min
    }

    unsafe fn expose(&self, region: Region) -> Option<Exposed> {
        // SAFETY: the caller promises that the memory stays until it is withdrawn.
        unsafe { self.port.memory()?.register(region) }
    }

    fn withdraw(&self, number: u64) {
        if let Some(memory) = self.port.memory() {
            memory.unregister(number);
        }
    }

    unsafe fn read(&self, to: Endpoint, key: &[u8], local: Region) -> Result<u64, GetError> {
        let peer = self.peer(to.0).ok_or(GetError::PeerGone)?;
        if peer.state.get() != State::Up {
            return Err(GetError::PeerGone);
        }
        let memory = self.port.memory().ok_or(GetError::Forbidden)?;
        let number = self.reads.begin().ok_or(GetError::Busy)?;
        // SAFETY: the caller promises that only this read uses the memory until its outcome is known.
        match unsafe { memory.read(to.0, key, local, number) } {
            Ok(true) => self.reads.end(number, true),
            Ok(false) => {}
            Err(error) => {
                self.reads.all.borrow_mut().remove(&number);
                return Err(error);
            }
        }
        // An active read counts as a message in flight, since its end lets both processes go on.
        self.sent.set(self.sent.get() + 1);
        Ok(number)
    }

    fn outcome(&self, read: u64) -> Option<bool> {
        let outcome = self.reads.take(read)?;
        self.received.set(self.received.get() + 1);
        Some(outcome)
    }

    fn give_up(&self, read: u64) {
        let deadline = Instant::now() + GIVEN_UP;
        // Within a poll, the running call continues; the library has stopped reading from a peer that is lost.
        while self.reads.is_active(read) && !self.busy.replace(true) {
            self.turn(None);
            self.busy.set(false);
            if Instant::now() >= deadline {
                break;
            }
        }
        if self.reads.take(read).is_none() {
            self.reads.all.borrow_mut().remove(&read);
        }
        self.received.set(self.received.get() + 1);
    }
}

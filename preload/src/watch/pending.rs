//! The program's incomplete requests, and the messages found by matched probes.

use super::call_args::{Direction, HandlePtr};
use super::comms::Communicator;
use super::event_log::Arrived;
use coll_hwbarr_foreign::library::Handle;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;

/// The message of a point-to-point request.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub direction: Direction,
    pub comm: Arc<Communicator>,
    /// The peer's rank or a wildcard, in the library's values.
    pub peer: c_int,
    pub tag: c_int,
    pub bytes: u64,
    /// The message's sequence number, if assigned when the request was posted.
    pub number: Option<u64>,
    /// True for a persistent request.
    pub stays: bool,
    /// True while the request is active.
    pub is_open: bool,
}

#[derive(Clone, Debug)]
pub enum Pending {
    Transfer(Transfer),
    /// A collective operation.
    Round,
    /// An `MPI_Comm_idup`: the parent, and the address of the new communicator's handle.
    Duplicate(Arc<Communicator>, HandlePtr),
}

/// The incomplete requests.
///
/// The library may reuse a handle as soon as its request is complete.
/// The waiting thread may not yet have returned at that time.
/// So each request has a unique number, which the caller looks up before the completing call.
#[derive(Debug, Default)]
pub struct Pendings {
    numbers: HashMap<Handle, u64>,
    requests: HashMap<u64, Pending>,
    next: u64,
    matched: HashMap<Handle, (Arc<Communicator>, Arrived)>,
}

impl Pendings {
    pub fn add(&mut self, request: Handle, pending: Pending) {
        self.next += 1;
        self.numbers.insert(request, self.next);
        self.requests.insert(self.next, pending);
    }

    /// Returns the number of the request with this handle; 0 for an unknown handle.
    pub fn number(&self, request: Handle) -> u64 {
        self.numbers.get(&request).copied().unwrap_or(0)
    }

    pub fn get(&self, request: Handle) -> Option<&Pending> {
        self.requests.get(self.numbers.get(&request)?)
    }

    /// Marks a persistent request as active.
    pub fn starts(&mut self, number: u64) -> Option<&mut Transfer> {
        match self.requests.get_mut(&number) {
            Some(Pending::Transfer(transfer)) if transfer.stays => {
                transfer.is_open = true;
                Some(transfer)
            }
            _ => None,
        }
    }

    /// Completes a request; returns the request if it was active.
    pub fn completes(&mut self, request: Handle, number: u64) -> Option<Pending> {
        match self.requests.get_mut(&number) {
            Some(Pending::Transfer(transfer)) if transfer.stays => {
                let was_open = std::mem::take(&mut transfer.is_open);
                was_open.then(|| Pending::Transfer(transfer.clone()))
            }
            _ => self.forgets(request, number),
        }
    }

    pub fn forgets(&mut self, request: Handle, number: u64) -> Option<Pending> {
        if self.number(request) == number {
            self.numbers.remove(&request);
        }
        self.requests.remove(&number)
    }

    /// Records a message that a matched probe has found; the receive removes this record later.
    pub fn matches(&mut self, message: Handle, comm: Arc<Communicator>, arrived: Arrived) {
        self.matched.insert(message, (comm, arrived));
    }

    pub fn take_matched(&mut self, message: Handle) -> Option<(Arc<Communicator>, Arrived)> {
        self.matched.remove(&message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_that_another_thread_has_got_meanwhile_is_not_mistaken() {
        let mut pendings = Pendings::default();
        pendings.add(7, Pending::Round);
        let first = pendings.number(7);
        pendings.add(7, Pending::Round);
        assert!(pendings.completes(7, first).is_some());
        assert!(pendings.get(7).is_some());
        let second = pendings.number(7);
        assert!(pendings.completes(7, second).is_some());
        assert!(pendings.get(7).is_none() && pendings.number(7) == 0);
    }
}

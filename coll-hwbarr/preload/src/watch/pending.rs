//! Requests of the program that are not complete, and messages that a probe has matched.

use super::comms::Communicator;
use super::said::{Place, Way};
use super::tape::Arrived;
use coll_hwbarr_foreign::library::Handle;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;

/// A message behind a request.
#[derive(Clone, Debug)]
pub struct Transfer {
    pub way: Way,
    pub comm: Arc<Communicator>,
    /// In the words of the library, wildcards among them.
    pub peer: c_int,
    pub tag: c_int,
    pub bytes: u64,
    /// Counted when it was posted.
    pub number: Option<u64>,
    /// Whether the request stays when it is complete, to be started again.
    pub stays: bool,
    /// Whether it is under way.
    pub is_open: bool,
}

#[derive(Clone, Debug)]
pub enum Pending {
    Transfer(Transfer),
    /// A collective operation.
    Round,
    /// A duplicate of a communicator, which will be at this place.
    Duplicate(Arc<Communicator>, Place),
}

/// What is under way.
///
/// A handle is free for another thread as soon as the library has completed its request, which may be before the thread that waits
/// for it is back. So what is known of a request has a number of its own, which is looked up before the call that completes it.
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

    /// What the request of this handle is known by; 0 if it is not known.
    pub fn number(&self, request: Handle) -> u64 {
        self.numbers.get(&request).copied().unwrap_or(0)
    }

    pub fn get(&self, request: Handle) -> Option<&Pending> {
        self.requests.get(self.numbers.get(&request)?)
    }

    /// A request that stays is under way again.
    pub fn starts(&mut self, number: u64) -> Option<&mut Transfer> {
        match self.requests.get_mut(&number) {
            Some(Pending::Transfer(transfer)) if transfer.stays => {
                transfer.is_open = true;
                Some(transfer)
            }
            _ => None,
        }
    }

    /// A request is complete: what it was, if it was under way.
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

    /// A probe has found a message and keeps it for a receive.
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

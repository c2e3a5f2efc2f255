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
#[derive(Debug, Default)]
pub struct Pendings {
    requests: HashMap<Handle, Pending>,
    matched: HashMap<Handle, (Arc<Communicator>, Arrived)>,
}

impl Pendings {
    pub fn add(&mut self, request: Handle, pending: Pending) {
        self.requests.insert(request, pending);
    }

    pub fn get(&self, request: Handle) -> Option<&Pending> {
        self.requests.get(&request)
    }

    /// A request that stays is under way again.
    pub fn starts(&mut self, request: Handle) -> Option<&mut Transfer> {
        match self.requests.get_mut(&request) {
            Some(Pending::Transfer(transfer)) if transfer.stays => {
                transfer.is_open = true;
                Some(transfer)
            }
            _ => None,
        }
    }

    /// A request is complete: what it was, if it was under way.
    pub fn completes(&mut self, request: Handle) -> Option<Pending> {
        match self.requests.get_mut(&request) {
            Some(Pending::Transfer(transfer)) if transfer.stays => {
                let was_open = std::mem::take(&mut transfer.is_open);
                was_open.then(|| Pending::Transfer(transfer.clone()))
            }
            _ => self.requests.remove(&request),
        }
    }

    pub fn forgets(&mut self, request: Handle) {
        self.requests.remove(&request);
    }

    /// A probe has found a message and keeps it for a receive.
    pub fn matches(&mut self, message: Handle, comm: Arc<Communicator>, arrived: Arrived) {
        self.matched.insert(message, (comm, arrived));
    }

    pub fn take_matched(&mut self, message: Handle) -> Option<(Arc<Communicator>, Arrived)> {
        self.matched.remove(&message)
    }
}

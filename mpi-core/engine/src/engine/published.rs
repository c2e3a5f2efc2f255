//! Functions that write this process's state page: what it waits for, and the counts of hardware barriers.

use super::Engine;
use crate::observer::RunObserver;
use crate::pml::Key;
use crate::request::{Body, Req};
use mpi_base::state::{About, Waits};
use mpi_transport::btl::Traffic;

impl Engine {
    /// Returns the functions that write the state page.
    #[inline]
    pub fn published(&self) -> Published<'_> {
        Published { engine: self }
    }
}

/// The functions that write the state page of this process.
#[derive(Clone, Copy)]
pub struct Published<'a> {
    engine: &'a Engine,
}

impl Published<'_> {
    /// Publishes on the state page that this process waits for `requests` requests; `req` is the first.
    /// `begun` is as in [`About`].
    #[cold]
    pub fn waits_for(self, req: &Req, requests: u32, begun: u16) {
        let about = match &*req.body.borrow() {
            Body::Send(send) => send.about(),
            Body::Recv(recv) => recv.about(),
            Body::Coll(_) => About {
                waits: Waits::Collective,
                ..About::default()
            },
            _ => return,
        };
        let about = About {
            requests,
            begun,
            ..about
        };
        self.engine.0.state.about(&about);
    }

    /// Publishes on the state page the message or event for which this process waits.
    #[cold]
    pub fn waits_about(self, about: &About, requests: u32, begun: u16) {
        let about = About {
            requests,
            begun,
            ..*about
        };
        self.engine.0.state.about(&about);
    }

    /// Publishes on the state page that this process waits for a message that has no request.
    #[cold]
    pub(crate) fn waits_for_message(self, context: crate::pml::Context, key: Key, bytes: u64) {
        let about = self.engine.0.pml.matching(context).about(key, bytes);
        self.engine.0.state.about(&about);
    }

    /// Publishes on the state page that this process waits for the first of `requests` requests to complete.
    #[cold]
    pub fn waits_for_any(self, requests: u32) {
        self.engine.0.state.about(&About {
            waits: Waits::Any,
            requests,
            ..About::default()
        });
    }

    /// Returns the numbers of messages that transports have accepted and delivered, as far as they are counted,
    /// and whether an event from outside of this job may end a wait.
    pub fn outside(self) -> ((u64, u64), bool) {
        let engine = self.engine;
        let traffic = engine.0.pml.bml().traffic();
        let counts = match traffic {
            Traffic::Counted { sent, received } => (sent, received),
            Traffic::InMemory | Traffic::Uncounted => (0, 0),
        };
        let is_open = traffic == Traffic::Uncounted
            || engine.0.operations.await_outside_job()
            || engine.universe().foreign() > 0
            || engine.is_fault_tolerant();
        (counts, is_open)
    }

    /// Reports progress within an operation: a step has completed, and the operation now waits for another event.
    ///
    /// Without this report the operation would be considered stalled.
    #[inline]
    pub fn has_stepped(self) {
        self.engine.0.state.progressed();
    }

    /// Publishes how many barriers have been entered and released on the hardware barrier's wire that this process drives.
    pub fn barrier_wire(self, wire: u32, entered: u64, released: u64) {
        self.engine
            .0
            .state
            .set_barrier_wire(wire, entered, released);
        if let Some(trace) = self.engine.observer().and_then(RunObserver::trace) {
            trace.wire(wire, entered, released);
        }
    }
}

//! Ending waits early: what fault tolerance does to operations whose peers live.
//!
//! Two things happen to an operation that nothing is wrong with itself.
//! * A receive from any source is *interrupted* when a process fails that might have sent its message:
//!   the waiting caller is told, and the receive stays posted ([`crate::request::Table::interrupt`]).
//! * An operation on a communicator that is revoked is *given up*: a receive that no message has met ends at once;
//!   a send that no receive has met is taken back as by `MPI_Cancel`, so its buffer is the program's again before the send ends.
//!   What has met its message goes on to its end, which the peer sees to.

use super::matching::Key;
use super::{Matching, Ob1};
use crate::Error;
use crate::pml::{Context, Plane};
use crate::request::{ANY_SOURCE, Body, Req};

impl Ob1 {
    /// From now on every receive takes the general path, which asks whether a peer is lost;
    /// and receives from any source are interrupted by their communicator, where they would end when the last peer is lost.
    pub fn survive_losses(&self) {
        self.slot.close();
        self.survives.set(true);
    }

    /// Ends the receives from any source of the user's messages of a communicator that no message has met: no process is left to send one.
    pub fn end_any_source(&self, context: Context, error: &Error) {
        for req in self.requests.under_way() {
            if self.waits_for_any_source(&req, context) && self.withdraw(&req) {
                self.requests.complete(&req, Err(error.clone()));
            }
        }
    }

    /// Interrupts the receives from any source of the user's messages of a communicator that no message has met.
    pub fn interrupt_any_source(&self, context: Context, error: &Error) {
        for req in self.requests.under_way() {
            if self.waits_for_any_source(&req, context) {
                self.requests.interrupt(&req, error.clone());
            }
        }
    }

    /// The failures that interrupted them have been acknowledged.
    pub fn resume_any_source(&self, context: Context) {
        for req in self.requests.under_way() {
            if self.waits_for_any_source(&req, context) {
                self.requests.resume(&req);
            }
        }
    }

    fn waits_for_any_source(&self, req: &Req, context: Context) -> bool {
        let waits = |matching: &Matching, key: Key| {
            key.source() == ANY_SOURCE && matching.context == context.plane(Plane::User)
        };
        match &*req.body.borrow() {
            Body::Recv(recv) => match recv.from() {
                (matching, key, None) => waits(matching, key),
                _ => false,
            },
            _ => false,
        }
    }

    /// Gives up what the program has under way on a communicator, by its number: the outcome of all of it will be this error.
    pub fn give_up_all(&self, number: u64, error: &Error) {
        for req in self.requests.under_way() {
            let context = match &*req.body.borrow() {
                Body::Recv(recv) => recv.from().0.context,
                Body::Send(send) => send.envelope.context,
                _ => continue,
            };
            let of_library = [Plane::Collective, Plane::Hidden].map(|plane| context.plane(plane));
            // What the library has under way there is given up by the operations that it belongs to.
            if context.number() == number && !of_library.contains(&context) {
                self.give_up(&req, error);
            }
        }
        self.requests.nudge();
    }

    /// Gives up one operation that has not ended; it has an outcome when its buffer is not touched any more.
    pub fn give_up(&self, req: &Req, error: &Error) {
        if self.withdraw(req) {
            self.requests.complete(req, Err(error.clone()));
        } else if matches!(&*req.body.borrow(), Body::Send(_)) {
            self.requests.doom(req, error.clone());
        } else {
            return;
        }
        if !req.has_ended() {
            self.cancel_send(req);
        }
    }
}

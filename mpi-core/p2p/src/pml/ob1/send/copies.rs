//! The sender's copies of short messages whose receivers throttle.
//!
//! Flow control ([`flow_control`](super::super::flow_control)) requires rendezvous for a throttled message,
//! so the program's send buffer would be in use until the receive is posted.
//! Programs written for other MPI libraries assume that a short message is sent without a posted
//! receive, even if hundreds of MiB of short messages are received in another order.
//! So the sender copies the message and completes the send. The copy is freed after the delivery of the message.
//!
//! Guarantee: all copies together take at most [`Config::copied_max`](super::super::config::Config) bytes; a message beyond this limit waits like a long message.

use super::super::core::Core;
use super::super::peer::{COST, Peer};
use super::super::send_body::SendBody;
use super::announce::announce;
use crate::btl::SendError;
use crate::datatype::Scratch;
use crate::pml::envelope::Mode;
use crate::request::{Body, Req};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// The memory in bytes of a copy's request and queue entries.
const REQUEST: u64 = 2 * COST as u64;

/// Copies of messages that are not delivered yet; for the program, their sends are complete.
#[derive(Default)]
pub struct SenderCopies {
    sends: RefCell<Vec<(Req, u64)>>,
    /// The memory of all copies with their requests, in bytes.
    bytes: Cell<u64>,
    /// The number of completed requests of this process at the latest search for delivered copies.
    looked: Cell<u64>,
}

impl SenderCopies {
    /// Returns a copy of a throttled message if the message is short and the copy is within the limit, otherwise `None`.
    pub fn copy_of_throttled(&self, core: &Core, peer: &Peer, send: &SendBody) -> Option<SendBody> {
        let bytes = send.bytes();
        let is_short = send.mode() == Mode::Standard && bytes <= peer.limits().eager as u64;
        if !is_short || !peer.credit().is_withdrawn() {
            return None;
        }
        let fits = || self.bytes.get() + bytes + REQUEST <= core.config().copied_max;
        if !fits() {
            self.end_all(core);
        }
        if !fits() {
            return None;
        }
        let copy = Scratch::bytes(bytes as i64).ok()?;
        if let Some(target) = copy.all().contiguous() {
            send.buf().pack_at(0, target);
        }
        Some(send.with_data_in(copy.all().as_send()))
    }

    /// Announces a copy of a message, and completes the program's send.
    #[cold]
    pub fn announce(
        &self,
        core: &Core,
        peer: &Rc<Peer>,
        req: &Req,
        copy: SendBody,
    ) -> Result<(), SendError> {
        let bytes = copy.bytes() + REQUEST;
        let kept = core.requests().begin(Body::Send(copy));
        if let Err(error) = announce(core, peer, &kept) {
            core.requests().release(&kept);
            return Err(error);
        }
        core.requests().complete_ok(req);
        self.bytes.set(self.bytes.get() + bytes);
        self.sends.borrow_mut().push((kept, bytes));
        // The search examines every copy.
        // So it runs only when the number of completed requests has grown by half the number of copies.
        let since = core
            .requests()
            .completions()
            .wrapping_sub(self.looked.get());
        if since > self.sends.borrow().len() as u64 / 2 {
            self.end_all(core);
        }
        Ok(())
    }

    /// Frees the delivered copies. Returns the number of remaining copies.
    pub fn end_all(&self, core: &Core) -> usize {
        self.looked.set(core.requests().completions());
        let mut sends = self.sends.borrow_mut();
        sends.retain(|(req, bytes)| {
            let over = req.is_complete();
            if over {
                self.bytes.set(self.bytes.get() - bytes);
                // The error is dropped: the program's send call has already returned.
                let _ = core.requests().finish(req);
            }
            !over
        });
        sends.len()
    }

    /// Removes and returns the remaining copies, for which no receive will be posted; the caller abandons them.
    pub fn take_all(&self) -> impl Iterator<Item = Req> + use<> {
        self.bytes.set(0);
        self.sends.take().into_iter().map(|(req, _)| req)
    }
}

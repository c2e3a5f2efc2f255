//! Sender-side copies of short messages whose receiver throttles.
//!
//! Flow control ([`flow_control`](super::super::flow_control)) makes a throttled message use
//! rendezvous, so the program's buffer would be in use until the receive is posted.
//! Programs written for other MPI libraries rely on short messages being sent without a posted
//! receive, even hundreds of MiB of short messages that are received in another order.
//! So the sender copies the message and completes the send. The copy is freed after its delivery.
//!
//! Promise: all copies together take no more than [`Config::copied_max`](super::super::config::Config) bytes; a message beyond this limit waits like a long message.

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

/// The memory of a request and its queue entries besides a copy.
const REQUEST: u64 = 2 * COST as u64;

/// Sends that are complete for the program but not yet delivered.
#[derive(Default)]
pub struct SenderCopies {
    sends: RefCell<Vec<(Req, u64)>>,
    /// The memory of all copies, in bytes.
    bytes: Cell<u64>,
    /// The process's completion count when delivered copies were last searched for.
    looked: Cell<u64>,
}

impl SenderCopies {
    /// Returns a copy of a throttled message, if it is short and within the limit.
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

    /// Announces a copy instead of a send, and completes the send.
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
        // The search costs a step per copy, so it waits until half of them may have been delivered.
        let since = core
            .requests()
            .completions()
            .wrapping_sub(self.looked.get());
        if since > self.sends.borrow().len() as u64 / 2 {
            self.end_all(core);
        }
        Ok(())
    }

    /// Frees the delivered copies. Returns the number of those left.
    pub fn end_all(&self, core: &Core) -> usize {
        self.looked.set(core.requests().completions());
        let mut sends = self.sends.borrow_mut();
        sends.retain(|(req, bytes)| {
            let over = req.is_complete();
            if over {
                self.bytes.set(self.bytes.get() - bytes);
                // The call that could have reported a failure has returned.
                let _ = core.requests().finish(req);
            }
            !over
        });
        sends.len()
    }

    /// Takes the remaining copies, for which no receive will be posted; the caller abandons them.
    pub fn take_all(&self) -> impl Iterator<Item = Req> + use<> {
        self.bytes.set(0);
        self.sends.take().into_iter().map(|(req, _)| req)
    }
}

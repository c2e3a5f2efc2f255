//! Short messages that wait at their sender because their receiver holds too many unexpected ones.
//!
//! Flow control ([`flow_control`](super::flow_control)) has such a message ask first, and the program's buffer would have to wait for its receive.
//! Programs of other MPI libraries count on short messages being sent without one, also hundreds of MiB of them that are received in another order.
//! So the sender copies the message and its send is complete; the copy goes when its receive is there.
//!
//! Promise: all copies together take no more than [`Config::copied_max`](super::Config) bytes; a message beyond it waits as a long one does.

use super::flow_control::COST;
use super::send::SendBody;
use super::{Ob1, Peer};
use crate::btl::SendError;
use crate::datatype::Scratch;
use crate::pml::Mode;
use crate::request::{Body, Req};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What a request and its place in the queues take besides a copy.
const REQUEST: u64 = 2 * COST as u64;

/// Sends that are complete for the program and not for their receivers.
#[derive(Default)]
pub(super) struct SenderCopies {
    sends: RefCell<Vec<(Req, u64)>>,
    /// What all of them take.
    bytes: Cell<u64>,
    /// The completions of the process when those that had ended were last looked for.
    looked: Cell<u64>,
}

impl Ob1 {
    /// A copy of a message that flow control has ask first, if it is short and there is room for it.
    pub(super) fn copy_of_throttled(&self, peer: &Peer, send: &SendBody) -> Option<SendBody> {
        let bytes = send.bytes();
        let is_short = send.mode == Mode::Standard && bytes <= peer.limits.eager as u64;
        if !is_short || peer.eager_below.get() > 0 {
            return None;
        }
        let fits = || self.copies.bytes.get() + bytes + REQUEST <= self.config.copied_max;
        if !fits() {
            self.end_copies();
        }
        if !fits() {
            return None;
        }
        let copy = Scratch::bytes(bytes as i64).ok()?;
        if let Some(target) = copy.all().contiguous() {
            send.buf.pack_at(0, target);
        }
        Some(SendBody {
            buf: copy.all().as_send(),
            envelope: send.envelope,
            mode: send.mode,
            stream: None,
        })
    }

    /// Announces a copy in place of a send, which is complete with that.
    #[cold]
    pub(super) fn announce_copy(
        &self,
        peer: &Rc<Peer>,
        req: &Req,
        copy: SendBody,
    ) -> Result<(), SendError> {
        let bytes = copy.bytes() + REQUEST;
        let kept = self.requests.begin(Body::Send(copy));
        if let Err(error) = self.announce(peer, &kept) {
            self.requests.release(&kept);
            return Err(error);
        }
        self.requests.complete_ok(req);
        let copies = &self.copies;
        copies.bytes.set(copies.bytes.get() + bytes);
        copies.sends.borrow_mut().push((kept, bytes));
        // Looking at each costs a step, so half of them may have ended when they are looked at.
        let since = self
            .requests
            .completions()
            .wrapping_sub(copies.looked.get());
        if since > copies.sends.borrow().len() as u64 / 2 {
            self.end_copies();
        }
        Ok(())
    }

    /// Lets go of copies that are with their receivers; how many are left.
    pub fn end_copies(&self) -> usize {
        let copies = &self.copies;
        copies.looked.set(self.requests.completions());
        let mut sends = copies.sends.borrow_mut();
        sends.retain(|(req, bytes)| {
            let over = req.is_complete();
            if over {
                copies.bytes.set(copies.bytes.get() - bytes);
                // The call that could have reported a failure has returned.
                let _ = self.requests.finish(req);
            }
            !over
        });
        sends.len()
    }

    /// No receive will be posted for those that are left.
    pub fn abandon_copies(&self) {
        for (req, _) in self.copies.sends.take() {
            self.abandon(&req);
        }
        self.copies.bytes.set(0);
    }
}

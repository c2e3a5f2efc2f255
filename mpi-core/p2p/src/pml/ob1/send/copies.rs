//! Short messages that wait at their sender because their receiver holds too many unexpected ones.
//!
//! Flow control ([`flow_control`](super::super::flow_control)) has such a message ask first, and the program's buffer would have to wait for its receive.
//! Programs of other MPI libraries count on short messages being sent without one, also hundreds of MiB of them that are received in another order.
//! So the sender copies the message and its send is complete; the copy goes when its receive is there.
//!
//! Promise: all copies together take no more than [`Config::copied_max`](super::super::config::Config) bytes; a message beyond it waits as a long one does.

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

/// What a request and its place in the queues take besides a copy.
const REQUEST: u64 = 2 * COST as u64;

/// Sends that are complete for the program and not for their receivers.
#[derive(Default)]
pub struct SenderCopies {
    sends: RefCell<Vec<(Req, u64)>>,
    /// What all of them take.
    bytes: Cell<u64>,
    /// The completions of the process when those that had ended were last looked for.
    looked: Cell<u64>,
}

impl SenderCopies {
    /// A copy of a message that flow control has ask first, if it is short and there is room for it.
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

    /// Announces a copy in place of a send, which is complete with that.
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
        if let Err(error) = announce(peer, &kept) {
            core.requests().release(&kept);
            return Err(error);
        }
        core.requests().complete_ok(req);
        self.bytes.set(self.bytes.get() + bytes);
        self.sends.borrow_mut().push((kept, bytes));
        // Looking at each costs a step, so half of them may have ended when they are looked at.
        let since = core
            .requests()
            .completions()
            .wrapping_sub(self.looked.get());
        if since > self.sends.borrow().len() as u64 / 2 {
            self.end_all(core);
        }
        Ok(())
    }

    /// Lets go of copies that are with their receivers; how many are left.
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

    /// No receive will be posted for those that are left: the caller gives them up.
    pub fn take_all(&self) -> impl Iterator<Item = Req> + use<> {
        self.bytes.set(0);
        self.sends.take().into_iter().map(|(req, _)| req)
    }
}

//! One copy of a large message, from the sender's memory to the receiver's.
//!
//! The receiver reads, alone or together with the sender:
//! 1. it asks for help ([`wire::ASSIST`]) and reads the first half, then goes on with whatever else has come;
//! 2. the sender, when it looks, writes what neither has taken, and says how much that was ([`wire::ASSIST_DONE`]);
//! 3. when there is nothing else to do the receiver takes what is left;
//! 4. when all is there it says [`wire::FIN`]; if either part has failed, [`wire::CTS`], and all of it comes in fragments.
//!
//! Two processes that have messages for each other read alone: each has enough to copy.
//! Which side takes which piece is the transport's affair ([`crate::btl::CooperativeCopy`]).

use super::protocol_choice::TimedTransfer;
use super::wire::{self, Assist, Place, Rendezvous};
use super::{Ob1, Peer};
use crate::btl::{
    CooperativeCopy, Fetched, GetError, Header, Payload, ProcId, Region, Share, SingleCopy, Target,
};
use crate::request::{Body, Req, ReqId};
use std::rc::Rc;

/// What has come of a copy at the receiver's end.
pub(super) enum Copied {
    All,
    /// Both work on it.
    Shared(Shared),
    /// Fragments have to do it.
    Nothing,
}

/// A copy that both sides work on, at the receiver's end.
pub(super) struct Shared {
    sender: ReqId,
    /// The transport's number of it.
    number: u32,
    /// Where the data lie in the sender's memory.
    remote: Place,
    /// Bytes that we have taken upon ourselves.
    ours: u64,
    /// Bytes that the sender says it has put.
    theirs: Option<u64>,
    /// Whether there may be something left to take.
    open: bool,
    failed: bool,
}

/// Where to find a [`Shared`] that is open, and how to close it if it is not there any more.
pub(super) struct Open {
    receive: ReqId,
    peer: Rc<Peer>,
    number: u32,
}

impl Shared {
    fn add(&mut self, fetched: Fetched) {
        self.ours += fetched.bytes as u64;
        self.open = fetched.open;
        self.failed |= fetched.result.is_err();
    }

    /// Whether all of `wanted` bytes are there, once neither side works on it any more.
    fn outcome(&self, wanted: u64) -> Option<bool> {
        let through = !self.open && (self.ours == wanted || self.theirs.is_some());
        let sum = self.ours.checked_add(self.theirs.unwrap_or(0));
        through.then(|| !self.failed && sum == Some(wanted))
    }
}

fn together(peer: &Peer) -> Option<&dyn CooperativeCopy> {
    peer.btl.single_copy()?.together()
}

impl Ob1 {
    fn may_copy(&self, peer: &Peer, rendezvous: &Rendezvous, wanted: u64) -> bool {
        let sizes = self.config.single_copy_min..self.config.single_copy_max;
        let readable = rendezvous.place != Place::Scattered;
        peer.single_copy.get() && readable && sizes.contains(&wanted)
    }

    /// The transfer of a message that can come in one copy or in fragments, with the way that is to be taken; `None` if there is nothing to choose.
    ///
    /// Data in few and long runs are measured together with data in one, since packing them costs no more than copying them;
    /// others come in fragments anyway.
    pub(super) fn measured(
        &self,
        peer: &Rc<Peer>,
        req: &Req,
        rendezvous: &Rendezvous,
        wanted: u64,
    ) -> Option<TimedTransfer> {
        let at_all = self.config.measure && wanted > 0 && self.may_copy(peer, rendezvous, wanted);
        if !at_all {
            return None;
        }
        let body = req.body.borrow();
        let Body::Recv(recv) = &*body else {
            return None;
        };
        (recv.is_in_runs()).then(|| TimedTransfer::begin(peer, wanted))
    }

    /// Copies as much of a message as can be copied now.
    pub(super) fn copy(
        &self,
        peer: &Peer,
        req: &Req,
        rendezvous: &Rendezvous,
        wanted: u64,
    ) -> Copied {
        if wanted == 0 {
            return Copied::All;
        }
        if !self.may_copy(peer, rendezvous, wanted) {
            return Copied::Nothing;
        }
        let Some(single_copy) = peer.btl.single_copy() else {
            return Copied::Nothing;
        };
        let mut body = req.body.borrow_mut();
        let Body::Recv(recv) = &mut *body else {
            return Copied::Nothing;
        };
        let copied = recv.in_runs(wanted, |local| {
            if let Some(shared) = self.share(peer, single_copy, req.id(), rendezvous, local) {
                return Copied::Shared(shared);
            }
            match single_copy.get(peer.endpoint, rendezvous.place.regions(), local) {
                Ok(()) => Copied::All,
                Err(GetError::Forbidden) => {
                    peer.single_copy.set(false);
                    Copied::Nothing
                }
                Err(GetError::PeerGone | GetError::BadAddress) => Copied::Nothing,
            }
        });
        copied.unwrap_or(Copied::Nothing)
    }

    /// Begins a copy together, if that is worth it.
    fn share(
        &self,
        peer: &Peer,
        single_copy: &dyn SingleCopy,
        receive: ReqId,
        rendezvous: &Rendezvous,
        local: Target<'_>,
    ) -> Option<Shared> {
        let len: usize = local.iter().map(|run| run.len()).sum();
        let wanted = len as u64;
        let busy = peer.announced.get() > 0;
        if wanted < self.config.assist_min || busy || !peer.together.get() {
            return None;
        }
        let together = single_copy.together()?;
        let number = together.offer(len)?;
        let help = Assist {
            number,
            wanted,
            place: Place::new(local.iter().map(|run| Region {
                address: run.as_ptr().expose_provenance() as u64,
                len: run.len() as u64,
            })),
        };
        let header = [rendezvous.sender.0, receive.0];
        let asked =
            help.encoded(|payload| peer.send(wire::ASSIST, header, Payload::Bytes(payload)));
        let share = match asked {
            Ok(()) => Share::Half,
            // Help that cannot be asked for at once would come too late.
            Err(_) => Share::Rest,
        };
        let mut shared = Shared {
            sender: rendezvous.sender,
            number,
            remote: rendezvous.place.clone(),
            ours: 0,
            theirs: None,
            open: true,
            failed: false,
        };
        let remote = rendezvous.place.regions();
        shared.add(together.fetch(peer.endpoint, number, remote, local, share));
        Some(shared)
    }

    /// Looks after a copy that both work on: remembers it if something is left, ends it if neither works on it any more.
    pub(super) fn continue_cooperative(&self, peer: &Rc<Peer>, req: &Req) {
        let (sender, wanted, complete) = {
            let mut body = req.body.borrow_mut();
            let Body::Recv(recv) = &mut *body else { return };
            let Some(incoming) = recv.incoming() else {
                return;
            };
            let Some(shared) = &incoming.shared else {
                return;
            };
            let Some(complete) = shared.outcome(incoming.wanted) else {
                if shared.open {
                    self.shared.borrow_mut().push_back(Open {
                        receive: req.id(),
                        peer: peer.clone(),
                        number: shared.number,
                    });
                }
                return;
            };
            let sender = shared.sender;
            incoming.shared = None;
            if !complete {
                // What comes now does not come the way that is measured.
                incoming.transfer = None;
            }
            (sender, incoming.wanted, complete)
        };
        if complete {
            self.finished(peer, sender);
            self.count_fragment(req, wanted as usize);
        } else {
            peer.together.set(false);
            self.ask_for_fragments(peer, sender, req, wanted);
        }
    }

    /// Takes what the senders have left of the copies that were begun; there is nothing else to do.
    #[cold]
    pub(super) fn read_rest(&self) -> bool {
        let Some(open) = self.shared.borrow_mut().pop_front() else {
            return false;
        };
        let Some(together) = together(&open.peer) else {
            return false;
        };
        let req = self.requests.get(open.receive);
        let Some(req) =
            req.filter(|req| !req.is_complete() && self.fetch_rest(together, &open, req))
        else {
            // Given up, failed, or nothing is left.
            together.close(open.number);
            return false;
        };
        self.continue_cooperative(&open.peer, &req);
        true
    }

    fn fetch_rest(&self, together: &dyn CooperativeCopy, open: &Open, req: &Req) -> bool {
        let mut body = req.body.borrow_mut();
        let Body::Recv(recv) = &mut *body else {
            return false;
        };
        // Taken out of the receive for as long as its memory is borrowed.
        let (mut shared, wanted) = match recv.incoming() {
            Some(incoming) => match incoming
                .shared
                .take_if(|s| s.open && s.number == open.number)
            {
                Some(shared) => (shared, incoming.wanted),
                None => return false,
            },
            None => return false,
        };
        let (endpoint, number) = (open.peer.endpoint, open.number);
        let fetched = recv.in_runs(wanted, |local| {
            together.fetch(
                endpoint,
                number,
                shared.remote.regions(),
                local,
                Share::Rest,
            )
        });
        if let Some(fetched) = fetched {
            shared.add(fetched);
        }
        if let Some(incoming) = recv.incoming() {
            incoming.shared = Some(shared);
        }
        fetched.is_some()
    }

    /// The receiver is copying the data and wants us to do a part of it.
    pub(super) fn on_assist(&self, from: ProcId, header: Header, payload: &[u8]) {
        let (Some(help), Ok(peer)) = (Assist::decode(payload), self.peer(from)) else {
            return self.nonsense(from, "a malformed call for help with a copy");
        };
        let Some(req) = self.requests.get(ReqId(header[0])) else {
            // The send may have been given up; the receiver cannot know, and does without us.
            return self.late(from, header[0]);
        };
        let put = match &*req.body.borrow() {
            Body::Send(send) if send.proc() == from && !req.is_complete() => {
                let put = together(&peer).and_then(|together| {
                    send.in_runs(help.wanted, |data| {
                        together.help(peer.endpoint, help.number, data, help.place.regions())
                    })
                });
                match put {
                    Some(put) => put,
                    None => return self.protocol_error(),
                }
            }
            _ => return self.protocol_error(),
        };
        let bytes = match put {
            // The receiver was faster and has taken everything.
            Ok(0) => return,
            Ok(bytes) => bytes as u64,
            Err(_) => 0,
        };
        let sender = header[0].to_le_bytes();
        self.control(&peer, wire::ASSIST_DONE, [header[1], bytes], sender);
    }

    /// The sender's part of a copy is done, or has failed.
    pub(super) fn on_assist_done(&self, from: ProcId, header: Header, payload: &[u8]) {
        let (Some(sender), Ok(peer)) = (wire::word(payload, 0), self.peer(from)) else {
            return self.nonsense(from, "a malformed answer to a call for help with a copy");
        };
        let Some(req) = self.requests.get(ReqId(header[0])) else {
            // The receive was given up meanwhile; the sender need not wait for it.
            return self.finished(&peer, ReqId(sender));
        };
        match &mut *req.body.borrow_mut() {
            Body::Recv(recv) => match recv.incoming() {
                Some(incoming) if incoming.from == from && incoming.shared.is_some() => {
                    if let (Some(shared), Some(together)) = (&mut incoming.shared, together(&peer))
                    {
                        // It leaves nothing unless it has failed, and then nothing more is to be copied.
                        together.close(shared.number);
                        shared.open = false;
                        shared.theirs = Some(header[1]);
                    }
                }
                _ => return self.protocol_error(),
            },
            _ => return self.protocol_error(),
        }
        self.continue_cooperative(&peer, &req);
    }

    /// Sees to it that the sender does not write any more for a receive that is given up;
    /// that takes no longer than copying a piece.
    ///
    /// A sender that has taken a part says so and is released then; one that has found nothing to take is released here.
    pub(super) fn abandon_cooperative(&self, req: &Req) {
        let (from, wanted, shared) = match &mut *req.body.borrow_mut() {
            Body::Recv(recv) => match recv.incoming() {
                Some(incoming) => match incoming.shared.take() {
                    Some(shared) => (incoming.from, incoming.wanted, shared),
                    None => return,
                },
                None => return,
            },
            _ => return,
        };
        let Ok(peer) = self.peer(from) else { return };
        if let Some(together) = together(&peer) {
            let left = together.close(shared.number) as u64;
            if shared.ours + left == wanted {
                return self.finished(&peer, shared.sender);
            }
            while together.is_helping(peer.endpoint, shared.number) {
                std::thread::yield_now();
            }
        }
    }
}

//! Single copy of a large message, from the sender's memory to the receiver's.
//!
//! The receiver copies alone or together with the sender (a cooperative copy):
//! 1. the receiver asks the sender for help ([`wire::ASSIST`]), reads the first half,
//!    then it handles other messages;
//! 2. when the sender polls, it writes the bytes that neither side has claimed, and reports their number ([`wire::ASSIST_DONE`]);
//! 3. when the receiver has no other work, it reads the bytes that neither side has claimed;
//! 4. when all data have arrived, the receiver sends [`wire::FIN`]; if the copy by either side has failed,
//!    it sends [`wire::CTS`] instead, and the whole message is sent in fragments.
//!
//! A receiver whose data are for device memory copies alone, in pieces, and copies each piece to the device while it reads the next ones.
//!
//! Between two processes that send to each other at the same time, each receiver copies alone, because both cores are already busy.
//! The transport assigns each part to the side that copies it ([`crate::btl::CooperativeCopy`]).
//! The sender's side is in [`assist`](super::super::send::assist).

use super::super::core::{Core, HandlerResult, ProtocolError};
use super::super::peer::Peer;
use super::super::protocol_choice::TimedTransfer;
use super::super::shared_copy::SharedCopy;
use super::super::wire::{self, Assist, Place, Rendezvous};
use super::answers::{ask_for_fragments, finished};
use super::fragments::count;
use crate::btl::{
    CooperativeCopy, GetError, Header, Payload, ProcId, Region, Share, SingleCopy, Target,
};
use crate::request::{Body, Req, ReqId};
use mpi_base::accelerator::PIECE;
use mpi_base::accelerator::twins::Part;
use mpi_base::yield_now::Backoff;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

/// The state of a copy after the receiver's first attempt.
pub enum Copied {
    All,
    /// Cooperative copy: sender and receiver each copy a part.
    Shared(SharedCopy),
    /// A single copy is not possible; the data must be sent in fragments.
    Nothing,
}

/// The cooperative copies that may have unclaimed bytes.
#[derive(Default)]
pub struct SingleCopies {
    open: RefCell<VecDeque<Open>>,
}

/// A cooperative copy with unclaimed bytes: its receive, and the values with which it is closed if the receive no longer exists.
struct Open {
    receive: ReqId,
    peer: Rc<Peer>,
    number: u32,
}

fn together(peer: &Peer) -> Option<&dyn CooperativeCopy> {
    peer.btl().capabilities().single_copy?.together()
}

fn may_copy(core: &Core, peer: &Peer, rendezvous: &Rendezvous, wanted: u64) -> bool {
    let sizes = core.config().single_copy_min..core.config().single_copy_max;
    let readable = rendezvous.place != Place::Scattered;
    peer.copying().is_single_possible() && readable && sizes.contains(&wanted)
}

/// Begins the time measurement of a message for which both protocols are possible, and chooses one.
/// Returns `None` if only one protocol is possible.
///
/// Data in few, long contiguous segments are measured together with contiguous data,
/// because packing such data costs no more than copying them.
/// Data in many or short segments always use fragments.
pub fn measured(
    core: &Core,
    peer: &Peer,
    req: &Req,
    rendezvous: &Rendezvous,
    wanted: u64,
) -> Option<TimedTransfer> {
    let at_all = core.config().measure && wanted > 0 && may_copy(core, peer, rendezvous, wanted);
    if !at_all {
        return None;
    }
    let mut body = req.body.borrow_mut();
    let Body::Recv(recv) = &mut *body else {
        return None;
    };
    // Copies to a device would distort the measurement.
    let is_measured = recv.is_in_runs() && recv.device().is_none();
    is_measured.then(|| TimedTransfer::begin(peer.chooser(), wanted))
}

/// Copies the message in a single copy, or the receiver's first part of it in a cooperative copy.
pub fn copy(core: &Core, peer: &Peer, req: &Req, rendezvous: &Rendezvous, wanted: u64) -> Copied {
    if wanted == 0 {
        return Copied::All;
    }
    if !may_copy(core, peer, rendezvous, wanted) {
        return Copied::Nothing;
    }
    let Some(single_copy) = peer.btl().capabilities().single_copy else {
        return Copied::Nothing;
    };
    let mut body = req.body.borrow_mut();
    let Body::Recv(recv) = &mut *body else {
        return Copied::Nothing;
    };
    let device = recv.device();
    let copied = recv.in_runs(wanted, |local| {
        let remote = rendezvous.place.regions();
        let got = if let (Some(device), [all]) = (&device, local) {
            in_pieces(single_copy, peer, remote, all, device)
        } else if let Some(shared) = share(core, peer, single_copy, req.id(), rendezvous, local) {
            return Copied::Shared(shared);
        } else {
            single_copy.get(peer.endpoint(), remote, local)
        };
        match got {
            Ok(()) => Copied::All,
            Err(GetError::Forbidden) => {
                peer.copying().forbid_single();
                Copied::Nothing
            }
            Err(GetError::PeerGone | GetError::BadAddress | GetError::Busy) => Copied::Nothing,
        }
    });
    copied.unwrap_or(Copied::Nothing)
}

/// Reads a message for device memory in pieces. The copy of each piece to the device starts before the next piece is read.
fn in_pieces(
    single_copy: &dyn SingleCopy,
    peer: &Peer,
    remote: &[Region],
    local: &[Cell<u8>],
    device: &Part,
) -> Result<(), GetError> {
    for start in (0..local.len()).step_by(PIECE) {
        let range = start..local.len().min(start + PIECE);
        let from = cut(remote, range.start as u64..range.end as u64);
        single_copy.get(peer.endpoint(), &from, &[&local[range.clone()]])?;
        device.arrive(range);
    }
    device.arrived();
    Ok(())
}

/// Returns the regions that contain the bytes `range` of the concatenation of `regions`.
fn cut(regions: &[Region], range: Range<u64>) -> Vec<Region> {
    let mut at = 0_u64;
    let mut parts = Vec::with_capacity(1);
    for region in regions {
        let end = at.saturating_add(region.len);
        let (start, stop) = (range.start.max(at), range.end.min(end));
        if start < stop {
            // The address comes from the peer and may be invalid. Then the copy fails.
            parts.push(Region {
                address: region.address.wrapping_add(start - at),
                len: stop - start,
            });
        }
        at = end;
    }
    parts
}

impl SingleCopies {
    /// Returns true if a cooperative copy may have unclaimed bytes.
    #[inline]
    pub fn are_open(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    /// Updates a cooperative copy after one side has copied a part: adds it to the open copies if bytes are unclaimed,
    /// and ends it if neither side copies any longer.
    pub fn go_on(&self, core: &Core, peer: &Rc<Peer>, req: &Req) {
        let (sender, wanted, complete) = {
            let mut body = req.body.borrow_mut();
            let Body::Recv(recv) = &mut *body else { return };
            let Some(incoming) = recv.incoming_mut() else {
                return;
            };
            let wanted = incoming.wanted();
            let Some(shared) = incoming.shared() else {
                return;
            };
            let Some(complete) = shared.outcome(wanted) else {
                if shared.is_open() {
                    self.open.borrow_mut().push_back(Open {
                        receive: req.id(),
                        peer: peer.clone(),
                        number: shared.number(),
                    });
                }
                return;
            };
            let sender = shared.sender();
            incoming.take_shared();
            if !complete {
                incoming.stop_measuring();
            }
            (sender, wanted, complete)
        };
        if complete {
            finished(core, peer, sender);
            count(core, req, 0, wanted as usize);
        } else {
            peer.copying().forbid_cooperative();
            ask_for_fragments(core, peer, sender, req, wanted);
        }
    }

    /// Reads bytes of one open copy that the sender has not claimed; called when there is no other work. Returns true if it read any.
    #[cold]
    pub fn read_rest(&self, core: &Core) -> bool {
        let Some(open) = self.open.borrow_mut().pop_front() else {
            return false;
        };
        let Some(together) = together(&open.peer) else {
            return false;
        };
        let req = core.requests().get(open.receive);
        let Some(req) = req.filter(|req| !req.is_complete() && fetch_rest(together, &open, req))
        else {
            // The receive was abandoned, the copy has failed, or no bytes are unclaimed.
            together.close(open.number);
            return false;
        };
        self.go_on(core, &open.peer, &req);
        true
    }

    /// Handles ASSIST_DONE: the sender's part of a cooperative copy is complete or has failed.
    pub fn on_assist_done(
        &self,
        core: &Core,
        from: ProcId,
        header: Header,
        payload: &[u8],
    ) -> HandlerResult {
        let (Some(sender), Ok(peer)) = (wire::word(payload, 0), core.links().peer(from)) else {
            return Err(ProtocolError(
                "a malformed answer to a call for help with a copy",
            ));
        };
        let Some(req) = core.requests().get(ReqId(header[0])) else {
            // The receive was abandoned after ASSIST was sent, so the sender need not wait any longer.
            finished(core, &peer, ReqId(sender));
            return Ok(());
        };
        let known = match &mut *req.body.borrow_mut() {
            Body::Recv(recv) => match recv.incoming_mut() {
                Some(incoming) if incoming.from() == from => {
                    incoming.shared().is_some_and(|shared| {
                        if let Some(together) = together(&peer) {
                            together.close(shared.number());
                            shared.sender_ends(header[1]);
                        }
                        true
                    })
                }
                _ => false,
            },
            _ => false,
        };
        match known {
            true => self.go_on(core, &peer, &req),
            false => core.protocol_error(),
        }
        Ok(())
    }
}

/// Begins a cooperative copy, if the message is long enough and the peer has no other message to copy.
fn share(
    core: &Core,
    peer: &Peer,
    single_copy: &dyn SingleCopy,
    receive: ReqId,
    rendezvous: &Rendezvous,
    local: Target<'_>,
) -> Option<SharedCopy> {
    let len: usize = local.iter().map(|run| run.len()).sum();
    let wanted = len as u64;
    if wanted < core.config().assist_min || !peer.copying().is_cooperative_worth_it() {
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
    let asked = help.encoded(|payload| peer.send(wire::ASSIST, header, Payload::Bytes(payload)));
    let share = match asked {
        Ok(()) => Share::Half,
        // If the request for help cannot be sent immediately, help would arrive too late; the receiver reads all bytes itself.
        Err(_) => Share::Rest,
    };
    let mut shared = SharedCopy::new(rendezvous.sender, number, rendezvous.place.clone());
    let remote = rendezvous.place.regions();
    shared.add(together.fetch(peer.endpoint(), number, remote, local, share));
    Some(shared)
}

fn fetch_rest(together: &dyn CooperativeCopy, open: &Open, req: &Req) -> bool {
    let mut body = req.body.borrow_mut();
    let Body::Recv(recv) = &mut *body else {
        return false;
    };
    // Takes `SharedCopy` out of the receive, because `in_runs` below borrows the receive mutably.
    let Some(incoming) = recv.incoming_mut() else {
        return false;
    };
    let wanted = incoming.wanted();
    let is_this = |shared: &mut SharedCopy| shared.is_open() && shared.number() == open.number;
    if !incoming.shared().is_some_and(is_this) {
        return false;
    }
    let Some(mut shared) = incoming.take_shared() else {
        return false;
    };
    let (endpoint, number) = (open.peer.endpoint(), open.number);
    let fetched = recv.in_runs(wanted, |local| {
        together.fetch(endpoint, number, shared.remote(), local, Share::Rest)
    });
    if let Some(fetched) = fetched {
        shared.add(fetched);
    }
    if let Some(incoming) = recv.incoming_mut() {
        incoming.put_shared(shared);
    }
    fetched.is_some()
}

/// Ends the sender's writes to the buffer of an abandoned receive: closes the cooperative copy and waits for a sender that is copying.
/// The wait takes at most as long as the copy of one part.
///
/// A sender that has claimed a part sends ASSIST_DONE when the part is complete, and is then released by FIN;
/// a sender that has claimed no part is released immediately.
pub fn abandon(core: &Core, req: &Req) {
    let (from, wanted, shared) = match &mut *req.body.borrow_mut() {
        Body::Recv(recv) => match recv.incoming_mut() {
            Some(incoming) => match incoming.take_shared() {
                Some(shared) => (incoming.from(), incoming.wanted(), shared),
                None => return,
            },
            None => return,
        },
        _ => return,
    };
    let Ok(peer) = core.links().peer(from) else {
        return;
    };
    if let Some(together) = together(&peer) {
        let left = together.close(shared.number()) as u64;
        if shared.is_ours_alone(left, wanted) {
            return finished(core, &peer, shared.sender());
        }
        let mut backoff = Backoff::new();
        // A sender that died while copying never reports completion.
        while !core.losses().has(from) && together.is_helping(peer.endpoint(), shared.number()) {
            backoff.pause();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_regions_are_cut_at_their_ends() {
        let region = |address, len| Region { address, len };
        let regions = [
            region(100, 10),
            region(500, 0),
            region(200, 5),
            region(900, u64::MAX),
        ];
        let parts = |range| {
            let parts = cut(&regions, range).into_iter();
            parts
                .map(|part| (part.address, part.len))
                .collect::<Vec<_>>()
        };
        assert_eq!(parts(0..3), [(100, 3)]);
        assert_eq!(parts(8..16), [(108, 2), (200, 5), (900, 1)]);
        assert_eq!(parts(10..15), [(200, 5)]);
        assert_eq!(parts(20..u64::MAX), [(905, u64::MAX - 20)]);
    }
}

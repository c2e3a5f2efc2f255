//! Rendezvous: when an announced message matches a receive, the receiver copies the data in a single copy (alone or with the sender's help),
//! starts a remote read by the network, or requests the data, which are delivered in place or arrive in fragments.
//!
//! In each case, a sender whose memory is read directly receives [`wire::FIN`](super::super::wire::FIN) when no process reads this memory any longer.

use super::super::core::Core;
use super::super::incoming::Incoming;
use super::super::matching::Key;
use super::super::peer_failure::fail_if_lost;
use super::super::protocol_choice::{TimedTransfer, Way};
use super::super::wire::Rendezvous;
use super::answers::{advise, ask_for_fragments, finished};
use super::events::show;
use super::in_place;
use super::meeting::meet;
use super::remote_read::{self, RemoteReads};
use super::single_copy::{Copied, SingleCopies, copy, measured};
use crate::btl::ProcId;
use crate::request::{Body, Req};

/// The active transfers of long messages, by protocol.
pub struct Ways<'a> {
    pub copies: &'a SingleCopies,
    pub reads: &'a RemoteReads,
}

/// Handles the match of an announced message: copies the data, starts a remote read, or requests the data in place or in fragments.
pub fn accept(
    core: &Core,
    ways: &Ways<'_>,
    req: &Req,
    key: Key,
    from: ProcId,
    rendezvous: Rendezvous,
) {
    let peer = match core.links().peer(from) {
        Ok(peer) => peer.clone(),
        Err(e) => return core.requests().complete(req, Err(e.into())),
    };
    let Some((wanted, too_long)) = meet(core, req, key, rendezvous.bytes) else {
        return core.protocol_error();
    };
    core.counts().receives_rendezvous();
    let bytes = rendezvous.bytes;
    show(core, req, key, bytes, true);
    let sender = rendezvous.sender;
    if let Some(read) = remote_read::start(&peer, req, &rendezvous, wanted) {
        if let Body::Recv(recv) = &mut *req.body.borrow_mut() {
            let incoming = Incoming::new(from, wanted, too_long).announced(key, bytes);
            recv.expect(incoming.reading(sender, read.0));
        }
        return ways.reads.list((from, &peer), req, read, sender);
    }
    let mut transfer = measured(core, &peer, req, &rendezvous, wanted);
    let in_fragments = |transfer: &TimedTransfer| transfer.way() == Way::Fragments;
    let copied = match &transfer {
        Some(transfer) if in_fragments(transfer) => Copied::Nothing,
        _ => copy(core, &peer, req, &rendezvous, wanted),
    };
    let shared = match copied {
        Copied::All => {
            if let Some(transfer) = transfer {
                advise(core, from, transfer.ends());
            }
            finished(core, &peer, rendezvous.sender);
            show(core, req, key, bytes, false);
            return core.end(req, too_long);
        }
        Copied::Nothing => {
            transfer = transfer.filter(in_fragments);
            None
        }
        Copied::Shared(shared) => Some(shared),
    };
    let alone = shared.is_none();
    let is_timed = transfer.is_some();
    {
        let mut body = req.body.borrow_mut();
        let Body::Recv(recv) = &mut *body else { return };
        let sender = peer.is_fin_required().then_some(rendezvous.sender);
        let incoming = Incoming::new(from, wanted, too_long).announced(key, bytes);
        recv.expect(incoming.with(sender, shared, transfer));
    }
    if fail_if_lost(core, req, from) {
        // The sender is lost and the receive has failed, so no fragments are requested.
    } else if alone && !is_timed && in_place::ask(core, (from, &peer), sender, req, wanted) {
        // The receiver has posted its buffer and requested the data.
    } else if alone {
        ask_for_fragments(core, &peer, rendezvous.sender, req, wanted);
    } else {
        ways.copies.go_on(core, &peer, req);
    }
}

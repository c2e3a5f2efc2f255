//! The active deliveries in place of this process's sends and receives.
//!
//! The transports name the transfers that have ended, so a poll takes no time for the others.

use super::incoming::Incoming;
use super::losses::Losses;
use super::peer::Peer;
use super::stream::Stream;
use crate::btl::{Btl, InPlace, ProcId};
use crate::request::{Body, Req, ReqId, Table};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The time between the detected loss of a peer and the abandonment of an active transfer.
const GIVEN_UP: Duration = Duration::from_secs(2);

/// The address of a transport, and the transport's ID of a transfer.
type Key = (usize, u64);

#[derive(Default)]
pub(super) struct Transfers {
    open: RefCell<HashMap<Key, Transfer>>,
    /// The transports of the transfers in `open`.
    transports: RefCell<Vec<Rc<dyn Btl>>>,
}

/// An active transfer, and the request whose data it transfers.
pub(super) struct Transfer {
    pub(super) req: ReqId,
    pub(super) proc: ProcId,
    pub(super) peer: Rc<Peer>,
    pub(super) id: u64,
    /// The time at which the loss of the peer was detected.
    lost_since: Cell<Option<Instant>>,
}

/// Returns the interface to delivery in place of a peer's transport.
pub(super) fn in_place(peer: &Peer) -> Option<&dyn InPlace> {
    peer.btl().capabilities().in_place
}

fn key(transport: &Rc<dyn Btl>, id: u64) -> Key {
    (Rc::as_ptr(transport).addr(), id)
}

/// Returns the ID of the transfer for which a request waits.
fn transfer_of(req: &Req) -> Option<u64> {
    match &*req.body.borrow() {
        Body::Send(send) => send.stream().and_then(Stream::transfer),
        Body::Recv(recv) => recv.incoming().and_then(Incoming::place),
        _ => None,
    }
}

impl Transfers {
    /// Returns true if any transfer is active.
    #[inline]
    pub(super) fn are_open(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    /// Returns true if a transport has moved data of an active transfer since the last call.
    pub(super) fn have_moved(&self) -> bool {
        let transports = self.transports.borrow();
        let mut all = (transports.iter()).filter_map(|btl| btl.capabilities().in_place);
        all.any(|all| all.have_moved())
    }

    pub(super) fn list(&self, req: &Req, (proc, peer): (ProcId, &Rc<Peer>), id: u64) {
        self.insert(Transfer {
            req: req.id(),
            proc,
            peer: peer.clone(),
            id,
            lost_since: Cell::new(None),
        });
    }

    fn insert(&self, transfer: Transfer) {
        let transport = transfer.peer.shared_btl();
        let mut transports = self.transports.borrow_mut();
        if !transports.iter().any(|other| Rc::ptr_eq(other, transport)) {
            transports.push(transport.clone());
        }
        let key = key(transport, transfer.id);
        self.open.borrow_mut().insert(key, transfer);
    }

    fn remove(&self, key: Key) -> Option<Transfer> {
        let mut open = self.open.borrow_mut();
        let transfer = open.remove(&key);
        if open.is_empty() {
            self.transports.borrow_mut().clear();
        }
        transfer
    }

    /// Withdraws a posted buffer whose data arrive in another way. Returns false if the transport may write to the buffer.
    pub(super) fn withdraw(&self, peer: &Peer, id: u64) -> bool {
        let withdrawn = in_place(peer).is_some_and(|all| all.withdraw(id));
        if withdrawn {
            self.remove(key(peer.shared_btl(), id));
        }
        withdrawn
    }

    /// Gives up a transfer whose outcome is not needed. Afterwards the transport does not access the request's memory.
    pub(super) fn give_up(&self, peer: &Peer, id: u64) {
        self.remove(key(peer.shared_btl(), id));
        if let Some(all) = in_place(peer) {
            all.give_up(id);
        }
    }

    /// Removes and returns the transfers that have ended, each with its request; the flag is true for success.
    /// A transfer for which no request waits is given up.
    pub(super) fn take_ended(
        &self,
        requests: &Table,
        losses: &Losses,
    ) -> Vec<(Transfer, Req, bool)> {
        let mut ended = Vec::new();
        for key in self.affected(losses) {
            let Some(open) = self.remove(key) else {
                continue;
            };
            let req = requests.get(open.req);
            let waiting = req.filter(|req| !req.is_complete() && transfer_of(req) == Some(open.id));
            match (waiting, in_place(&open.peer)) {
                (Some(req), Some(all)) => match outcome(losses, all, &open) {
                    Some(succeeded) => ended.push((open, req, succeeded)),
                    None => self.insert(open),
                },
                (Some(req), None) => ended.push((open, req, false)),
                (None, Some(all)) => all.give_up(open.id),
                (None, None) => {}
            }
        }
        ended
    }

    /// Returns the transfers that have ended, or all transfers if any peer is lost.
    fn affected(&self, losses: &Losses) -> Vec<Key> {
        if !losses.is_empty() {
            let mut all: Vec<Key> = self.open.borrow().keys().copied().collect();
            all.sort_unstable();
            return all;
        }
        let (mut keys, mut ids) = (Vec::new(), Vec::new());
        for transport in &*self.transports.borrow() {
            if let Some(all) = transport.capabilities().in_place {
                all.ended(&mut ids);
                keys.extend(ids.drain(..).map(|id| key(transport, id)));
            }
        }
        keys
    }
}

/// Returns true if a transfer has succeeded, false if it has failed, and `None` while it is active.
///
/// Until the transfer ends, the transport may access the memory, even after the loss of the peer.
/// The transport ends the transfers with a lost peer soon. If this takes longer than [`GIVEN_UP`], the transfer is given up and counts as failed.
fn outcome(losses: &Losses, all: &dyn InPlace, open: &Transfer) -> Option<bool> {
    let outcome = all.outcome(open.id);
    if outcome.is_some() || !losses.has(open.proc) {
        return outcome;
    }
    if all.withdraw(open.id) {
        return Some(false);
    }
    let now = Instant::now();
    let since = open.lost_since.get().unwrap_or(now);
    open.lost_since.set(Some(since));
    if now.duration_since(since) < GIVEN_UP {
        return None;
    }
    all.give_up(open.id);
    Some(false)
}

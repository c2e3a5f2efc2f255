//! The active deliveries in place of one side: those of this process's sends, or those of its receives.
//!
//! A transport reports that some transfer has ended; then the outcomes of all transfers are queried.

use super::core::Core;
use super::peer::Peer;
use crate::btl::{InPlace, ProcId};
use crate::request::{Req, ReqId};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The time between the detected loss of a peer and the abandonment of an active transfer.
const GIVEN_UP: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(super) struct Transfers {
    open: RefCell<Vec<Transfer>>,
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

impl Transfers {
    /// Returns true if any transfer is active.
    #[inline]
    pub(super) fn are_open(&self) -> bool {
        !self.open.borrow().is_empty()
    }

    /// Returns true if a transport has moved data of an active transfer since the last call.
    pub(super) fn have_moved(&self) -> bool {
        let open = self.open.borrow();
        let mut all = open.iter().filter_map(|open| in_place(&open.peer));
        all.any(|all| all.have_moved())
    }

    pub(super) fn list(&self, req: &Req, (proc, peer): (ProcId, &Rc<Peer>), id: u64) {
        self.open.borrow_mut().push(Transfer {
            req: req.id(),
            proc,
            peer: peer.clone(),
            id,
            lost_since: Cell::new(None),
        });
    }

    /// Removes and returns the transfers that have ended, each with its request; the flag is true for success.
    /// `id_of` returns the ID of the transfer for which a request waits; a transfer without a waiting request is given up.
    pub(super) fn take_ended(
        &self,
        core: &Core,
        id_of: impl Fn(&Req) -> Option<u64>,
    ) -> Vec<(Transfer, Req, bool)> {
        let has_losses = !core.losses().is_empty();
        let is_affected =
            |open: &Transfer| has_losses || in_place(&open.peer).is_none_or(|all| all.have_ended());
        if !self.open.borrow().iter().any(is_affected) {
            return Vec::new();
        }
        let (mut left, mut ended) = (Vec::new(), Vec::new());
        for open in self.open.take() {
            let req = core.requests().get(open.req);
            let waiting = req.filter(|req| !req.is_complete() && id_of(req) == Some(open.id));
            match (waiting, in_place(&open.peer)) {
                (Some(req), Some(all)) => match outcome(core, all, &open) {
                    Some(succeeded) => ended.push((open, req, succeeded)),
                    None => left.push(open),
                },
                (Some(req), None) => ended.push((open, req, false)),
                (None, Some(all)) => all.give_up(open.id),
                (None, None) => {}
            }
        }
        self.open.borrow_mut().extend(left);
        ended
    }
}

/// Returns true if a transfer has succeeded, false if it has failed, and `None` while it is active.
///
/// Until the transfer ends, the transport may access the memory, even after the loss of the peer.
/// The transport ends the transfers with a lost peer soon. If this takes longer than [`GIVEN_UP`], the transfer is given up and counts as failed.
fn outcome(core: &Core, all: &dyn InPlace, open: &Transfer) -> Option<bool> {
    let outcome = all.outcome(open.id);
    if outcome.is_some() || !core.losses().has(open.proc) {
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

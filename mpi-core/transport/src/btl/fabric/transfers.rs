//! Delivery in place over a fabric: the places that this process has posted, and the active transfers.
//!
//! A sender offers the data of a transfer together with the number of the place.
//! The library transmits the data only after the receiver has accepted the offer, so data never arrive without a place.
//! A receiver without such a place refuses the offer, and an offer of the wrong length ends the connection.

#![allow(unsafe_code)]

use super::arrivals::Turn;
use super::frame::{Frame, Kind};
use super::peer::{Peer, State};
use super::port::{Close, Offer, Offered, Port};
use super::{Chore, Fabric};
use crate::btl::{Endpoint, InPlace, OVERTAKES, ProcId, Region, SendError};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

/// Maximum number of posted places.
const PLACES: usize = 1024;
/// Maximum number of active transfers to one peer.
const FILLS: u32 = 64;
/// Maximum time in which `give_up` waits for the end of a transfer with a lost peer, before and after it closes the connection.
const GIVEN_UP: Duration = Duration::from_secs(2);
/// Maximum pause between two polls of `give_up`.
const NAP: Duration = Duration::from_millis(1);

/// The transfers of one process whose outcome has not been fetched.
#[derive(Default)]
pub(super) struct Transfers {
    last: Cell<u64>,
    all: RefCell<HashMap<u64, Transfer>>,
    /// The IDs of the transfers of posted places, by peer and number.
    posted: RefCell<HashMap<(ProcId, u64), u64>>,
    /// The IDs of the ended transfers in `all`.
    ended: RefCell<BTreeSet<u64>>,
}

struct Transfer {
    peer: ProcId,
    stage: Stage,
    /// True at the sender.
    fills: bool,
}

#[derive(Clone, Copy)]
enum Stage {
    /// The place has been posted and no data have been offered.
    Posted { number: u64, place: Region },
    /// The library accesses the memory.
    Active,
    /// True for success.
    Ended(bool),
    /// The library accesses the memory, and the outcome is not needed.
    Abandoned,
}

/// The place for offered data.
enum Found {
    Place(u64, Region),
    /// The place has another length than the data.
    OtherLength,
    No,
}

impl Transfers {
    fn add(&self, transfer: Transfer) -> u64 {
        let id = self.last.get() + 1;
        self.last.set(id);
        self.all.borrow_mut().insert(id, transfer);
        id
    }

    /// Adds a posted place. Returns `None` if too many places are posted, or one with this number.
    fn post(&self, peer: ProcId, number: u64, place: Region) -> Option<u64> {
        let mut posted = self.posted.borrow_mut();
        if posted.len() >= PLACES || posted.contains_key(&(peer, number)) {
            return None;
        }
        let id = self.add(Transfer {
            peer,
            stage: Stage::Posted { number, place },
            fills: false,
        });
        posted.insert((peer, number), id);
        Some(id)
    }

    /// Finds the place of offered data, and counts its transfer as active.
    fn begin(&self, peer: ProcId, number: u64, len: usize) -> Found {
        let Some(id) = self.posted.borrow_mut().remove(&(peer, number)) else {
            return Found::No;
        };
        let mut all = self.all.borrow_mut();
        let Some(transfer) = all.get_mut(&id) else {
            return Found::No;
        };
        let Stage::Posted { place, .. } = transfer.stage else {
            return Found::No;
        };
        transfer.stage = Stage::Active;
        match place.len == len as u64 {
            true => Found::Place(id, place),
            false => {
                transfer.stage = Stage::Ended(false);
                self.ended.borrow_mut().insert(id);
                Found::OtherLength
            }
        }
    }

    /// Records the end of an active transfer. Returns its peer, and true at the sender.
    fn end(&self, id: u64, succeeded: bool) -> Option<(ProcId, bool)> {
        let mut all = self.all.borrow_mut();
        let transfer = all.get_mut(&id)?;
        let result = (transfer.peer, transfer.fills);
        match transfer.stage {
            Stage::Active => {
                transfer.stage = Stage::Ended(succeeded);
                self.ended.borrow_mut().insert(id);
            }
            Stage::Abandoned => drop(all.remove(&id)),
            Stage::Posted { .. } | Stage::Ended(_) => return None,
        }
        Some(result)
    }

    /// Returns true if a transfer has ended and its outcome has not been fetched.
    pub fn have_ended(&self) -> bool {
        !self.ended.borrow().is_empty()
    }

    fn take(&self, id: u64) -> Option<bool> {
        let mut all = self.all.borrow_mut();
        let Stage::Ended(succeeded) = all.get(&id)?.stage else {
            return None;
        };
        all.remove(&id);
        self.ended.borrow_mut().remove(&id);
        Some(succeeded)
    }

    /// Removes a posted place to which no data have been offered, or whose transfer has failed. Returns false for another transfer.
    fn withdraw(&self, id: u64) -> bool {
        let mut all = self.all.borrow_mut();
        let Some(transfer) = all.get(&id) else {
            return false;
        };
        match transfer.stage {
            Stage::Posted { number, .. } => {
                self.posted.borrow_mut().remove(&(transfer.peer, number));
            }
            Stage::Ended(false) => {
                self.ended.borrow_mut().remove(&id);
            }
            _ => return false,
        }
        all.remove(&id);
        true
    }

    /// Returns the peer of an active transfer.
    fn active(&self, id: u64) -> Option<ProcId> {
        let all = self.all.borrow();
        let transfer = all.get(&id)?;
        matches!(transfer.stage, Stage::Active).then_some(transfer.peer)
    }

    /// Returns true if the library accesses memory for a transfer with this peer.
    pub(super) fn are_active_with(&self, peer: ProcId) -> bool {
        let all = self.all.borrow();
        let is_active = |stage: Stage| matches!(stage, Stage::Active | Stage::Abandoned);
        all.values()
            .any(|transfer| transfer.peer == peer && is_active(transfer.stage))
    }

    /// Removes a transfer whose outcome is not needed; an active transfer is removed at its end.
    /// Returns false if the transfer was removed before.
    fn abandon(&self, id: u64) -> bool {
        let mut all = self.all.borrow_mut();
        match all.get_mut(&id) {
            None => return false,
            Some(transfer) if matches!(transfer.stage, Stage::Active) => {
                transfer.stage = Stage::Abandoned;
                return true;
            }
            Some(_) => {}
        }
        drop(all);
        self.take(id).is_some()
    }
}

impl<P: Port> Fabric<P> {
    /// Returns a peer with an open connection; opens one if there is none.
    fn connected(&self, to: Endpoint) -> Option<&Peer> {
        let peer = self.peer(to.0)?;
        match peer.state.get() {
            State::Up => Some(peer),
            State::Fresh => self.connect(peer).ok().map(|()| peer),
            State::Lost => None,
        }
    }

    /// Counts a transfer as in flight, because a process may wait for its end.
    fn counts_transfer(&self) {
        self.sent.set(self.sent.get() + 1);
    }

    /// Counts a transfer as delivered, because its caller no longer waits for its end.
    fn ends_transfer(&self) {
        self.received.set(self.received.get() + 1);
    }

    /// Polls until a transfer has ended. Returns true if it has ended.
    ///
    /// A peer that computes does not take part in the transfer until it calls MPI, so there is no time limit while the connection is open.
    /// Without an open connection the limit is [`GIVEN_UP`].
    fn await_transfer(&self, transfer: u64) -> bool {
        let mut lost_since = None;
        let mut nap = Duration::from_micros(1);
        // If a poll is running (`busy`), this call must not poll.
        while let Some(proc) = self.transfers.active(transfer)
            && !self.busy.replace(true)
        {
            self.turn(None);
            self.busy.set(false);
            let is_open = self
                .peer(proc)
                .is_some_and(|peer| peer.state.get() == State::Up);
            if !is_open && lost_since.get_or_insert_with(Instant::now).elapsed() >= GIVEN_UP {
                break;
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(NAP);
        }
        self.transfers.active(transfer).is_none()
    }
}

impl<P: Port> InPlace for Fabric<P> {
    fn shortest(&self) -> usize {
        (self.port.in_place()).map_or(usize::MAX, |all| all.shortest())
    }

    unsafe fn post(&self, from: Endpoint, number: u64, place: Region) -> Option<u64> {
        let rendezvous = self.port.in_place()?;
        let peer = self.connected(from)?;
        if !rendezvous.serves(peer.proc) {
            return None;
        }
        let id = self.transfers.post(peer.proc, number, place)?;
        self.counts_transfer();
        Some(id)
    }

    unsafe fn fill(&self, to: Endpoint, number: u64, data: Region) -> Result<u64, SendError> {
        let peer = self.connected(to).ok_or(SendError::PeerGone)?;
        let rendezvous = self.port.in_place().ok_or(SendError::PeerGone)?;
        if peer.filling.get() >= FILLS {
            self.wants_space.set(true);
            return Err(SendError::WouldBlock);
        }
        let head = Frame {
            header: [number, 0],
            from: self.me,
            number: 0,
            am: OVERTAKES,
            kind: Kind::Fill,
            key: peer.key.get(),
        };
        let id = self.transfers.add(Transfer {
            peer: peer.proc,
            stage: Stage::Active,
            fills: true,
        });
        // SAFETY: the caller guarantees that the data remain in place until the outcome is known,
        // which is recorded only after the port has reported the end of the transfer.
        match unsafe { rendezvous.offer(peer.proc, head.encode(), data, id) } {
            Offered::Sent => {
                self.transfers.end(id, true);
            }
            Offered::Active => peer.filling.set(peer.filling.get() + 1),
            // If the connection is lost, the library reports the loss, or the fragments that follow fail.
            Offered::Failed => {
                self.transfers.end(id, false);
            }
        }
        self.counts_transfer();
        Ok(id)
    }

    fn outcome(&self, transfer: u64) -> Option<bool> {
        let outcome = self.transfers.take(transfer)?;
        self.ends_transfer();
        Some(outcome)
    }

    fn ended(&self, ids: &mut Vec<u64>) {
        ids.extend(&*self.transfers.ended.borrow());
    }

    fn have_moved(&self) -> bool {
        (self.port.in_place()).is_some_and(|all| all.have_moved())
    }

    fn withdraw(&self, transfer: u64) -> bool {
        let withdrawn = self.transfers.withdraw(transfer);
        if withdrawn {
            self.ends_transfer();
        }
        withdrawn
    }

    fn give_up(&self, transfer: u64) {
        if self.withdraw(transfer) {
            return;
        }
        if !self.await_transfer(transfer)
            && let Some(peer) = self.transfers.active(transfer)
        {
            // The library stops the transfers of a connection that is closed.
            let why = "this process has given up a transfer that did not end".to_owned();
            let lose = Chore::Lose(peer, why, Close::AtOnce);
            self.chores.borrow_mut().push(lose);
            self.await_transfer(transfer);
        }
        if self.transfers.abandon(transfer) {
            self.ends_transfer();
        }
    }
}

impl<P: Port> Turn<'_, P> {
    /// Accepts offered data if the peer has an open connection and this process has posted their place. Otherwise refuses them.
    pub(super) fn match_offer(&self, head: &[u8], offer: Offer) {
        let fabric = self.fabric();
        let Some(rendezvous) = fabric.port.in_place() else {
            return;
        };
        let frame =
            Frame::decode(head).filter(|frame| frame.kind == Kind::Fill && frame.key == fabric.key);
        let known = frame.and_then(|frame| Some((frame, fabric.peer(frame.from)?)));
        let Some((frame, peer)) = known.filter(|(_, peer)| peer.state.get() == State::Up) else {
            return rendezvous.refuse(offer);
        };
        match (fabric.transfers).begin(peer.proc, frame.header[0], offer.len) {
            Found::Place(id, place) => {
                // SAFETY: by the contract of `InPlace::post` no other code accesses the place until the outcome is known,
                // which is recorded only after the port has reported the end of the transfer.
                match unsafe { rendezvous.accept(offer, place, id) } {
                    Ok(true) => {
                        fabric.transfers.end(id, true);
                    }
                    Ok(false) => {}
                    Err(why) => {
                        fabric.transfers.end(id, false);
                        self.lose(peer, &why);
                    }
                }
            }
            Found::OtherLength => {
                rendezvous.refuse(offer);
                self.lose(peer, "data for a place have another length than the place");
            }
            // The receive has been abandoned.
            Found::No => rendezvous.refuse(offer),
        }
    }

    /// Records the end of a transfer. A transfer that has failed ends the connection.
    pub(super) fn end_transfer(&self, transfer: u64, why: Option<String>) {
        let fabric = self.fabric();
        let Some((peer, fills)) = fabric.transfers.end(transfer, why.is_none()) else {
            return;
        };
        let Some(peer) = fabric.peer(peer) else {
            return;
        };
        if fills {
            peer.filling.set(peer.filling.get().saturating_sub(1));
            fabric.has_space.set(true);
        }
        if let Some(why) = why
            && peer.state.get() == State::Up
        {
            self.lose(peer, &why);
        }
    }
}

/// Performs the operations that the bytes encode, four bytes each, and compares the table with a list of the posted places.
/// A peer controls the number and the length of an offer and the order of offers.
#[cfg(any(test, fuzzing))]
pub fn fuzz(bytes: &[u8]) {
    let all = Transfers::default();
    let mut posted: Vec<(ProcId, u64, u64, u64)> = Vec::new();
    for step in bytes.chunks_exact(4) {
        let (peer, number) = (ProcId::from(step[1] & 1), u64::from(step[2]));
        let len = usize::from(step[3]);
        let known = posted
            .iter()
            .position(|place| (place.0, place.1) == (peer, number));
        match step[0] % 3 {
            0 => {
                let place = Region {
                    address: 4096,
                    len: len as u64,
                };
                let id = all.post(peer, number, place);
                assert_eq!(id.is_some(), known.is_none());
                posted.extend(id.map(|id| (peer, number, len as u64, id)));
            }
            1 => {
                let found = all.begin(peer, number, len);
                match (known.map(|at| posted.swap_remove(at)), found) {
                    (Some((_, _, of_place, id)), Found::Place(found, place)) => {
                        assert_eq!((id, of_place), (found, place.len));
                        assert_eq!((of_place, all.active(id)), (len as u64, Some(peer)));
                        all.end(id, true);
                        assert_eq!(all.take(id), Some(true));
                    }
                    (Some((_, _, of_place, id)), Found::OtherLength) => {
                        assert_ne!(of_place, len as u64);
                        assert_eq!(all.take(id), Some(false));
                    }
                    (None, Found::No) => {}
                    _ => panic!("an offer has found another place"),
                }
            }
            _ => {
                if let Some((_, _, _, id)) = known.map(|at| posted.swap_remove(at)) {
                    assert!(all.withdraw(id));
                }
            }
        }
    }
    assert_eq!(all.all.borrow().len(), posted.len());
    assert!(!all.have_ended());
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Region = Region {
        address: 4096,
        len: 100,
    };

    #[test]
    fn a_place_is_found_once_by_its_peer_and_number() {
        let all = Transfers::default();
        let posted = all.post(1, 7, PLACE).expect("there is space");
        assert_eq!(all.post(1, 7, PLACE), None);
        assert!(all.post(2, 7, PLACE).is_some());
        assert!(matches!(all.begin(1, 8, 100), Found::No));
        let Found::Place(id, place) = all.begin(1, 7, 100) else {
            panic!("the place is not found");
        };
        assert_eq!((id, place), (posted, PLACE));
        assert!(matches!(all.begin(1, 7, 100), Found::No));
        assert!(!all.withdraw(posted), "the library may write to the place");
        assert_eq!((all.take(posted), all.have_ended()), (None, false));
        assert_eq!(all.end(posted, true), Some((1, false)));
        assert!(all.have_ended() && !all.withdraw(posted));
        assert_eq!((all.take(posted), all.take(posted)), (Some(true), None));
        assert!(!all.have_ended());
    }

    #[test]
    fn a_place_of_another_length_fails_and_a_withdrawn_one_is_not_found() {
        let all = Transfers::default();
        let short = all.post(1, 7, PLACE).expect("there is space");
        assert!(matches!(all.begin(1, 7, 101), Found::OtherLength));
        assert_eq!(all.take(short), Some(false));
        for failed in [false, true] {
            let posted = all.post(1, 7, PLACE).expect("there is space");
            if failed {
                assert!(matches!(all.begin(1, 7, 100), Found::Place(..)));
                all.end(posted, false);
            }
            assert!(all.withdraw(posted) && !all.withdraw(posted));
            assert!(matches!(all.begin(1, 7, 100), Found::No));
            assert!(!all.have_ended());
        }
    }

    #[test]
    fn an_abandoned_transfer_is_removed_at_its_end() {
        let all = Transfers::default();
        let id = all.add(Transfer {
            peer: 3,
            stage: Stage::Active,
            fills: true,
        });
        assert_eq!(all.active(id), Some(3));
        assert!(all.abandon(id));
        assert_eq!(all.active(id), None);
        assert_eq!(all.end(id, false), Some((3, true)));
        assert!(!all.have_ended() && all.all.borrow().is_empty());
        assert_eq!(all.end(id, true), None);
    }
}

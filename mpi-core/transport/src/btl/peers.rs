//! The table of a transport's peers, by process number.
//!
//! Each process of this job has a fixed entry.
//! The entries of processes of other jobs are found through a map, and are reused.
//! So the number of entries is limited by the maximum number of simultaneous peers.

use super::ProcId;
use elsa::FrozenVec;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

/// The state of a peer in a transport; the entry can be reused for another process.
pub(super) trait Place {
    /// Creates the state of a process without a connection.
    fn of(proc: ProcId) -> Self;

    /// Assigns the entry to another process; [`ProcId::MAX`] means no process.
    /// Called only if the entry has no connection.
    fn become_another(&self, proc: ProcId);

    /// Returns the process to which the entry belongs.
    fn proc(&self) -> ProcId;
}

pub(super) struct Peers<P> {
    own: Vec<OnceCell<Box<P>>>,
    others: FrozenVec<Box<P>>,
    places: RefCell<HashMap<ProcId, usize>>,
    free: RefCell<Vec<usize>>,
}

impl<P: Place> Peers<P> {
    /// Creates an empty table for a job of `size` processes.
    pub fn new(size: u32) -> Peers<P> {
        Peers {
            own: (0..size).map(|_| OnceCell::new()).collect(),
            others: FrozenVec::new(),
            places: RefCell::default(),
            free: RefCell::default(),
        }
    }

    /// Returns the entry of a process; `None` if the process has none.
    #[inline]
    pub fn known(&self, proc: ProcId) -> Option<&P> {
        match self.own.get(proc as usize) {
            Some(cell) => cell.get().map(|peer| &**peer),
            None => self.other(proc),
        }
    }

    fn other(&self, proc: ProcId) -> Option<&P> {
        let place = *self.places.borrow().get(&proc)?;
        self.others.get(place)
    }

    /// Returns the entry of a process; creates the entry if necessary.
    #[inline]
    pub fn meet(&self, proc: ProcId) -> Option<&P> {
        match self.own.get(proc as usize) {
            Some(cell) => Some(cell.get_or_init(|| Box::new(P::of(proc)))),
            None => self.other(proc).or_else(|| self.meet_other(proc)),
        }
    }

    #[cold]
    fn meet_other(&self, proc: ProcId) -> Option<&P> {
        let free = self.free.borrow_mut().pop();
        let place = match free {
            Some(place) => place,
            None => {
                self.others.push(Box::new(P::of(proc)));
                self.others.len() - 1
            }
        };
        let peer = self.others.get(place)?;
        peer.become_another(proc);
        self.places.borrow_mut().insert(proc, place);
        Some(peer)
    }

    /// Frees the entry of a process of another job, which must have no connection.
    pub fn forget(&self, proc: ProcId) {
        if let Some(place) = self.places.borrow_mut().remove(&proc) {
            if let Some(peer) = self.others.get(place) {
                peer.become_another(ProcId::MAX);
            }
            self.free.borrow_mut().push(place);
        }
    }

    /// Iterates over all entries in use.
    pub fn iter(&self) -> impl Iterator<Item = &P> {
        let own = self
            .own
            .iter()
            .filter_map(OnceCell::get)
            .map(|peer| &**peer);
        let others = (0..self.others.len()).filter_map(|place| self.others.get(place));
        own.chain(others.filter(|peer| peer.proc() != ProcId::MAX))
    }
}

//! The processes we have had to do with, by their numbers.
//!
//! Those of the own job have a place each. Those of other jobs come and go, so theirs are found by name and used again,
//! and a program that meets new processes all day keeps no more places than it had to do with at once.

use super::ProcId;
use elsa::FrozenVec;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

/// What a transport knows of one process; such a place is used again for another one.
pub(super) trait Place {
    /// Of a process to which there is no connection.
    fn of(proc: ProcId) -> Self;

    /// From now on it is of another process, or with [`ProcId::MAX`] of none; there is no connection.
    fn become_another(&self, proc: ProcId);

    /// Whose it is.
    fn proc(&self) -> ProcId;
}

pub(super) struct Peers<P> {
    own: Vec<OnceCell<Box<P>>>,
    others: FrozenVec<Box<P>>,
    places: RefCell<HashMap<ProcId, usize>>,
    free: RefCell<Vec<usize>>,
}

impl<P: Place> Peers<P> {
    /// No peer yet, of a job of `size` processes.
    pub fn new(size: u32) -> Peers<P> {
        Peers {
            own: (0..size).map(|_| OnceCell::new()).collect(),
            others: FrozenVec::new(),
            places: RefCell::default(),
            free: RefCell::default(),
        }
    }

    /// A process that we have had to do with.
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

    /// A process that we have to do with from now on.
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

    /// We have nothing more to do with a process of another job, to which there is no connection any more.
    pub fn forget(&self, proc: ProcId) {
        if let Some(place) = self.places.borrow_mut().remove(&proc) {
            if let Some(peer) = self.others.get(place) {
                peer.become_another(ProcId::MAX);
            }
            self.free.borrow_mut().push(place);
        }
    }

    /// All that we have had to do with.
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

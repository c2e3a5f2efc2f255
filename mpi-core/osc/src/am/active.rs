//! The active network accesses of all windows of a process.
//!
//! The network may use the memory of an access until the access ends,
//! also after the target is lost. The network's library normally ends accesses to a lost target
//! soon. Otherwise they are cancelled after [`GIVEN_UP`].

use crate::btl::{Btl, ProcId};
use crate::win::WeakWin;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// The time after which an access to a lost target is cancelled.
const GIVEN_UP: Duration = Duration::from_secs(2);

/// The operation for which a network access was started.
pub(crate) enum Purpose {
    /// A put, with a copy of its data unless the network reads the origin's buffer.
    Put(#[allow(dead_code)] Option<Box<[u8]>>),
    /// A get, with the token of its [`Fetch`](super::Fetch).
    Get(u64),
    /// A flush of all puts to a target.
    Flush,
}

/// A network access that has not ended.
pub(crate) struct Active {
    pub win: WeakWin,
    pub rank: u32,
    pub proc: ProcId,
    pub btl: Rc<dyn Btl>,
    pub number: u64,
    pub purpose: Purpose,
    lost_since: Cell<Option<Instant>>,
}

impl Active {
    pub fn new(
        win: WeakWin,
        (rank, proc): (u32, ProcId),
        btl: &Rc<dyn Btl>,
        number: u64,
        purpose: Purpose,
    ) -> Active {
        Active {
            win,
            rank,
            proc,
            btl: btl.clone(),
            number,
            purpose,
            lost_since: Cell::new(None),
        }
    }

    /// Returns `Some(true)` if the access has succeeded, `Some(false)` if it has failed,
    /// and `None` while it is active.
    fn outcome(&self, is_lost: bool) -> Option<bool> {
        let Some(memory) = self.btl.capabilities().remote_memory else {
            return Some(false);
        };
        let outcome = memory.outcome(self.number);
        if outcome.is_some() || !is_lost {
            return outcome;
        }
        let now = Instant::now();
        let since = self.lost_since.get().unwrap_or(now);
        self.lost_since.set(Some(since));
        if now.duration_since(since) < GIVEN_UP {
            return None;
        }
        memory.give_up(self.number);
        Some(false)
    }
}

/// All network accesses of this process that have not ended.
#[derive(Default)]
pub(crate) struct AllActive(RefCell<Vec<Active>>);

impl AllActive {
    pub fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }

    pub fn add(&self, active: Active) {
        self.0.borrow_mut().push(active);
    }

    /// Returns true if access `number` of the transport `btl` is still active.
    pub fn has(&self, btl: &Rc<dyn Btl>, number: u64) -> bool {
        let all = self.0.borrow();
        let mut all = all.iter();
        all.any(|active| active.number == number && Rc::ptr_eq(&active.btl, btl))
    }

    /// Returns true if the get with this token is still active.
    pub fn has_token(&self, token: u64) -> bool {
        let all = self.0.borrow();
        let mut all = all.iter();
        all.any(|active| matches!(active.purpose, Purpose::Get(known) if known == token))
    }

    /// Returns true if an access to a process for which `is_lost` is true is still active.
    pub fn has_to(&self, is_lost: impl Fn(ProcId) -> bool) -> bool {
        self.0.borrow().iter().any(|active| is_lost(active.proc))
    }

    /// Removes and returns the ended accesses, each with true if the access has succeeded.
    pub fn take_ended(&self, is_lost: impl Fn(ProcId) -> bool) -> Vec<(Active, bool)> {
        let mut ended = Vec::new();
        for active in self.0.take() {
            match active.outcome(is_lost(active.proc)) {
                Some(success) => ended.push((active, success)),
                None => self.0.borrow_mut().push(active),
            }
        }
        ended
    }
}

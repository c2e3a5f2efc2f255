//! Epochs: which accesses are allowed now, and the active forms that begin and end them (MPI 5.0, section 12.5).
//!
//! **Fence** completes this process's accesses and then is a barrier; where both assertions say that nothing was or will be accessed, nothing is done.
//! With `MPI_MODE_NOPRECEDE` alone it still is a barrier, since what the target stored before its fence has to be visible to the accesses behind ours.
//!
//! **Post, start, complete, wait**: for each pair a counter of posts and one of completions, which only grow. A post ahead of time is counted and found later.
//! To members on this node they are words in memory ([`super::control`]), to others messages that bring the counter up by one each.

use super::target::{Held, Target};
use super::win::Win;
use super::{OscClass, OscError};
use crate::Error;
use crate::coll::Call;
use crate::group::Group;
use mpi_base::atomic::{Ordering, fence};
use mpi_base::state::{About, AboutWindow, WindowNeed};
use mpi_base::window::{AccessOrder, Awaited};
use std::cell::{Cell, RefCell};

/// What a program asserts of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Assert {
    pub nocheck: bool,
    pub noprecede: bool,
    pub nosucceed: bool,
}

/// The access epoch of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Access {
    #[default]
    None,
    /// Between fences.
    Fence,
    /// From start to complete.
    Start,
    /// Locks of this number of members.
    Locks(u32),
    LockAll,
}

/// The state of a window's epochs at this process.
#[derive(Default)]
pub(super) struct Epochs {
    access: Cell<Access>,
    /// Whether every member may be accessed.
    open: Cell<bool>,
    /// Ranks of the group that was started.
    started: RefCell<Vec<u32>>,
    /// Ranks of the group that the window is exposed to.
    exposed: RefCell<Option<Vec<u32>>>,
    /// By rank, which posts and completions of each the next epochs take.
    awaited: RefCell<Vec<Awaited>>,
    /// Whether a lock of all is a flag, not a ticket of each member.
    pub(super) by_flag: Cell<bool>,
    /// What a flush has to put in order.
    pub(super) order: AccessOrder,
    /// Counts flushes that had nothing to wait for.
    pub(super) flushes: Cell<u32>,
}

impl Epochs {
    #[inline]
    pub fn is_open_to_all(&self) -> bool {
        self.open.get()
    }

    pub fn access(&self) -> Access {
        self.access.get()
    }

    pub fn set(&self, access: Access) {
        self.access.set(access);
        self.open
            .set(matches!(access, Access::Fence | Access::LockAll));
    }

    /// Whether request-based accesses and flushes are allowed.
    pub fn is_passive(&self) -> bool {
        matches!(self.access(), Access::Locks(_) | Access::LockAll)
    }

    /// What keeps the window from being freed.
    pub fn what_is_open(&self) -> Option<&'static str> {
        match self.access() {
            Access::None | Access::Fence if self.exposed.borrow().is_some() => {
                Some("it is exposed: MPI_Win_wait is missing")
            }
            Access::None | Access::Fence => None,
            Access::Start => Some("an access epoch is open: MPI_Win_complete is missing"),
            Access::Locks(_) => Some("it holds locks: MPI_Win_unlock is missing"),
            Access::LockAll => Some("it holds the locks of all: MPI_Win_unlock_all is missing"),
        }
    }

    /// For sentences.
    pub fn describe(&self) -> &'static str {
        match self.access() {
            Access::None => "no access epoch is open",
            Access::Fence => "it is between two fences",
            Access::Start => "the epoch that MPI_Win_start began is for other ranks",
            Access::Locks(_) => "it holds locks of other ranks",
            Access::LockAll => "it holds the locks of all",
        }
    }
}

impl Win {
    /// What keeps it from being freed now: an epoch that is open.
    pub fn what_is_open(&self) -> Option<&'static str> {
        self.0.epochs.what_is_open()
    }

    /// A sentence about a call that does not fit the epoch.
    #[cold]
    pub(super) fn misfit(&self, call: &str, why: &str) -> Error {
        let sentence = format!(
            "rank {} calls {call} on {}, but {why}",
            self.rank(),
            self.label()
        );
        OscError::new(OscClass::Sync, sentence).into()
    }

    /// `MPI_Win_fence`.
    pub fn fence(&self, assert: Assert) -> Result<(), Error> {
        let epochs = &self.0.epochs;
        match epochs.access() {
            Access::None | Access::Fence => {}
            _ => return Err(self.misfit("MPI_Win_fence", epochs.describe())),
        }
        if epochs.exposed.borrow().is_some() {
            return Err(self.misfit("MPI_Win_fence", "it is exposed by MPI_Win_post"));
        }
        self.0.comm.usable()?;
        let outcome = match assert.noprecede {
            true => Ok(()),
            false => self.flush_remote(None),
        };
        if !(assert.noprecede && assert.nosucceed) {
            fence(Ordering::SeqCst);
            self.0.comm.collective(Call::Barrier)?;
            fence(Ordering::SeqCst);
        }
        self.0.accesses.forget_phase();
        epochs.set(match assert.nosucceed {
            true => Access::None,
            false => Access::Fence,
        });
        outcome
    }

    /// The records of a group's members.
    fn of_group(&self, call: &str, group: &Group) -> Result<Vec<u32>, Error> {
        let mut ranks = Vec::with_capacity(group.size() as usize);
        for proc in group.iter() {
            let rank = self.group().rank_of(proc).ok_or_else(|| {
                let sentence = format!(
                    "rank {} calls {call} on {} with a group that has job rank {proc}, which is no member",
                    self.rank(),
                    self.label()
                );
                OscError::new(OscClass::Group, sentence)
            })?;
            ranks.push(rank);
        }
        Ok(ranks)
    }

    /// `MPI_Win_post`: members of `group` may access this process's part.
    pub fn post(&self, group: &Group, assert: Assert) -> Result<(), Error> {
        let _ = assert;
        let epochs = &self.0.epochs;
        if epochs.exposed.borrow().is_some() {
            return Err(self.misfit("MPI_Win_post", "it is exposed already"));
        }
        let ranks = self.of_group("MPI_Win_post", group)?;
        self.prepare_counters();
        fence(Ordering::SeqCst);
        for rank in &ranks {
            let origin = &self.0.targets[*rank as usize];
            match origin.here {
                Some(index) => self.0.control.tell(index, |line| line.post()),
                None => self.send_post(origin)?,
            }
        }
        *epochs.exposed.borrow_mut() = Some(ranks);
        Ok(())
    }

    /// Waits until all of `ranks` have come, which `has_come` says of each.
    fn wait_for_all(
        &self,
        (call, need): (&str, WindowNeed),
        ranks: &[u32],
        has_come: impl Fn(&Target) -> bool,
    ) -> Result<(), Error> {
        let record = |rank: &u32| &self.0.targets[*rank as usize];
        let missing = || ranks.iter().map(record).filter(|t| !has_come(t)).count();
        let all_in = || self.0.control.are_in(|| missing() as u32);
        if all_in() {
            return Ok(());
        }
        let far = ranks.iter().any(|rank| record(rank).here.is_none());
        if !far && self.0.engine.wait_briefly(all_in) {
            return Ok(());
        }
        let service = self.service();
        let lost = || {
            let mut all = ranks.iter().map(record);
            far && all.any(|t| t.here.is_none() && !has_come(t) && service.is_lost(t.proc))
        };
        let first = || ranks.iter().map(record).find(|t| !has_come(t));
        self.0.engine.wait_publishing(
            || all_in() || lost() || self.is_broken(),
            || {
                if let Some(whom) = first() {
                    self.tell(whom, need);
                }
            },
        );
        match first() {
            None => Ok(()),
            Some(_) if !lost() => self.0.comm.usable(),
            Some(whom) => Err(self.gone(call, whom)),
        }
    }

    fn prepare_counters(&self) {
        let mut awaited = self.0.epochs.awaited.borrow_mut();
        if awaited.is_empty() {
            awaited.resize(self.0.targets.len(), Awaited::default());
        }
    }

    /// `MPI_Win_start`: begins an access epoch for the members of `group`, once they have posted.
    pub fn start(&self, group: &Group, assert: Assert) -> Result<(), Error> {
        let epochs = &self.0.epochs;
        match epochs.access() {
            Access::None | Access::Fence => {}
            _ => return Err(self.misfit("MPI_Win_start", epochs.describe())),
        }
        let ranks = self.of_group("MPI_Win_start", group)?;
        self.prepare_counters();
        for rank in &ranks {
            epochs.awaited.borrow_mut()[*rank as usize].start();
        }
        // A program that asserts that they have posted has synchronised by itself.
        if !assert.nocheck {
            self.wait_for_all(("MPI_Win_start", WindowNeed::Post), &ranks, |target| {
                self.awaited_of(target).has_posted(self.posts_of(target))
            })?;
        }
        for rank in &ranks {
            self.0.targets[*rank as usize].started.set(true);
        }
        *epochs.started.borrow_mut() = ranks;
        epochs.set(Access::Start);
        Ok(())
    }

    fn posts_of(&self, target: &Target) -> u32 {
        match target.here {
            Some(index) => self.0.control.line_from(index).posted(),
            None => self.0.remote.of(target.rank).posts.get(),
        }
    }

    fn completions_of(&self, origin: &Target) -> u32 {
        match origin.here {
            Some(index) => self.0.control.line_from(index).completed(),
            None => self.0.remote.of(origin.rank).completions.get(),
        }
    }

    /// `MPI_Win_complete`: ends the access epoch.
    pub fn complete(&self) -> Result<(), Error> {
        let epochs = &self.0.epochs;
        if epochs.access() != Access::Start {
            return Err(self.misfit(
                "MPI_Win_complete",
                "MPI_Win_start has not begun an access epoch",
            ));
        }
        let ranks = epochs.started.take();
        let mut outcome = Ok(());
        for rank in &ranks {
            let target = &self.0.targets[*rank as usize];
            outcome = outcome.and(self.flush_remote(Some(target)));
        }
        self.0.accesses.forget(None);
        fence(Ordering::SeqCst);
        for rank in &ranks {
            let target = &self.0.targets[*rank as usize];
            target.started.set(false);
            match target.here {
                Some(index) => self.0.control.tell(index, |line| line.complete()),
                None => outcome = outcome.and(self.send_complete(target)),
            }
        }
        epochs.set(Access::None);
        outcome
    }

    /// `MPI_Win_wait`: ends the exposure epoch when all of its origins have completed.
    pub fn wait(&self) -> Result<(), Error> {
        let Some(ranks) = self.0.epochs.exposed.take() else {
            return Err(self.misfit("MPI_Win_wait", "MPI_Win_post has not exposed it"));
        };
        self.wait_for_all(("MPI_Win_wait", WindowNeed::Complete), &ranks, |origin| {
            self.has_completed(origin)
        })?;
        self.end_exposure(&ranks);
        fence(Ordering::SeqCst);
        Ok(())
    }

    fn awaited_of(&self, member: &Target) -> Awaited {
        self.0.epochs.awaited.borrow()[member.rank as usize]
    }

    fn has_completed(&self, origin: &Target) -> bool {
        let completed = self.completions_of(origin);
        self.awaited_of(origin).has_completed(completed)
    }

    fn end_exposure(&self, ranks: &[u32]) {
        let mut awaited = self.0.epochs.awaited.borrow_mut();
        for rank in ranks {
            awaited[*rank as usize].end();
        }
    }

    /// `MPI_Win_test`: as [`Win::wait`], if that would not wait.
    pub fn test(&self) -> Result<bool, Error> {
        match self.0.engine.script() {
            Some(script) => self.test_scripted(script),
            None => self.test_now(),
        }
    }

    pub(super) fn test_now(&self) -> Result<bool, Error> {
        let Some(ranks) = self.0.epochs.exposed.take() else {
            return Err(self.misfit("MPI_Win_test", "MPI_Win_post has not exposed it"));
        };
        self.0.engine.poll_once();
        let over = ranks
            .iter()
            .all(|rank| self.has_completed(&self.0.targets[*rank as usize]));
        match over {
            true => {
                self.end_exposure(&ranks);
                fence(Ordering::SeqCst);
            }
            false => *self.0.epochs.exposed.borrow_mut() = Some(ranks),
        }
        Ok(over)
    }

    /// Waits for something that member `whom` has to do, unless it cannot be reached any more.
    pub(super) fn wait_for(
        &self,
        (call, need): (&str, WindowNeed),
        whom: &Target,
        done: impl Fn() -> bool,
    ) -> Result<(), Error> {
        if done() {
            return Ok(());
        }
        let service = self.service();
        let lost = || whom.here.is_none() && service.is_lost(whom.proc);
        self.0.engine.wait_publishing(
            || done() || lost() || self.is_broken(),
            || self.tell(whom, need),
        );
        if done() {
            return Ok(());
        }
        if !lost() {
            self.0.comm.usable()?;
        }
        Err(self.gone(call, whom))
    }

    /// Whether a member has died, who may hold what others wait for, or the window is revoked.
    pub(super) fn is_broken(&self) -> bool {
        self.0.comm.usable().is_err()
    }

    #[cold]
    pub(super) fn gone(&self, call: &str, whom: &Target) -> Error {
        let why = self.service().why_lost(whom.proc);
        let sentence = format!(
            "{call} of rank {} on {} waits for rank {}, which cannot be reached any more: {why}",
            self.rank(),
            self.label(),
            whom.rank
        );
        OscError::new(OscClass::Gone, sentence).into()
    }

    /// Says on the state page whom this process waits for, and whose doing ends the wait, as far as this node knows.
    #[cold]
    fn tell(&self, whom: &Target, need: WindowNeed) {
        let control = &self.0.control;
        let on = whom.here.and_then(|index| match need {
            WindowNeed::Lock => control.holder(index),
            _ => Some(control.of(index)),
        });
        let on = on.and_then(|member| Some((self.group().proc(member.rank)?, member.place)));
        let page = |place| self.0.engine.node().state(place).ok();
        let about = About {
            comm: self.id(),
            peer: whom.rank as i32,
            proc: whom.proc as i32,
            ..About::default()
        };
        let at = AboutWindow {
            name: self.name(),
            need,
            on: on.map(|(proc, _)| proc),
            calls: on
                .and_then(|(_, place)| page(place))
                .map_or(0, |page| page.calls()),
        };
        self.0.engine.state().about_window(&about, &at);
    }

    /// Whether this process holds the lock of a member, however.
    pub(super) fn holds(&self, target: &Target) -> bool {
        self.0.epochs.access() == Access::LockAll || target.held.get() != Held::Nothing
    }
}

//! Active target synchronisation: fence, and post, start, complete, wait (MPI 5.0, section 12.5).
//!
//! **Fence** completes this process's accesses and then runs a barrier.
//! With both `MPI_MODE_NOPRECEDE` and `MPI_MODE_NOSUCCEED` there is no barrier.
//! With `MPI_MODE_NOPRECEDE` alone the barrier remains: stores of the target before its fence
//! must be visible to accesses after this process's fence.
//!
//! **Post, start, complete, wait**: each pair of members has counters of posts and completions.
//! The counters only grow, so a post that arrives before `MPI_Win_start` is not lost.
//! For members on this node the counters are words in shared memory ([`crate::state::control`]).
//! A member on another node increments them by a message.

use crate::Error;
use crate::coll::{Call, FastCall};
use crate::error::{OscClass, OscError};
use crate::group::Group;
use crate::state::epoch::{Access, Assert};
use crate::state::target::Target;
use crate::win::Win;
use mpi_base::atomic::{Ordering, fence};
use mpi_base::state::WindowNeed;

impl Win {
    /// Returns the active target synchronisation of this window.
    #[inline(always)]
    pub fn active(&self) -> ActiveSync<'_> {
        ActiveSync { win: self }
    }
}

/// The active target synchronisation of a window.
#[derive(Clone, Copy)]
pub struct ActiveSync<'a> {
    win: &'a Win,
}

impl<'a> ActiveSync<'a> {
    /// Implements `MPI_Win_fence`.
    pub fn fence(self, assert: Assert) -> Result<(), Error> {
        let epochs = self.win.state().epochs();
        match epochs.access() {
            Access::None | Access::Fence => {}
            _ => return Err(self.win.misfit("MPI_Win_fence", epochs.describe())),
        }
        if epochs.is_exposed() {
            return Err(self
                .win
                .misfit("MPI_Win_fence", "it is exposed by MPI_Win_post"));
        }
        self.win.comm().usable()?;
        let outcome = match assert.noprecede {
            true => Ok(()),
            false => self.win.messages().flush(None),
        };
        if !(assert.noprecede && assert.nosucceed) {
            self.barrier()?;
        }
        self.win.state().open_accesses().forget_phase();
        epochs.set(match assert.nosucceed {
            true => Access::None,
            false => Access::Fence,
        });
        outcome
    }

    /// Waits until all members have called this function, and orders memory accesses before and after it.
    fn barrier(self) -> Result<(), Error> {
        let calls = self.win.comm().collectives();
        fence(Ordering::SeqCst);
        match calls.try_fast_call(&FastCall::Barrier) {
            Some(outcome) => outcome?,
            None => calls.carry_out(Call::Barrier)?,
        }
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// Translates a group into ranks of the window. Fails if a process is not a member.
    fn of_group(self, call: &str, group: &Group) -> Result<Vec<u32>, Error> {
        let mut ranks = Vec::with_capacity(group.size() as usize);
        for proc in group.iter() {
            let rank = self.win.group().rank_of(proc).ok_or_else(|| {
                let sentence = format!(
                    "rank {} calls {call} on {} with a group that has job rank {proc}, which is no member",
                    self.win.rank(),
                    self.win.label()
                );
                OscError::new(OscClass::Group, sentence)
            })?;
            ranks.push(rank);
        }
        Ok(ranks)
    }

    /// `MPI_Win_post`: allows the members of `group` to access this process's memory.
    pub fn post(self, group: &Group, assert: Assert) -> Result<(), Error> {
        let _ = assert;
        let epochs = self.win.state().epochs();
        if epochs.is_exposed() {
            return Err(self.win.misfit("MPI_Win_post", "it is exposed already"));
        }
        let ranks = self.of_group("MPI_Win_post", group)?;
        epochs.prepare_counters(self.win.state().targets().len());
        fence(Ordering::SeqCst);
        for rank in &ranks {
            let origin = &self.win.state().targets()[*rank as usize];
            match origin.here {
                Some(index) => self.win.state().control().tell(index, |line| line.post()),
                None => self.win.messages().post(origin)?,
            }
        }
        epochs.expose(ranks);
        Ok(())
    }

    /// Waits until the posts or completions of all `ranks` have arrived (`has_come` returns true).
    fn wait_for_all(
        self,
        (call, need): (&str, WindowNeed),
        ranks: &[u32],
        has_come: impl Fn(&Target) -> bool,
    ) -> Result<(), Error> {
        let record = |rank: &u32| &self.win.state().targets()[*rank as usize];
        let missing = || ranks.iter().map(record).filter(|t| !has_come(t)).count();
        let all_in = || self.win.state().control().are_in(|| missing() as u32);
        if all_in() {
            return Ok(());
        }
        let far = ranks.iter().any(|rank| record(rank).here.is_none());
        if !far && self.win.engine().waiting().briefly(all_in) {
            return Ok(());
        }
        let service = self.win.service();
        let lost = || {
            let mut all = ranks.iter().map(record);
            far && all.any(|t| t.here.is_none() && !has_come(t) && service.is_lost(t.proc))
        };
        let first = || ranks.iter().map(record).find(|t| !has_come(t));
        self.win.engine().wait_publishing(
            || all_in() || lost() || self.win.is_broken(),
            || {
                if let Some(whom) = first() {
                    self.win.waits().publish_wait(whom, need);
                }
            },
        );
        match first() {
            None => Ok(()),
            Some(_) if !lost() => self.win.comm().usable(),
            Some(whom) => Err(self.win.waits().gone(call, whom)),
        }
    }

    /// `MPI_Win_start`: waits for posts of all members of `group`, then begins an access epoch.
    pub fn start(self, group: &Group, assert: Assert) -> Result<(), Error> {
        let epochs = self.win.state().epochs();
        match epochs.access() {
            Access::None | Access::Fence => {}
            _ => return Err(self.win.misfit("MPI_Win_start", epochs.describe())),
        }
        let ranks = self.of_group("MPI_Win_start", group)?;
        epochs.prepare_counters(self.win.state().targets().len());
        for rank in &ranks {
            epochs.await_post(*rank);
        }
        // With `MPI_MODE_NOCHECK` the program guarantees that all members have posted.
        if !assert.nocheck {
            self.wait_for_all(("MPI_Win_start", WindowNeed::Post), &ranks, |target| {
                self.win
                    .state()
                    .epochs()
                    .awaited(target.rank)
                    .has_posted(self.posts_of(target))
            })?;
        }
        for rank in &ranks {
            self.win.state().targets()[*rank as usize].started.set(true);
        }
        epochs.start(ranks);
        Ok(())
    }

    fn posts_of(self, target: &Target) -> u32 {
        match target.here {
            Some(index) => self.win.state().control().line_from(index).posted(),
            None => self.win.state().remote().of(target.rank).posts.get(),
        }
    }

    fn completions_of(self, origin: &Target) -> u32 {
        match origin.here {
            Some(index) => self.win.state().control().line_from(index).completed(),
            None => self.win.state().remote().of(origin.rank).completions.get(),
        }
    }

    /// `MPI_Win_complete`: ends the access epoch.
    pub fn complete(self) -> Result<(), Error> {
        let epochs = self.win.state().epochs();
        if epochs.access() != Access::Start {
            return Err(self.win.misfit(
                "MPI_Win_complete",
                "MPI_Win_start has not begun an access epoch",
            ));
        }
        let ranks = epochs.take_started();
        let mut outcome = Ok(());
        for rank in &ranks {
            let target = &self.win.state().targets()[*rank as usize];
            outcome = outcome.and(self.win.messages().flush(Some(target)));
        }
        self.win.state().open_accesses().forget(None);
        fence(Ordering::SeqCst);
        for rank in &ranks {
            let target = &self.win.state().targets()[*rank as usize];
            target.started.set(false);
            match target.here {
                Some(index) => self
                    .win
                    .state()
                    .control()
                    .tell(index, |line| line.complete()),
                None => outcome = outcome.and(self.win.messages().complete(target)),
            }
        }
        epochs.set(Access::None);
        outcome
    }

    /// `MPI_Win_wait`: ends the exposure epoch after all origins have called `MPI_Win_complete`.
    pub fn wait(self) -> Result<(), Error> {
        let Some(ranks) = self.win.state().epochs().take_exposed() else {
            return Err(self
                .win
                .misfit("MPI_Win_wait", "MPI_Win_post has not exposed it"));
        };
        self.wait_for_all(("MPI_Win_wait", WindowNeed::Complete), &ranks, |origin| {
            self.has_completed(origin)
        })?;
        self.win.state().epochs().end_exposure(&ranks);
        fence(Ordering::SeqCst);
        Ok(())
    }

    fn has_completed(self, origin: &Target) -> bool {
        let completed = self.completions_of(origin);
        self.win
            .state()
            .epochs()
            .awaited(origin.rank)
            .has_completed(completed)
    }

    /// `MPI_Win_test`: the same as [`ActiveSync::wait`], but returns false instead of waiting.
    pub fn test(self) -> Result<bool, Error> {
        match self.win.engine().script() {
            Some(script) => self.win.recorded().test_scripted(script),
            None => self.test_now(),
        }
    }

    pub(crate) fn test_now(self) -> Result<bool, Error> {
        let Some(ranks) = self.win.state().epochs().take_exposed() else {
            return Err(self
                .win
                .misfit("MPI_Win_test", "MPI_Win_post has not exposed it"));
        };
        self.win.engine().poll_once();
        let over = ranks
            .iter()
            .all(|rank| self.has_completed(&self.win.state().targets()[*rank as usize]));
        match over {
            true => {
                self.win.state().epochs().end_exposure(&ranks);
                fence(Ordering::SeqCst);
            }
            false => self.win.state().epochs().expose(ranks),
        }
        Ok(over)
    }
}

//! Passive target synchronisation: locks, flushes and `MPI_Win_sync` (MPI 5.0, sections 12.5.3 and 12.5.4).
//!
//! The lock of a member on this node is taken in its control words ([`crate::state::control`]): one or two atomic instructions without contention.
//! `MPI_Win_lock_all` raises one flag. While an exclusive lock is announced or requested from another node, it takes a shared lock of each member instead.
//! A member on another node is locked by a message and its reply; `MPI_Win_lock_all` sends the message at the first access to that member.

use crate::Error;
use crate::error::{OscClass, OscError};
use crate::request::PROC_NULL;
use crate::state::epoch::{Access, Assert};
use crate::state::target::{Held, Target};
use crate::win::Win;
use mpi_base::atomic::{Ordering, fence};
use mpi_base::state::WindowNeed;
use mpi_base::window::Mode;

/// One flush out of this many polls for messages, since a poll costs as much as a few accesses.
const FLUSHES: u32 = 64;

impl Win {
    fn lockable(&self, call: &str) -> Result<(), Error> {
        if self.0.hints.borrow().no_locks {
            let why = "it was made with the hint no_locks";
            return Err(self.misfit(call, why));
        }
        Ok(())
    }

    /// `MPI_Win_lock`.
    pub fn lock(&self, mode: Mode, rank: i32, assert: Assert) -> Result<(), Error> {
        const CALL: &str = "MPI_Win_lock";
        let epochs = &self.0.epochs;
        let before = match epochs.access() {
            // A fence with no accesses after it begins no epoch that a lock would conflict with.
            Access::None | Access::Fence => 0,
            Access::Locks(n) => n,
            _ => return Err(self.misfit(CALL, epochs.describe())),
        };
        self.lockable(CALL)?;
        let Some(target) = self.target(rank)? else {
            return Ok(());
        };
        self.traces(target);
        if target.held.get() != Held::Nothing {
            let why = format!("it holds the lock of rank {rank} already");
            return Err(self.misfit(CALL, &why));
        }
        let held = match target.here {
            _ if assert.nocheck => Held::Unchecked,
            Some(index) => {
                self.acquire(CALL, target, index, mode)?;
                Held::Here(mode)
            }
            None => {
                self.lock_remote(target, mode)?;
                Held::There(mode)
            }
        };
        target.held.set(held);
        epochs.set(Access::Locks(before + 1));
        if held == Held::Unchecked {
            // MPI_Win_lock acts as a memory barrier; taking no lock needs one here.
            fence(Ordering::SeqCst);
        }
        Ok(())
    }

    fn acquire(&self, call: &str, target: &Target, index: usize, mode: Mode) -> Result<(), Error> {
        let control = &self.0.control;
        let ticket = self.draw_ticket(call, target, index, mode)?;
        self.wait_for((call, WindowNeed::Lock), target, || {
            control.admits(index, ticket)
        })?;
        control.enter(index, ticket);
        Ok(())
    }

    fn release(&self, target: &Target) -> Result<(), Error> {
        match target.held.replace(Held::Nothing) {
            Held::Nothing | Held::Unchecked => {}
            Held::Here(mode) => {
                if let Some(index) = target.here {
                    self.0.control.leave(index, mode);
                }
            }
            Held::There(mode) => self.unlock_remote(target, mode)?,
        }
        Ok(())
    }

    /// `MPI_Win_unlock`.
    pub fn unlock(&self, rank: i32) -> Result<(), Error> {
        const CALL: &str = "MPI_Win_unlock";
        let Some(target) = self.target(rank)? else {
            return Ok(());
        };
        self.traces(target);
        let Access::Locks(n) = self.0.epochs.access() else {
            return Err(self.misfit(CALL, self.0.epochs.describe()));
        };
        if target.held.get() == Held::Nothing {
            let why = format!("it does not hold the lock of rank {rank}");
            return Err(self.misfit(CALL, &why));
        }
        let outcome = self.flush_remote(Some(target));
        self.0.open_accesses.forget(Some(target));
        if target.held.get() == Held::Unchecked {
            fence(Ordering::SeqCst);
        }
        let released = self.release(target);
        self.0.epochs.set(match n {
            1 => Access::None,
            n => Access::Locks(n - 1),
        });
        outcome.and(released)
    }

    /// `MPI_Win_lock_all`.
    pub fn lock_all(&self, assert: Assert) -> Result<(), Error> {
        const CALL: &str = "MPI_Win_lock_all";
        let epochs = &self.0.epochs;
        match epochs.access() {
            Access::None | Access::Fence => {}
            _ => return Err(self.misfit(CALL, epochs.describe())),
        }
        self.lockable(CALL)?;
        let by_flag = assert.nocheck || (self.may_use_flag() && self.0.control.hold_all());
        epochs.by_flag.set(by_flag && !assert.nocheck);
        let singly = !(by_flag && self.is_all_here() && !assert.nocheck);
        for target in self.0.targets.iter().filter(|_| singly) {
            match target.here {
                _ if assert.nocheck => target.held.set(Held::Unchecked),
                Some(index) if !by_flag => {
                    self.acquire(CALL, target, index, Mode::Shared)?;
                    target.held.set(Held::Here(Mode::Shared));
                }
                _ => {}
            }
        }
        epochs.set(Access::LockAll);
        if !epochs.by_flag.get() {
            fence(Ordering::SeqCst);
        }
        Ok(())
    }

    /// `MPI_Win_unlock_all`.
    pub fn unlock_all(&self) -> Result<(), Error> {
        let epochs = &self.0.epochs;
        if epochs.access() != Access::LockAll {
            return Err(self.misfit("MPI_Win_unlock_all", epochs.describe()));
        }
        let mut outcome = self.flush_remote(None);
        self.0.open_accesses.forget(None);
        let by_flag = epochs.by_flag.replace(false);
        if !by_flag {
            fence(Ordering::SeqCst);
        }
        if !(by_flag && self.is_all_here()) {
            for target in &self.0.targets {
                outcome = outcome.and(self.release(target));
            }
        }
        if by_flag {
            self.0.control.release_all();
        }
        epochs.set(Access::None);
        outcome
    }

    /// Takes the lock of a member on another node that `MPI_Win_lock_all` covers, before the first access to it.
    #[inline]
    pub(crate) fn lock_before_message(&self, target: &Target) -> Result<(), Error> {
        let covered = self.0.epochs.access() == Access::LockAll;
        if covered && target.here.is_none() && target.held.get() == Held::Nothing {
            self.lock_remote(target, Mode::Shared)?;
            target.held.set(Held::There(Mode::Shared));
        }
        Ok(())
    }

    /// `MPI_Win_flush`, fast path: every access is complete when its call returns, and no trace or check is on. It makes no call.
    /// Returns false, without any effect, if there is more to do.
    #[inline(always)]
    pub fn flush_plain(&self, rank: i32) -> bool {
        let target = usize::try_from(rank)
            .ok()
            .and_then(|rank| self.0.targets.get(rank));
        target.is_some_and(|target| self.is_plain_flush(|| target.held.get() != Held::Nothing))
    }

    /// `MPI_Win_flush_all`, fast path; see [`Win::flush_plain`].
    #[inline(always)]
    pub fn flush_all_plain(&self) -> bool {
        self.is_plain_flush(|| true)
    }

    #[inline(always)]
    fn is_plain_flush(&self, holds_lock: impl FnOnce() -> bool) -> bool {
        let window = &*self.0;
        let flushes = window.epochs.flushes.get().wrapping_add(1);
        let is_open = match window.epochs.access() {
            Access::LockAll => true,
            Access::Locks(_) => holds_lock(),
            _ => false,
        };
        let is_plain = is_open
            && window.remote.is_idle()
            && window.trace.is_none()
            && !window.open_accesses.are_wanted()
            && !flushes.is_multiple_of(FLUSHES);
        if is_plain {
            window.epochs.flushes.set(flushes);
            window.epochs.order.flush();
        }
        is_plain
    }

    fn flushable(&self, call: &str) -> Result<(), Error> {
        match self.0.epochs.is_passive() {
            true => Ok(()),
            false => Err(self.misfit(call, "no passive epoch is open")),
        }
    }

    /// `MPI_Win_flush`: waits until this process's accesses to a rank are complete at the target.
    #[inline]
    pub fn flush(&self, rank: i32) -> Result<(), Error> {
        self.flush_for("MPI_Win_flush", rank)?;
        if self.0.open_accesses.are_wanted()
            && let Some(target) = self.target(rank)?
        {
            self.0.open_accesses.forget(Some(target));
        }
        Ok(())
    }

    /// `MPI_Win_flush_local`: waits until they are complete at the origin.
    pub fn flush_local(&self, rank: i32) -> Result<(), Error> {
        self.flush_for("MPI_Win_flush_local", rank)
    }

    #[inline]
    fn flush_for(&self, call: &str, rank: i32) -> Result<(), Error> {
        self.flushable(call)?;
        let Some(target) = self.target(rank)? else {
            return Ok(());
        };
        self.traces(target);
        if !self.holds(target) {
            let why = format!("it does not hold the lock of rank {rank}");
            return Err(self.misfit(call, &why));
        }
        fence(Ordering::SeqCst);
        if self.0.remote.is_idle() {
            self.progress_now_and_then();
            return Ok(());
        }
        self.flush_remote(Some(target))
    }

    /// Polls in one of `FLUSHES` calls although no message of this process needs it: a program may flush in a loop until a peer responds.
    #[inline]
    fn progress_now_and_then(&self) {
        let flushes = self.0.epochs.flushes.get().wrapping_add(1);
        self.0.epochs.flushes.set(flushes);
        if flushes.is_multiple_of(FLUSHES) {
            self.0.engine.poll_once();
        }
    }

    /// `MPI_Win_flush_all`.
    pub fn flush_all(&self) -> Result<(), Error> {
        self.flush_all_for("MPI_Win_flush_all")?;
        self.0.open_accesses.forget(None);
        Ok(())
    }

    /// `MPI_Win_flush_local_all`.
    pub fn flush_local_all(&self) -> Result<(), Error> {
        self.flush_all_for("MPI_Win_flush_local_all")
    }

    fn flush_all_for(&self, call: &str) -> Result<(), Error> {
        self.flushable(call)?;
        fence(Ordering::SeqCst);
        self.progress_now_and_then();
        self.flush_remote(None)
    }

    /// `MPI_Win_sync`: orders earlier loads and stores before later ones.
    pub fn sync(&self) {
        fence(Ordering::SeqCst);
        self.0.engine.progress();
        // Programs call it in a loop until another process has stored a value; that process may need this core.
        if self.0.engine.is_oversubscribed() {
            self.0.engine.give_core_away();
        }
    }

    /// Checks that a request-based access is allowed.
    pub fn check_passive(&self, call: &str, rank: i32) -> Result<(), OscError> {
        if self.0.epochs.is_passive() || rank == PROC_NULL {
            return Ok(());
        }
        let sentence = format!(
            "rank {} calls {call} on {}, but no passive epoch is open: request-based accesses need MPI_Win_lock or MPI_Win_lock_all",
            self.rank(),
            self.label()
        );
        Err(OscError::new(OscClass::Sync, sentence))
    }
}

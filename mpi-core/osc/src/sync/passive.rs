//! Passive target synchronisation: locks, flushes and `MPI_Win_sync` (MPI 5.0, sections 12.5.3 and 12.5.4).
//!
//! The lock of a member on this node is in its control words ([`crate::state::control`]).
//! Without contention, a lock takes one or two atomic instructions.
//! `MPI_Win_lock_all` raises one flag, which locks all members on this node.
//! While an exclusive lock is announced, `MPI_Win_lock_all` takes a shared lock of each member.
//! Locking a member on another node takes a message and its reply;
//! after `MPI_Win_lock_all`, the first access to that member sends this message.

use crate::Error;
use crate::error::{OscClass, OscError};
use crate::request::PROC_NULL;
use crate::state::epoch::{Access, Assert};
use crate::state::target::{Held, Target};
use crate::win::Win;
use mpi_base::atomic::{Ordering, fence};
use mpi_base::state::WindowNeed;
use mpi_base::window::Mode;

/// One in this number of flushes polls for messages, since a poll costs as much as a few accesses.
const FLUSHES: u32 = 64;
/// One in this number of unlocks polls for messages. A lock and its unlock cost as much as several flushes.
const UNLOCKS: u32 = 16;

impl Win {
    /// Returns the passive target synchronisation of this window.
    #[inline(always)]
    pub fn passive(&self) -> PassiveSync<'_> {
        PassiveSync { win: self }
    }
}

/// The passive target synchronisation of a window.
#[derive(Clone, Copy)]
pub struct PassiveSync<'a> {
    win: &'a Win,
}

impl<'a> PassiveSync<'a> {
    fn lockable(self, call: &str) -> Result<(), Error> {
        if self.win.has_no_locks() {
            let why = "it was made with the hint no_locks";
            return Err(self.win.misfit(call, why));
        }
        Ok(())
    }

    /// Implements `MPI_Win_lock`.
    pub fn lock(self, mode: Mode, rank: i32, assert: Assert) -> Result<(), Error> {
        const CALL: &str = "MPI_Win_lock";
        let epochs = self.win.state().epochs();
        let before = match epochs.access() {
            // After a fence without accesses, no epoch is open that conflicts with a lock.
            Access::None | Access::Fence => 0,
            Access::Locks(n) => n,
            _ => return Err(self.win.misfit(CALL, epochs.describe())),
        };
        self.lockable(CALL)?;
        let Some(target) = self.win.target(rank)? else {
            return Ok(());
        };
        self.win.traced().target(target);
        if target.held.get() != Held::Nothing {
            let why = format!("it holds the lock of rank {rank} already");
            return Err(self.win.misfit(CALL, &why));
        }
        let held = match target.here {
            _ if assert.nocheck => Held::Unchecked,
            Some(index) => {
                self.acquire(CALL, target, index, mode)?;
                Held::Here(mode)
            }
            None => {
                self.win.messages().lock(target, mode)?;
                Held::There(mode)
            }
        };
        target.held.set(held);
        epochs.set(Access::Locks(before + 1));
        if held == Held::Unchecked {
            // MPI_Win_lock acts as a memory barrier; without a lock, this fence provides it.
            fence(Ordering::SeqCst);
        }
        Ok(())
    }

    fn acquire(self, call: &str, target: &Target, index: usize, mode: Mode) -> Result<(), Error> {
        let control = self.win.state().control();
        let ticket = self.win.recorded().draw_ticket(call, target, index, mode)?;
        self.win
            .waits()
            .wait_for((call, WindowNeed::Lock), target, || {
                control.admits(index, ticket)
            })?;
        control.enter(index, ticket);
        Ok(())
    }

    fn release(self, target: &Target) -> Result<(), Error> {
        match target.held.replace(Held::Nothing) {
            Held::Nothing | Held::Unchecked => {}
            Held::Here(mode) => {
                if let Some(index) = target.here {
                    self.win.state().control().leave(index, mode);
                }
            }
            Held::There(mode) => self.win.messages().unlock(target, mode)?,
        }
        Ok(())
    }

    /// Implements `MPI_Win_unlock`.
    pub fn unlock(self, rank: i32) -> Result<(), Error> {
        const CALL: &str = "MPI_Win_unlock";
        let Some(target) = self.win.target(rank)? else {
            return Ok(());
        };
        self.win.traced().target(target);
        let Access::Locks(n) = self.win.state().epochs().access() else {
            let epochs = self.win.state().epochs();
            return Err(self
                .win
                .misfit(CALL, &epochs.describe_without("MPI_Win_lock")));
        };
        if target.held.get() == Held::Nothing {
            let why = format!("it does not hold the lock of rank {rank}");
            return Err(self.win.misfit(CALL, &why));
        }
        let outcome = self.win.messages().flush(Some(target));
        self.win.state().open_accesses().forget(Some(target));
        if target.held.get() == Held::Unchecked {
            fence(Ordering::SeqCst);
        }
        let released = self.release(target);
        self.win.state().epochs().set(match n {
            1 => Access::None,
            n => Access::Locks(n - 1),
        });
        self.progress_now_and_then(UNLOCKS);
        outcome.and(released)
    }

    /// Implements `MPI_Win_lock_all`.
    pub fn lock_all(self, assert: Assert) -> Result<(), Error> {
        const CALL: &str = "MPI_Win_lock_all";
        let epochs = self.win.state().epochs();
        match epochs.access() {
            Access::None | Access::Fence => {}
            _ => return Err(self.win.misfit(CALL, epochs.describe())),
        }
        self.lockable(CALL)?;
        let by_flag = assert.nocheck
            || (self.win.recorded().may_use_flag() && self.win.state().control().hold_all());
        epochs.by_flag.set(by_flag && !assert.nocheck);
        let singly = !(by_flag && self.win.memory().is_all_here() && !assert.nocheck);
        for target in self.win.state().targets().iter().filter(|_| singly) {
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

    /// Implements `MPI_Win_unlock_all`.
    pub fn unlock_all(self) -> Result<(), Error> {
        let epochs = self.win.state().epochs();
        if epochs.access() != Access::LockAll {
            let why = epochs.describe_without("MPI_Win_lock_all");
            return Err(self.win.misfit("MPI_Win_unlock_all", &why));
        }
        let mut outcome = self.win.messages().flush(None);
        self.win.state().open_accesses().forget(None);
        let by_flag = epochs.by_flag.replace(false);
        if !by_flag {
            fence(Ordering::SeqCst);
        }
        if !(by_flag && self.win.memory().is_all_here()) {
            for target in self.win.state().targets() {
                outcome = outcome.and(self.release(target));
            }
        }
        if by_flag {
            self.win.state().control().release_all();
        }
        epochs.set(Access::None);
        self.progress_now_and_then(UNLOCKS);
        outcome
    }

    /// Under `MPI_Win_lock_all`, locks a member on another node before this process's first access.
    #[inline]
    pub(crate) fn lock_before_message(self, target: &Target) -> Result<(), Error> {
        let covered = self.win.state().epochs().access() == Access::LockAll;
        if covered && target.here.is_none() && target.held.get() == Held::Nothing {
            self.win.messages().lock(target, Mode::Shared)?;
            target.held.set(Held::There(Mode::Shared));
        }
        Ok(())
    }

    /// `MPI_Win_flush`, fast path, inlined completely. It applies if all accesses are complete
    /// when their calls return, and if no trace and no conflict check is enabled.
    /// Returns false, without any effect, if one of these conditions does not hold.
    #[inline(always)]
    pub fn flush_plain(self, rank: i32) -> bool {
        let target = usize::try_from(rank)
            .ok()
            .and_then(|rank| self.win.state().targets().get(rank));
        target.is_some_and(|target| self.is_plain_flush(|| target.held.get() != Held::Nothing))
    }

    /// `MPI_Win_flush_all`, fast path; see [`PassiveSync::flush_plain`].
    #[inline(always)]
    pub fn flush_all_plain(self) -> bool {
        self.is_plain_flush(|| true)
    }

    #[inline(always)]
    fn is_plain_flush(self, holds_lock: impl FnOnce() -> bool) -> bool {
        let state = self.win.state();
        let flushes = state.epochs().flushes.get().wrapping_add(1);
        let is_open = match state.epochs().access() {
            Access::LockAll => true,
            Access::Locks(_) => holds_lock(),
            _ => false,
        };
        let is_plain = is_open
            && state.remote().is_idle()
            && state.trace().is_none()
            && !state.open_accesses().are_wanted()
            && !flushes.is_multiple_of(FLUSHES);
        if is_plain {
            state.epochs().flushes.set(flushes);
            state.epochs().order.flush();
        }
        is_plain
    }

    fn flushable(self, call: &str) -> Result<(), Error> {
        match self.win.state().epochs().is_passive() {
            true => Ok(()),
            false => Err(self.win.misfit(call, "no passive epoch is open")),
        }
    }

    /// `MPI_Win_flush`: waits until this process's accesses to a rank are complete at the target.
    #[inline]
    pub fn flush(self, rank: i32) -> Result<(), Error> {
        self.flush_for("MPI_Win_flush", rank)?;
        if self.win.state().open_accesses().are_wanted()
            && let Some(target) = self.win.target(rank)?
        {
            self.win.state().open_accesses().forget(Some(target));
        }
        Ok(())
    }

    /// `MPI_Win_flush_local`: waits until accesses to a rank are complete at the origin.
    pub fn flush_local(self, rank: i32) -> Result<(), Error> {
        self.flush_for("MPI_Win_flush_local", rank)
    }

    #[inline]
    fn flush_for(self, call: &str, rank: i32) -> Result<(), Error> {
        self.flushable(call)?;
        let Some(target) = self.win.target(rank)? else {
            return Ok(());
        };
        self.win.traced().target(target);
        if !self.holds(target) {
            let why = format!("it does not hold the lock of rank {rank}");
            return Err(self.win.misfit(call, &why));
        }
        fence(Ordering::SeqCst);
        self.progress_now_and_then(FLUSHES);
        self.win.messages().flush(Some(target))
    }

    /// Polls for messages in one of `calls` calls, whether the call awaits one or not:
    /// a program may read its own memory in a loop of accesses with flushes, locks or requests
    /// until another rank, whose accesses arrive as messages, has changed the memory.
    #[inline]
    fn progress_now_and_then(self, calls: u32) {
        let flushes = self.win.state().epochs().flushes.get().wrapping_add(1);
        self.win.state().epochs().flushes.set(flushes);
        if flushes.is_multiple_of(calls) {
            self.win.engine().poll_once();
        }
    }

    /// Implements `MPI_Win_flush_all`.
    pub fn flush_all(self) -> Result<(), Error> {
        self.flush_all_for("MPI_Win_flush_all")?;
        self.win.state().open_accesses().forget(None);
        Ok(())
    }

    /// Implements `MPI_Win_flush_local_all`.
    pub fn flush_local_all(self) -> Result<(), Error> {
        self.flush_all_for("MPI_Win_flush_local_all")
    }

    fn flush_all_for(self, call: &str) -> Result<(), Error> {
        self.flushable(call)?;
        fence(Ordering::SeqCst);
        self.progress_now_and_then(FLUSHES);
        self.win.messages().flush(None)
    }

    /// `MPI_Win_sync`: orders earlier loads and stores before later ones.
    pub fn sync(self) {
        fence(Ordering::SeqCst);
        self.win.engine().progress();
        // Programs call `MPI_Win_sync` in a loop until another process has stored a value.
        // The other process may need this core.
        if self.win.engine().waiting().is_oversubscribed() {
            self.win.engine().waiting().give_core_away();
        }
    }

    /// Called before a request-based access. Checks that the current epoch allows it.
    /// Sometimes polls for messages, because neither the access nor the wait for its request may do so.
    pub fn check(self, call: &str, rank: i32) -> Result<(), OscError> {
        if self.win.state().epochs().is_passive() || rank == PROC_NULL {
            self.progress_now_and_then(FLUSHES);
            return Ok(());
        }
        let sentence = format!(
            "rank {} calls {call} on {}, but no passive epoch is open: request-based accesses need MPI_Win_lock or MPI_Win_lock_all",
            self.win.rank(),
            self.win.label()
        );
        Err(OscError::new(OscClass::Sync, sentence))
    }

    /// Returns true if this process holds a member's lock by `MPI_Win_lock` or `_lock_all`.
    fn holds(self, target: &Target) -> bool {
        self.win.state().epochs().access() == Access::LockAll || target.held.get() != Held::Nothing
    }
}

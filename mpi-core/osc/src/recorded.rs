//! The order of locks and accesses in a recorded or replayed job ([`crate::record`]).
//! Only windows whose members share one node are recorded.
//!
//! The results of gets, fetches and comparisons depend on the order of accesses.
//! So each access has a turn: its number in the sequence of all accesses to that member.
//! A recorded job draws turns and records their numbers.
//! In a replay, each access waits until all turns before its recorded turn have ended.
//! Lock tickets are recorded in the same way; `MPI_Win_lock_all` takes a ticket of each member.
//! Other jobs draw no turns. Loads and stores without an MPI call are not ordered.

use super::win::Win;
use crate::Error;
use crate::record::{Asker, Script};
use crate::state::access_order::{AccessOrder, OrderedAccess};
use crate::state::target::Target;
use mpi_base::state::WindowNeed;
use mpi_base::window::{Mode, Ticket};

impl Win {
    /// Returns the recorded order of this window.
    #[inline(always)]
    pub(crate) fn recorded(&self) -> RecordedOrder<'_> {
        RecordedOrder { win: self }
    }
}

/// The order of locks and accesses of a window in a recorded or replayed job.
#[derive(Clone, Copy)]
pub(crate) struct RecordedOrder<'a> {
    win: &'a Win,
}

impl<'a> RecordedOrder<'a> {
    /// Returns the script of the recording or replay, if it orders this window.
    pub(crate) fn script(self) -> Option<&'a Script> {
        self.win
            .engine()
            .script()
            .filter(|_| self.win.memory().is_all_here())
    }

    /// Waits for the turn of an access to a member.
    /// A recorded job draws a new turn; a replay uses the recorded turn.
    #[inline]
    pub(crate) fn order_access(
        self,
        call: &str,
        target: &Target,
    ) -> Result<OrderedAccess<'a>, Error> {
        match (self.script(), target.here) {
            (Some(script), Some(index)) => {
                let access_order = &self.win.state().control().of(index).access_order;
                self.order_access_by(script, access_order, call, target)
            }
            _ => Ok(OrderedAccess::free()),
        }
    }

    #[cold]
    fn order_access_by(
        self,
        script: &Script,
        access_order: &'a AccessOrder,
        call: &str,
        target: &Target,
    ) -> Result<OrderedAccess<'a>, Error> {
        let number = match script.is_replay() {
            true => script.number_of(Asker::Access)?,
            false => access_order.draw(),
        };
        self.win
            .waits()
            .wait_for((call, WindowNeed::Answer), target, || {
                access_order.has_come(number)
            })?;
        if !script.is_replay() {
            script.completed(Asker::Access, &[number as usize])?;
        }
        Ok(OrderedAccess::begin(access_order))
    }

    /// Draws a ticket for the lock of a member on this node. A replay draws in the recorded order.
    pub(crate) fn draw_ticket(
        self,
        call: &str,
        target: &Target,
        index: usize,
        mode: Mode,
    ) -> Result<Ticket, Error> {
        let control = self.win.state().control();
        let Some(script) = self.script() else {
            return Ok(control.draw(index, mode));
        };
        if script.is_replay() {
            let number = script.number_of(Asker::Lock)?;
            self.win
                .waits()
                .wait_for((call, WindowNeed::Lock), target, || {
                    control.of(index).lock.next() == number
                })?;
            return Ok(control.draw(index, mode));
        }
        let ticket = control.draw(index, mode);
        script.completed(Asker::Lock, &[ticket.number() as usize])?;
        Ok(ticket)
    }

    /// Implements `MPI_Win_test` in a recorded or replayed job.
    /// A replay returns the recorded result.
    pub(crate) fn test_scripted(self, script: &Script) -> Result<bool, Error> {
        if script.is_replay() {
            let over = script.places(Asker::WinTest)?.is_some();
            match over {
                true => self.win.active().wait()?,
                false => {
                    self.win.engine().poll_once();
                }
            }
            return Ok(over);
        }
        let over = self.win.active().test_now()?;
        match over {
            true => script.completed(Asker::WinTest, &[0])?,
            false => script.found_nothing(Asker::WinTest)?,
        }
        Ok(over)
    }

    /// Returns true if `MPI_Win_lock_all` may lock all members on this node by one flag,
    /// instead of drawing a ticket for the lock of each member.
    /// In a recorded job it may not, since the order in which members raise flags cannot be recorded.
    pub(crate) fn may_use_flag(self) -> bool {
        self.script().is_none()
    }
}

//! The order of locks and accesses in a recorded or replayed run ([`crate::record`]), for windows whose members share one node.
//!
//! The results of gets, fetches and comparisons depend on the order of accesses, so each access to a member takes a turn there:
//! a recorded run draws turns and records their numbers; in a replay each access waits until its recorded number is due.
//! Lock tickets are recorded in the same way; `MPI_Win_lock_all` takes a ticket of each member, so that its order is known too.
//! Other runs skip all of this. Loads and stores without a call are not ordered.

use super::win::Win;
use crate::Error;
use crate::record::{Asker, Script};
use crate::state::access_order::{AccessOrder, OrderedAccess};
use crate::state::target::Target;
use mpi_base::state::WindowNeed;
use mpi_base::window::{Mode, Ticket};

impl Win {
    /// Returns its order in a recorded or replayed run.
    #[inline(always)]
    pub(crate) fn recorded(&self) -> RecordedOrder<'_> {
        RecordedOrder { win: self }
    }
}

/// The order of locks and accesses of a window in a recorded or replayed run.
#[derive(Clone, Copy)]
pub(crate) struct RecordedOrder<'a> {
    win: &'a Win,
}

impl<'a> RecordedOrder<'a> {
    /// Returns the recording or replay that orders this window.
    pub(crate) fn script(self) -> Option<&'a Script> {
        self.win
            .engine()
            .script()
            .filter(|_| self.win.memory().is_all_here())
    }

    /// Takes a turn at a member for an access.
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

    /// Draws a ticket for a lock of a member on this node, in the recorded order if this is a replay.
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

    /// `MPI_Win_test` in a recorded or replayed run; a replay returns the recorded answer.
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

    /// Returns true if `MPI_Win_lock_all` may use the flag, whose order cannot be recorded.
    pub(crate) fn may_use_flag(self) -> bool {
        self.script().is_none()
    }
}

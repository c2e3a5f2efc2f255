//! Waits for an action of another member of a window.
//! Each longer wait is published in this rank's state page, from which `mpirun` explains hangs.

use crate::Error;
use crate::error::{OscClass, OscError};
use crate::state::target::Target;
use crate::win::Win;
use mpi_base::state::{About, AboutWindow, WindowNeed};
use std::cell::Cell;

impl Win {
    /// Returns the wait operations of this window.
    #[inline(always)]
    pub(crate) fn waits(&self) -> Waits<'_> {
        Waits { win: self }
    }
}

/// The wait operations of a window.
#[derive(Clone, Copy)]
pub(crate) struct Waits<'a> {
    win: &'a Win,
}

impl<'a> Waits<'a> {
    /// Waits for an action of member `whom`.
    /// Fails if this member is unreachable or the window is broken.
    ///
    /// The wait succeeds if `done` was true at any poll, even if `done` is false at the next poll.
    /// `done` can change because of another member's `MPI_Win_lock_all`, which raises a flag,
    /// finds the announced exclusive lock and lowers the flag.
    /// No exclusive lock is admitted while such a flag is raised.
    pub(crate) fn wait_for(
        self,
        (call, need): (&str, WindowNeed),
        whom: &Target,
        done: impl Fn() -> bool,
    ) -> Result<(), Error> {
        let was_done = Cell::new(done());
        if was_done.get() {
            return Ok(());
        }
        let is_done = || {
            was_done.set(done());
            was_done.get()
        };
        let service = self.win.service();
        let lost = || whom.here.is_none() && service.is_lost(whom.proc);
        self.win.engine().wait_publishing(
            || is_done() || lost() || self.win.is_broken(),
            || self.publish_wait(whom, need),
        );
        if was_done.get() || done() {
            return Ok(());
        }
        if !lost() {
            self.win.comm().usable()?;
        }
        Err(self.gone(call, whom))
    }

    #[cold]
    pub(crate) fn gone(self, call: &str, whom: &Target) -> Error {
        let why = self.win.service().why_lost(whom.proc);
        let sentence = format!(
            "{call} of rank {} on {} waits for rank {}, which cannot be reached any more: {why}",
            self.win.rank(),
            self.win.label(),
            whom.rank
        );
        OscError::new(OscClass::Gone, sentence).into()
    }

    /// Publishes on the state page the member that this process waits for.
    /// Also publishes the member that can end the wait, if it is known and on this node.
    #[cold]
    pub(crate) fn publish_wait(self, whom: &Target, need: WindowNeed) {
        let control = self.win.state().control();
        let on = whom.here.and_then(|index| match need {
            WindowNeed::Lock => control.holder(index),
            _ => Some(control.of(index)),
        });
        let on = on.and_then(|member| Some((self.win.group().proc(member.rank)?, member.place)));
        let page = |place| self.win.engine().node().state(place).ok();
        let about = About {
            comm: self.win.id(),
            peer: whom.rank as i32,
            proc: whom.proc as i32,
            ..About::default()
        };
        let about_window = AboutWindow {
            name: self.win.name(),
            need,
            on: on.map(|(proc, _)| proc),
            calls: on
                .and_then(|(_, place)| page(place))
                .map_or(0, |page| page.calls()),
        };
        self.win
            .engine()
            .state()
            .about_window(&about, &about_window);
    }
}

//! The processes known to be dead or to have left MPI, in the order in which this process was notified.

use mpi_transport::btl::ProcId;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

/// A process that has died or left, and the reason as text.
pub(crate) type Death = (ProcId, Rc<str>);

/// The deaths and departures of other processes that this process knows; the list only grows.
#[derive(Default)]
pub(crate) struct Deaths(RefCell<Known>);

#[derive(Default)]
struct Known {
    died: Vec<Death>,
    /// Processes that have left MPI normally. They have completed their operations with this process,
    /// so they count as failed only for an operation that needs them.
    left: Vec<Death>,
    gone: HashSet<ProcId>,
}

impl Deaths {
    /// Returns true if a process has died or has left MPI.
    pub(crate) fn is_dead(&self, proc: ProcId) -> bool {
        self.0.borrow().gone.contains(&proc)
    }

    pub(super) fn has_failed(&self, proc: ProcId) -> bool {
        let known = self.0.borrow();
        known.died.iter().any(|(dead, _)| *dead == proc)
    }

    /// Returns true if no process is known to have died or left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().gone.is_empty()
    }

    /// Returns the dead processes for which `is_member` returns true, in the order in which this process was notified.
    pub(crate) fn dead_among(&self, is_member: impl Fn(ProcId) -> bool) -> Vec<Death> {
        among(&self.0.borrow().died, is_member)
    }

    /// Returns the processes for which `is_member` returns true and that have left MPI normally.
    pub(crate) fn left_among(&self, is_member: impl Fn(ProcId) -> bool) -> Vec<Death> {
        among(&self.0.borrow().left, is_member)
    }

    /// Adds the death of a process; `why` is the reason as text.
    pub(super) fn add_death(&self, proc: ProcId, why: &str) {
        let mut known = self.0.borrow_mut();
        known.gone.insert(proc);
        known.left.retain(|(left, _)| *left != proc);
        known.died.push((proc, why.into()));
    }

    /// Adds a process that has left MPI normally. Returns false if its departure or death is known already.
    pub(super) fn add_leave(&self, proc: ProcId, why: &str) -> bool {
        let mut known = self.0.borrow_mut();
        let is_new = known.gone.insert(proc);
        if is_new {
            known.left.push((proc, why.into()));
        }
        is_new
    }
}

fn among(deaths: &[Death], is_member: impl Fn(ProcId) -> bool) -> Vec<Death> {
    let members = deaths.iter().filter(|(proc, _)| is_member(*proc));
    members.cloned().collect()
}

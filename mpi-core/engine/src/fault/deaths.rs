//! The processes with which nothing can be done any more, in the order in which this process learnt of them.

use mpi_transport::btl::ProcId;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

/// A process, and what is known of its end.
pub(crate) type Death = (ProcId, Rc<str>);

/// What one process knows of the ends of others; it only grows.
#[derive(Default)]
pub(crate) struct Deaths(RefCell<Known>);

#[derive(Default)]
struct Known {
    died: Vec<Death>,
    /// Those that have left MPI in order. What they began with this process they have ended, so they are no failures
    /// until an operation needs something of them.
    left: Vec<Death>,
    gone: HashSet<ProcId>,
}

impl Deaths {
    /// Whether a process has died, or has left MPI.
    pub(crate) fn is_dead(&self, proc: ProcId) -> bool {
        self.0.borrow().gone.contains(&proc)
    }

    pub(super) fn has_failed(&self, proc: ProcId) -> bool {
        let known = self.0.borrow();
        known.died.iter().any(|(dead, _)| *dead == proc)
    }

    /// Whether no process is known to have died or left.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().gone.is_empty()
    }

    /// The dead among these, in the order in which this process learnt of them.
    pub(crate) fn dead_among(&self, is_member: impl Fn(ProcId) -> bool) -> Vec<Death> {
        among(&self.0.borrow().died, is_member)
    }

    /// Those among these that have left MPI in order.
    pub(crate) fn left_among(&self, is_member: impl Fn(ProcId) -> bool) -> Vec<Death> {
        among(&self.0.borrow().left, is_member)
    }

    /// A process has died.
    pub(super) fn add_death(&self, proc: ProcId, why: &str) {
        let mut known = self.0.borrow_mut();
        known.gone.insert(proc);
        known.left.retain(|(left, _)| *left != proc);
        known.died.push((proc, why.into()));
    }

    /// A process has left MPI in order; false if that, or its death, is known already.
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

//! Fault tolerance on a communicator: failure errors, revocation, acknowledgement (`MPIX_Comm_...`).

use super::Comm;
use super::failure_state::FailureState;
use crate::Error;
use crate::fault::{Affected, Death, FaultError};
use crate::group::Group;
use mpi_transport::btl::ProcId;
use std::rc::Weak;

const SHOWN: usize = 4;

/// A guard: until it is dropped, a failure of one communicator also fails the operations of another; see [`Failures::while_making`].
#[must_use = "the communicators are apart as soon as it is dropped"]
pub struct Making {
    whole: Comm,
    part: Comm,
}

impl Drop for Making {
    fn drop(&mut self) {
        self.whole.failures().lets_go(&self.part);
    }
}

/// The failures and the revocation of a communicator.
#[derive(Clone, Copy)]
pub struct Failures<'a> {
    comm: &'a Comm,
    state: &'a FailureState,
}

impl<'a> Failures<'a> {
    #[inline]
    pub(super) fn new(comm: &'a Comm, state: &'a FailureState) -> Failures<'a> {
        Failures { comm, state }
    }

    /// Registers a new communicator for notifications of failures, and applies the failures that are known already.
    pub(super) fn register(self, affected: Weak<dyn Affected>) {
        let Some(faults) = self.comm.engine().faults() else {
            return;
        };
        let of_several_jobs = affected.upgrade().filter(|_| self.comm.is_mixed());
        if faults.welcome(self.comm.context().number(), affected) {
            self.state.add(FailureState::REVOKED);
        }
        if let Some(affected) = of_several_jobs {
            faults.catch_up(affected);
        }
        let deaths = faults.deaths();
        let mut members = self.comm.group().iter().chain(self.comm.peers().iter());
        if !deaths.is_empty() && members.any(|proc| deaths.is_dead(proc)) {
            self.state.add(FailureState::FAILED);
        }
    }

    /// Returns the dead members, in the order in which this process was notified of their deaths.
    pub(super) fn deaths(self) -> Vec<Death> {
        let faults = self.comm.engine().faults();
        faults.map_or_else(Vec::new, |faults| {
            (faults.deaths()).dead_among(|proc| self.comm.has_member(proc))
        })
    }

    /// Returns true if this communicator fails only because its parent has failed.
    pub(crate) fn is_broken_from_outside(self) -> bool {
        self.state.outer().is_some()
    }

    /// Returns the members that are known to have left MPI.
    pub(super) fn departures(self) -> Vec<Death> {
        let faults = self.comm.engine().faults();
        faults.map_or_else(Vec::new, |faults| {
            (faults.deaths()).left_among(|proc| self.comm.has_member(proc))
        })
    }

    /// Returns the error of an operation if a member for which `needed` returns true has died.
    pub(super) fn failed(self, needed: impl Fn(ProcId) -> bool) -> Option<FaultError> {
        self.error_about(&self.deaths(), needed)
    }

    /// Returns the error of an operation
    /// if a member for which `needed` returns true has died or has left MPI.
    fn gone(self, needed: impl Fn(ProcId) -> bool) -> Option<FaultError> {
        let mut all = self.deaths();
        all.append(&mut self.departures());
        self.error_about(&all, needed)
    }

    fn error_about(
        self,
        failures: &[Death],
        needed: impl Fn(ProcId) -> bool,
    ) -> Option<FaultError> {
        let sentences: Vec<String> = failures
            .iter()
            .filter(|(proc, _)| needed(*proc))
            .map(|(_, why)| why.to_string())
            .collect();
        let shown = sentences.len().min(SHOWN);
        let more = sentences.len() - shown;
        (shown > 0).then(|| FaultError::failed(&self.comm.label(), &sentences[..shown], more))
    }

    /// Returns an error if the communicator has been revoked.
    #[cold]
    pub(crate) fn error_if_revoked(self) -> Result<(), Error> {
        match self.state.has(FailureState::REVOKED) {
            true => Err(FaultError::revoked(&self.comm.label()).into()),
            false => Ok(()),
        }
    }

    /// Returns the error of an operation that needs all members, if it cannot complete.
    #[cold]
    pub(crate) fn error_of_all(self) -> Result<(), Error> {
        self.error_if_revoked()?;
        match self.state.outer().or_else(|| self.failed(|_| true)) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Returns the error of an operation of `members`, if one of them has died or the communicator has been revoked.
    #[cold]
    fn error_of_some(self, members: &Group) -> Result<(), Error> {
        self.error_if_revoked()?;
        match self.failed(|proc| members.rank_of(proc).is_some()) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Same as [`Comm::usable`] for an operation of `members` only, or of all if `None`.
    #[inline]
    pub(crate) fn usable_among(self, members: Option<&Group>) -> Result<(), Error> {
        match (self.comm.is_sound(), members) {
            (true, _) => Ok(()),
            (false, None) => self.error_of_all(),
            (false, Some(members)) => self.error_of_some(members),
        }
    }

    /// Called when a member has died or left MPI. Operations that need this member fail from now on;
    /// after a death, operations of all members fail too.
    pub(super) fn lost_member(self) {
        self.state.add(FailureState::FAILED);
        if let Some(error) = self.failed(|_| true) {
            self.break_parts(&error);
        }
        self.interrupt_receives();
    }

    /// From now on, operations on `part` fail when those on this communicator fail.
    /// Otherwise members of `part` would wait for members on which this communicator has failed:
    /// these do not start the operation on `part`.
    ///
    /// Parts are communicators on which a component runs steps and, while they are created, communicators of some members.
    pub(crate) fn takes_part(self, part: &Comm) {
        if !self.comm.engine().is_fault_tolerant() {
            return;
        }
        self.state.add_part(part);
        if let Err(error) = self.comm.usable()
            && let Some(error) = error.find::<FaultError>()
        {
            part.failures().breaks_with(error);
        }
    }

    /// Ends the effect of [`Failures::takes_part`]: `part` no longer fails with this communicator.
    pub(crate) fn lets_go(self, part: &Comm) {
        self.state.remove_part(part);
        let failure_state = part.failures().state;
        if failure_state.set_outer(None).is_some() && part.failures().deaths().is_empty() {
            failure_state.remove(FailureState::FAILED);
        }
    }

    /// Until the guard is dropped, operations on `part` (a communicator of some or all members)
    /// fail when this communicator fails. Used while an object is created on `part`:
    /// members on which this communicator has failed do not reach the later steps,
    /// and the other members would wait for them.
    pub fn while_making(self, part: &Comm) -> Making {
        self.takes_part(part);
        Making {
            whole: self.comm.clone(),
            part: part.clone(),
        }
    }

    fn break_parts(self, error: &FaultError) {
        // Internal operations within the local group are steps of operations of the intercommunicator.
        if let Some(within) = self.comm.within() {
            within.failures().breaks_with(error);
        }
        for part in self.state.parts() {
            part.failures().breaks_with(error);
        }
    }

    /// Fails this communicator because its parent has failed.
    fn breaks_with(self, error: &FaultError) {
        let failure_state = self.state;
        failure_state.add(FailureState::FAILED);
        failure_state.set_outer(Some(error.clone()));
        self.break_parts(error);
        // Operations in progress are polled again and check the communicator themselves.
        self.comm.engine().pml().requests().nudge();
    }

    /// Returns the error of a send to a rank, or of a receive from it after all its messages have arrived.
    #[cold]
    pub(crate) fn error_of_peer(self, rank: i32) -> Result<(), Error> {
        self.error_if_revoked()?;
        let proc = u32::try_from(rank)
            .ok()
            .and_then(|r| self.comm.peers().proc(r));
        match proc.and_then(|proc| self.gone(|gone| gone == proc)) {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }

    /// Returns the error of a receive from any source if an unacknowledged failure is of a possible sender.
    pub(crate) fn unacknowledged(self) -> Option<FaultError> {
        let acknowledged = self.state.acknowledged();
        let failures = self.deaths();
        let new: Vec<ProcId> = failures
            .iter()
            .skip(acknowledged)
            .map(|(proc, _)| *proc)
            .filter(|proc| self.comm.peers().rank_of(*proc).is_some())
            .collect();
        self.failed(|proc| new.contains(&proc))
    }

    /// Interrupts receives from any source if there are unacknowledged failures; ends them with an error if no process is left that could send.
    pub(crate) fn interrupt_receives(self) {
        let pml = self.comm.engine().pml();
        if let Some(error) = self.unacknowledged() {
            pml.termination()
                .interrupt_any_source(self.comm.context(), &error.pending().into());
        } else if let Some(error) = self.no_sender() {
            pml.termination()
                .end_any_source(self.comm.context(), &error.into());
        }
    }

    /// Returns the error of a receive from any source if all other processes have died or left MPI.
    pub(crate) fn no_sender(self) -> Option<FaultError> {
        let faults = self.comm.engine().faults()?;
        let me = self.comm.engine().me();
        let mut others = self
            .comm
            .peers()
            .iter()
            .filter(|proc| *proc != me)
            .peekable();
        others.peek()?;
        let all_gone = others.all(|proc| faults.deaths().is_dead(proc));
        all_gone.then(|| self.gone(|_| true)).flatten()
    }

    /// `MPIX_Comm_revoke`: every operation fails from now on: on this process immediately, on all others when they are notified.
    pub fn revoke(self) {
        if self.state.has(FailureState::REVOKED) {
            return;
        }
        self.state.add(FailureState::REVOKED);
        let error = FaultError::revoked(&self.comm.label());
        self.break_parts(&error);
        if let Some(faults) = self.comm.engine().faults() {
            let number = self.comm.context().number();
            faults.pass_revocation_on(number, &self.comm.all_procs(), self.comm.engine().me());
        }
        let error = Error::from(error);
        let pml = self.comm.engine().pml();
        pml.termination()
            .give_up_all(self.comm.context().number(), &error);
        // Internal operations in progress are polled again and check the communicator themselves.
        pml.requests().nudge();
    }

    /// The communicator is revoked when another member's notification arrives.
    pub(super) fn revoked_by_peer(self) {
        if !self.state.defers_revocation() {
            self.revoke();
        }
    }

    /// Defers revocations until [`Failures::is_created`]: this member agrees with the others on the components,
    /// and another member may have left the call that creates the communicator, and revoked it.
    /// A member that revokes has sent everything that the others await, so their agreement ends.
    /// With fault tolerance a member may have left it because of a death, so a revocation ends the agreement.
    pub(super) fn is_being_created(self) {
        if !self.comm.engine().is_fault_tolerant() {
            self.state.defer_revocation();
        }
    }

    /// Revokes the communicator if another member has done so since [`Failures::is_being_created`].
    pub(super) fn is_created(self) {
        if self.state.take_deferred() {
            self.revoke();
        }
    }

    /// `MPIX_Comm_is_revoked`: returns true if this process has revoked the communicator or been notified of it.
    pub fn is_revoked(self) -> bool {
        self.state.has(FailureState::REVOKED)
    }

    /// `MPIX_Comm_get_failed`: returns the members known to be dead, of both groups of an intercommunicator.
    /// Later calls only append members to the list.
    pub fn get_failed(self) -> Group {
        Group::from_procs(self.deaths().into_iter().map(|(proc, _)| proc).collect())
    }

    /// `MPIX_Comm_ack_failed`: acknowledges the first `how_many` failures. Returns the number of all acknowledged failures.
    pub fn acknowledge(self, how_many: usize) -> usize {
        let known = self.deaths().len();
        let acknowledged = self.state.acknowledge(how_many.min(known));
        self.comm
            .engine()
            .pml()
            .termination()
            .resume_any_source(self.comm.context());
        self.interrupt_receives();
        acknowledged
    }

    /// Returns the members whose failure has been acknowledged.
    pub fn acknowledged(self) -> Group {
        let first = self.state.acknowledged();
        let failures = self.deaths().into_iter().take(first);
        Group::from_procs(failures.map(|(proc, _)| proc).collect())
    }
}

//! Failure notification between jobs: the death of a process is announced to all processes that share a communicator with it,
//! including those that have no connection to it.
//!
//! * A transport reports a death only to the processes that had a connection to the dead one.
//!   Each of them notifies the members of the communicators that it shares with the dead process, in a circulant graph as for a revocation.
//! * The processes of a fault-tolerant job do the same for a dead process of their own job, which the launcher reports to them.
//! * A job without fault tolerance ends as a whole, so all its processes are lost with the first.
//!   A process of a fault-tolerant job has the entry [`SURVIVES`] on its card.

use super::failures::{Faults, circulant};
use crate::engine::{Engine, Peers};
use mpi_transport::btl::{Modex, ProcId};
use std::collections::BTreeSet;

/// The key of the card entry of a process whose job is fault tolerant.
const SURVIVES: &str = "ft";

impl Peers<'_> {
    /// Publishes on this process's card that its job is fault tolerant.
    pub(super) fn announce_survival(self) {
        // Without the entry, as on a full card, other jobs consider the whole job lost with the first death.
        let _ = self.engine().universe().put(SURVIVES, &[1]);
    }

    /// Returns true if the job of a process of another job is known from its card to be fault tolerant.
    pub(crate) fn other_survives_deaths(self, proc: ProcId) -> bool {
        self.engine().universe().get(proc, SURVIVES).is_ok()
    }
}

impl Faults {
    /// Announces the loss of a process to the members of the communicators that it shares with other jobs, and loses the processes that end with it.
    pub(super) fn notify_other_jobs(&self, gone: ProcId) {
        let Some(engine) = self.engine() else { return };
        if !self.notified_abroad.borrow_mut().insert(gone) {
            return;
        }
        let mut recipients = BTreeSet::new();
        for comm in self.comms_of(gone) {
            let members = comm.members_of_several_jobs();
            let place = members.iter().position(|proc| *proc == engine.me());
            let places = place.map(|place| circulant(place as u32, members.len() as u32));
            recipients.extend(places.into_iter().flatten().map(|at| members[at as usize]));
        }
        recipients.remove(&gone);
        self.announce_death(recipients, engine.peers().name_of(gone));
        self.lose_job_of(gone, &engine);
    }

    /// Loses all processes of a job that ends as a whole, after one of its processes was lost.
    fn lose_job_of(&self, gone: ProcId, engine: &Engine) {
        let universe = engine.universe();
        if !universe.is_foreign(gone) || engine.peers().other_survives_deaths(gone) {
            return;
        }
        let fellows = universe.fellows(gone);
        // No notifications for these: the recipients draw the same conclusion from the first one.
        let is_new = |proc: &ProcId| self.notified_abroad.borrow_mut().insert(*proc);
        let fellows: Vec<ProcId> = fellows.into_iter().filter(is_new).collect();
        for fellow in fellows {
            let (ended, first) = (
                engine.peers().label_of(fellow),
                engine.peers().label_of(gone),
            );
            engine
                .peers()
                .lose(fellow, &format!("{ended} has ended with {first}"));
        }
    }
}

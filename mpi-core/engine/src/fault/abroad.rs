//! Failure notification between jobs: a process's death is announced to all processes that have a communicator with it,
//! even if they have no connection to it.
//!
//! * A transport reports a death only to processes that had a connection to the dead process.
//!   Each of these notifies the members of its communicators with the dead process, in a circulant graph as for a revocation.
//! * The processes of a fault-tolerant job do the same for a dead process of their own job, whose death the launcher reports to them.
//! * Two jobs complete their connection at different moments,
//!   so a process may be notified of a death before it has created the communicator that contains the dead process.
//!   Each member that knows of the death then announces it again, to the new communicator's members.
//! * A job without fault tolerance ends as a whole,
//!   so if one of its processes is lost, all are.
//!   The other processes are declared lost a few polls later (`last_polls`).
//!   A process of a fault-tolerant job has the entry [`SURVIVES`] on its card.

use super::failures::{Affected, Faults, circulant, was_early};
use super::last_polls::{Ended, Reason};
use crate::engine::{Engine, Peers};
use mpi_transport::btl::{Modex, ProcId};
use mpi_transport::universe::Name;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The key of the card entry that says that a process's job is fault tolerant.
const SURVIVES: &str = "ft";

impl Peers<'_> {
    /// Adds the entry [`SURVIVES`] to this process's card.
    pub(super) fn announce_survival(self) {
        // Without the entry (the card may be full),
        // other jobs consider the whole job lost after the first death.
        let _ = self.engine().universe().put(SURVIVES, &[1]);
    }

    /// Returns true if the card of a process of another job says that its job is fault tolerant.
    pub(crate) fn other_survives_deaths(self, proc: ProcId) -> bool {
        self.engine().universe().get(proc, SURVIVES).is_ok()
    }
}

#[cfg(feature = "testing")]
impl Peers<'_> {
    /// Announces the death of a process of another job while this process can still communicate with it.
    pub fn announce_death_of(self, gone: ProcId) {
        if let Some(faults) = self.engine().faults() {
            faults.notify_other_jobs(gone);
        }
    }
}

impl Faults {
    /// Announces the loss of a process to the members of its communicators of several jobs.
    /// Also records the loss of the processes whose job ends as a whole.
    pub(super) fn notify_other_jobs(&self, gone: ProcId) {
        let Some(engine) = self.engine() else { return };
        let name = engine.peers().name_of(gone);
        if !self.notified_abroad.borrow_mut().insert(name) {
            return;
        }
        let mut recipients = BTreeSet::new();
        for comm in self.comms_of(gone) {
            recipients.extend(neighbours(&engine, &comm.members_of_several_jobs()));
        }
        recipients.remove(&gone);
        self.announce_death(recipients, name);
        self.lose_job_of(gone, &engine);
    }

    /// Applies earlier failures to a new communicator of several jobs: announces its lost members to the other members,
    /// and records the loss of members whose jobs have ended, or whose deaths other processes have announced.
    pub(crate) fn catch_up(&self, comm: Rc<dyn Affected>) {
        let Some(engine) = self.engine() else { return };
        let members = comm.members_of_several_jobs();
        let foreign = members
            .iter()
            .filter(|proc| engine.universe().is_foreign(**proc));
        for &proc in foreign {
            let name = engine.peers().name_of(proc);
            if self.notified_abroad.borrow().contains(&name) {
                let others = neighbours(&engine, &members).filter(|to| *to != proc);
                self.announce_death(others, name);
            } else if was_early(&self.early_deaths, name) {
                let label = engine.peers().label_of(proc);
                engine
                    .peers()
                    .lose(proc, &format!("another process has found {label} dead"));
            } else if self.lost_jobs.borrow().contains(&Name(name).job()) {
                self.lose_fellow(proc, &engine, "one of its processes");
            }
        }
    }

    /// If a lost process's job ends as a whole, records the loss of all processes of that job.
    fn lose_job_of(&self, gone: ProcId, engine: &Engine) {
        let universe = engine.universe();
        if !universe.is_foreign(gone) || engine.peers().other_survives_deaths(gone) {
            return;
        }
        let job = Name(engine.peers().name_of(gone)).job();
        self.lost_jobs.borrow_mut().insert(job);
        let fellows = universe.fellows(gone).into_iter();
        let names = fellows.map(|proc| engine.peers().name_of(proc)).collect();
        let reason = Reason::EndedWith(engine.peers().label_of(gone));
        self.declare_lost_later(engine, Ended { names, reason });
    }

    /// Records the loss of a process whose job has ended.
    /// The loss is not announced: other processes conclude it from the first loss.
    pub(super) fn lose_fellow(&self, fellow: ProcId, engine: &Engine, first: &str) {
        let name = engine.peers().name_of(fellow);
        if self.notified_abroad.borrow_mut().insert(name) {
            let ended = engine.peers().label_of(fellow);
            engine
                .peers()
                .lose(fellow, &format!("{ended} has ended with {first}"));
        }
    }
}

/// Returns this process's neighbours in a circulant graph of `members`; none if this process is not a member.
fn neighbours(engine: &Engine, members: &[ProcId]) -> impl Iterator<Item = ProcId> {
    let place = members.iter().position(|proc| *proc == engine.me());
    let places = place.map(|place| circulant(place as u32, members.len() as u32));
    let places = places.into_iter().flatten();
    places.map(|at| members[at as usize])
}

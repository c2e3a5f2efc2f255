//! News of deaths between jobs: a process hears of the end of one that it has a communicator in common with, though the two have never spoken.
//!
//! Only processes that are connected see a connection end. A process that has lost one of another job tells the members of the communicators
//! that both are in, in a circulant graph as a revocation is told, and so does a process of a job that survives deaths when one of its own job dies.
//! A job that does not survive deaths ends as a whole, so all its processes are lost with the first.
//! Those that survive have an entry of their own on their card.

use super::failures::{Faults, circulant};
use crate::engine::Engine;
use mpi_transport::btl::{Modex, ProcId};
use std::collections::BTreeSet;

/// The key of the entry of a process whose job survives deaths.
const SURVIVES: &str = "ft";

impl Engine {
    /// Has the card of this process say that its job survives deaths.
    pub(super) fn announce_survival(&self) {
        // A card that is full says less, and other jobs then hold the whole job for lost with the first death.
        let _ = self.universe().put(SURVIVES, &[1]);
    }

    /// Whether the job of a process of another job survives deaths, as far as its card is known.
    pub(crate) fn other_survives_deaths(&self, proc: ProcId) -> bool {
        self.universe().get(proc, SURVIVES).is_ok()
    }
}

impl Faults {
    /// A process is lost: tells the members of the communicators that it shares with other jobs, and loses what has ended with it.
    pub(super) fn tell_abroad(&self, gone: ProcId) {
        let Some(engine) = self.engine() else { return };
        if !self.told_abroad.borrow_mut().insert(gone) {
            return;
        }
        let mut hearers = BTreeSet::new();
        for comm in self.comms_of(gone) {
            let members = comm.members_of_several_jobs();
            let place = members.iter().position(|proc| *proc == engine.me());
            let places = place.map(|place| circulant(place as u32, members.len() as u32));
            hearers.extend(places.into_iter().flatten().map(|at| members[at as usize]));
        }
        hearers.remove(&gone);
        self.say_dead(hearers, engine.name_of(gone));
        self.lose_job_of(gone, &engine);
    }

    /// Loses the processes of a job that ends as a whole, with one of which it has ended.
    fn lose_job_of(&self, gone: ProcId, engine: &Engine) {
        let universe = engine.universe();
        if !universe.is_foreign(gone) || engine.other_survives_deaths(gone) {
            return;
        }
        let fellows = universe.fellows(gone);
        // Their hearers come to the same conclusion.
        let is_new = |proc: &ProcId| self.told_abroad.borrow_mut().insert(*proc);
        let fellows: Vec<ProcId> = fellows.into_iter().filter(is_new).collect();
        for fellow in fellows {
            let (ended, first) = (engine.label_of(fellow), engine.label_of(gone));
            engine.lose(fellow, &format!("{ended} has ended with {first}"));
        }
    }
}

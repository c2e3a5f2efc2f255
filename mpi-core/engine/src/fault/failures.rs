//! Failure detection: the failures that one process knows, their sources, and their announcement to other processes.

use super::agreement::Agreements;
use super::deaths::Deaths;
use super::last_polls::{Ended, LastPolls, Reason};
use super::outbox::Outbox;
use super::wire::{AGREE, DEATH, REVOKE};
use crate::engine::{Engine, Peers, WeakEngine};
use crate::group::Group;
use mpi_base::node::RetiredBlocks;
use mpi_transport::btl::{Am, AmHandler, Family, Header, ProcId, Sink};
use mpi_transport::universe::{Name, job_number};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::rc::{Rc, Weak};

/// Maximum number of stored revocations of communicators that this process does not know yet,
/// and of stored deaths of processes that it does not know yet.
const MOST_EARLY: usize = 4096;

/// Maximum number of polls for messages that a process has sent before it died.
const LAST_LOOKS: usize = 1000;

/// The functions of a communicator that failure handling calls.
pub(crate) trait Affected {
    /// Returns true if a process is a member; for an intercommunicator, of either side.
    fn has_member(&self, proc: ProcId) -> bool;

    /// Called when a member has died or left MPI.
    fn loses_member(self: Rc<Self>);

    /// Called when another member has revoked the communicator.
    fn is_revoked_by_peer(self: Rc<Self>);

    /// If the members are in several jobs, returns those of both sides in the same order on all members; otherwise an empty list.
    fn members_of_several_jobs(self: Rc<Self>) -> Vec<ProcId>;
}

/// The failures that a process knows.
pub struct Faults {
    engine: WeakEngine,
    /// True if the job continues after the death of a process.
    tolerant: bool,
    deaths: Rc<Deaths>,
    outbox: Rc<Outbox>,
    /// The names of the processes whose deaths this process has announced to other jobs (names, since process numbers are reused).
    pub(super) notified_abroad: RefCell<HashSet<u64>>,
    /// The numbers of other jobs that have ended as a whole.
    pub(super) lost_jobs: RefCell<HashSet<u64>>,
    /// Processes that have ended but are not declared lost yet.
    last_polls: LastPolls,
    /// Names of processes whose deaths were announced before this process knew them.
    pub(super) early_deaths: RefCell<VecDeque<u64>>,
    /// The existing communicators of this process, by context id.
    comms: RefCell<BTreeMap<u64, Weak<dyn Affected>>>,
    /// Context ids of communicators that were revoked before this process created them.
    early: RefCell<VecDeque<u64>>,
    agreements: Agreements,
    /// The agreement memory of freed communicators, kept until no member uses it any more.
    retired: Rc<RetiredBlocks>,
}

impl Faults {
    fn new(engine: WeakEngine, tolerant: bool) -> Faults {
        let deaths = Rc::new(Deaths::default());
        let outbox = Rc::new(Outbox::new(engine.clone(), deaths.clone()));
        Faults {
            engine,
            tolerant,
            agreements: Agreements::new(deaths.clone(), outbox.clone()),
            deaths,
            outbox,
            notified_abroad: RefCell::default(),
            lost_jobs: RefCell::default(),
            last_polls: LastPolls::default(),
            early_deaths: RefCell::default(),
            comms: RefCell::default(),
            early: RefCell::default(),
            retired: Rc::default(),
        }
    }

    /// Returns true if the job continues after the death of a process.
    pub fn is_tolerant(&self) -> bool {
        self.tolerant
    }

    pub(crate) fn agreements(&self) -> &Agreements {
        &self.agreements
    }

    pub(crate) fn retired(&self) -> &Rc<RetiredBlocks> {
        &self.retired
    }

    /// Returns the processes known to have died or left MPI.
    pub(crate) fn deaths(&self) -> &Rc<Deaths> {
        &self.deaths
    }

    /// Registers a new communicator. Returns true if it has already been revoked.
    pub(crate) fn welcome(&self, number: u64, comm: Weak<dyn Affected>) -> bool {
        self.comms.borrow_mut().insert(number, comm);
        was_early(&self.early, number)
    }

    /// Removes a freed communicator.
    pub(crate) fn forget(&self, number: u64) {
        self.comms.borrow_mut().remove(&number);
        self.agreements.retire(number);
    }

    /// Returns true if the transports have accepted all queued messages.
    pub(crate) fn has_said_all(&self) -> bool {
        self.outbox.is_empty()
    }

    /// Records a death; `known` is true if the job's other processes are notified by another process.
    fn take_death(&self, proc: ProcId, why: &str, known: bool) {
        let Some(engine) = self.engine.upgrade().filter(|_| self.tolerant) else {
            return;
        };
        if proc == engine.me() || self.deaths.has_failed(proc) {
            return;
        }
        self.deaths.add_death(proc, why);
        self.tell_communicators(proc);
        self.agreements.on_death();
        if !known {
            self.pass_on(&engine, proc);
        }
        engine.pml().requests().nudge();
    }

    /// Records that a process has left MPI normally: it will send no more messages, and agreements do not wait for it.
    fn take_leave(&self, proc: ProcId, why: &str) {
        let Some(engine) = self.engine.upgrade().filter(|_| self.tolerant) else {
            return;
        };
        if proc == engine.me() || !self.deaths.add_leave(proc, why) {
            return;
        }
        self.tell_communicators(proc);
        self.agreements.on_death();
        engine.pml().requests().nudge();
    }

    fn tell_communicators(&self, gone: ProcId) {
        for comm in self.comms_of(gone) {
            comm.loses_member();
        }
    }

    /// Returns the existing communicators of which a process is a member.
    pub(super) fn comms_of(&self, member: ProcId) -> Vec<Rc<dyn Affected>> {
        let comms = self.comms.borrow();
        let living = comms.values().filter_map(Weak::upgrade);
        let mut all: Vec<Rc<dyn Affected>> = living.collect();
        drop(comms);
        all.retain(|comm| comm.has_member(member));
        all
    }

    pub(super) fn engine(&self) -> Option<Engine> {
        self.engine.upgrade()
    }

    /// Queues the announcement of a death to these processes.
    pub(super) fn announce_death(&self, to: impl IntoIterator<Item = ProcId>, name: u64) {
        for proc in to {
            self.outbox.say(proc, DEATH, [name, 0], Vec::new());
        }
    }

    /// Announces a death to this process's neighbours in a circulant graph of the job.
    fn pass_on(&self, engine: &Engine, dead: ProcId) {
        self.announce_death(
            circulant(engine.me(), engine.size()),
            engine.peers().name_of(dead),
        );
    }

    /// Announces a revocation to this process's neighbours in a circulant graph of the communicator's members.
    pub(crate) fn pass_revocation_on(&self, number: u64, members: &[ProcId], me: ProcId) {
        let Some(place) = members.iter().position(|proc| *proc == me) else {
            return;
        };
        for place in circulant(place as u32, members.len() as u32) {
            let to = members[place as usize];
            self.outbox.say(to, REVOKE, [number, 0], Vec::new());
        }
    }

    fn on_revoke(&self, number: u64) {
        let known = self.comms.borrow().get(&number).and_then(Weak::upgrade);
        match known {
            Some(comm) => comm.is_revoked_by_peer(),
            None => remember(&self.early, number),
        }
    }

    fn on_death(&self, from: ProcId, name: u64) {
        let Some(engine) = self.engine.upgrade() else {
            return;
        };
        let Some(proc) = engine.universe().proc(Name(name)) else {
            // While a communicator is created, its members may know processes that this one does not know yet.
            return remember(&self.early_deaths, name);
        };
        // Without fault tolerance, announcements about processes of this process's own job are ignored.
        if proc != engine.me() && (self.tolerant || engine.universe().is_foreign(proc)) {
            let names = vec![name];
            let reason = Reason::AnnouncedBy(engine.peers().label_of(from));
            self.declare_lost_later(&engine, Ended { names, reason });
        }
    }

    /// Declares ended processes lost, but only after some more polls for their messages.
    pub(super) fn declare_lost_later(&self, engine: &Engine, ended: Ended) {
        self.last_polls.add(ended);
        engine.pml().bml().handlers().ask_for_turns();
    }

    /// Counts a poll for all processes that have ended, and declares those lost that have had their last poll.
    /// Returns true if any have been declared lost.
    fn poll_ended(&self) -> bool {
        if self.last_polls.is_empty() {
            return false;
        }
        let Some(engine) = self.engine() else {
            return false;
        };
        let ended = self.last_polls.count_poll();
        // A progress call does not poll all sources; `pending` makes the next call poll those that have data.
        engine.pml().bml().pending();
        for Ended { names, reason } in &ended {
            engine.pml().bml().handlers().end_turns();
            for proc in names
                .iter()
                .filter_map(|name| engine.universe().proc(Name(*name)))
            {
                match reason {
                    Reason::AnnouncedBy(teller) => engine
                        .peers()
                        .lose(proc, &format!("{teller} has found it dead")),
                    Reason::EndedWith(first) => self.lose_fellow(proc, &engine, first),
                }
            }
        }
        !ended.is_empty()
    }
}

/// Stores the context id of a communicator, or the name of a process, that this process does not know yet; above [`MOST_EARLY`] the oldest entry is removed.
fn remember(early: &RefCell<VecDeque<u64>>, number: u64) {
    let mut early = early.borrow_mut();
    if !early.contains(&number) {
        early.push_back(number);
    }
    if early.len() > MOST_EARLY {
        early.pop_front();
    }
}

/// Removes an id or name that [`remember`] has stored. Returns true if it was stored.
pub(super) fn was_early(early: &RefCell<VecDeque<u64>>, number: u64) -> bool {
    let mut early = early.borrow_mut();
    let at = early.iter().position(|known| *known == number);
    at.is_some_and(|at| early.remove(at).is_some())
}

/// Returns the neighbours of place `me` in a circulant graph: (me ± 2^k) mod size for all 2^k <= size / 2.
pub(super) fn circulant(me: u32, size: u32) -> Vec<u32> {
    let distances = (0..32).map(|bit| 1_u64 << bit);
    let (me, size) = (u64::from(me), u64::from(size));
    let near = distances.take_while(|distance| *distance <= size / 2);
    let mut places: Vec<u32> = near
        .flat_map(|distance| [(me + distance) % size, (me + size - distance) % size])
        .map(|place| place as u32)
        .collect();
    places.sort_unstable();
    places.dedup();
    places
}

impl Sink for Faults {
    fn deliver(&self, from: ProcId, am: Am, header: Header, payload: &[u8]) {
        match am {
            AGREE => self.agreements.on_message(from, header, payload),
            REVOKE => self.on_revoke(header[0]),
            DEATH => self.on_death(from, header[0]),
            // No other message can arrive: a process with another library version already fails when it connects.
            _ => {}
        }
        if let Some(engine) = self.engine.upgrade() {
            engine.pml().requests().nudge();
        }
    }

    fn lost(&self, peer: ProcId, why: &str) {
        // If the process has left MPI, the end of its connection is not a death.
        if !self.deaths.is_dead(peer) {
            self.take_death(peer, why, false);
        }
        // In a fault-tolerant job `deaths` also contains the processes that have left MPI normally;
        // in a job without fault tolerance it is empty.
        let has_left = self.deaths.is_dead(peer) && !self.deaths.has_failed(peer);
        let is_foreign = |engine: Engine| engine.universe().is_foreign(peer);
        let concerns_others =
            self.deaths.has_failed(peer) || self.engine.upgrade().is_some_and(is_foreign);
        if concerns_others && !has_left {
            self.notify_other_jobs(peer);
        }
    }
}

impl AmHandler for Faults {
    fn turn(&self) -> bool {
        // The operator `|`, unlike `||`, always calls both functions.
        self.outbox.turn() | self.poll_ended()
    }

    fn pending(&self) -> bool {
        !self.outbox.is_empty() || !self.last_polls.is_empty()
    }
}

impl Engine {
    /// Returns the failures that this process knows; `None` before it has started.
    pub fn faults(&self) -> Option<&Faults> {
        self.known_extension()
    }

    /// Returns true if the job continues after the death of a process.
    pub fn is_fault_tolerant(&self) -> bool {
        self.faults().is_some_and(|faults| faults.is_tolerant())
    }
}

impl Peers<'_> {
    /// Starts failure detection; called before `MPI_COMM_SELF` is created.
    pub(crate) fn hear_of_failures(self) {
        let tolerant = self.engine().params().get(&super::ENABLE).unwrap_or(false);
        if self.engine().faults().is_some() {
            return;
        }
        let faults = self
            .engine()
            .extension(|| Faults::new(self.engine().downgrade(), tolerant));
        let handlers = self.engine().pml().bml().handlers();
        handlers.register(Family::Fault, faults);
        if tolerant {
            self.announce_survival();
            // From now on, every receive checks whether its source is lost, and can be interrupted.
            self.engine().pml().termination().survive_losses();
        }
    }

    /// Returns the members of a group that are known to be dead, in the order in which this process was notified.
    pub fn failed_among(self, group: &Group) -> Group {
        let faults = self.engine().faults();
        let dead = faults.map(|faults| {
            faults
                .deaths
                .dead_among(|proc| group.rank_of(proc).is_some())
        });
        let procs = dead.into_iter().flatten().map(|(proc, _)| proc);
        Group::from_procs(procs.collect())
    }

    /// Handles the launcher's report, which all processes receive, that a process has died or left MPI.
    pub fn process_gone(self, job: &str, rank: u32, left: bool) {
        let name = Name::new(job_number(job), rank);
        let Some(proc) = self.engine().universe().proc(name) else {
            return;
        };
        let Some(faults) = self.engine().faults() else {
            return;
        };
        if proc == self.engine().me() || faults.deaths.is_dead(proc) {
            return;
        }
        // Messages that the process sent before its end are still delivered.
        // A progress call does not poll all sources, but `pending` does.
        for _ in 0..LAST_LOOKS {
            if !self.engine().progress() && !self.engine().pml().bml().pending() {
                break;
            }
        }
        let how = if left { "has left MPI" } else { "has died" };
        let why = format!("{} {how}", self.label_of(proc));
        match left {
            true => faults.take_leave(proc, &why),
            false => faults.take_death(proc, &why, true),
        }
        self.lose(proc, &why);
    }

    /// Records that a process is dead, or has left without contributing, as an agreement has found.
    pub(crate) fn found_dead(self, proc: ProcId) {
        let Some(faults) = self.engine().faults() else {
            return;
        };
        if proc != self.engine().me() && !faults.deaths.has_failed(proc) {
            let why = format!("{} has died", self.label_of(proc));
            faults.take_death(proc, &why, true);
            self.lose(proc, &why);
        }
    }

    /// Marks a process as lost: it cannot be reached any more.
    pub(super) fn lose(self, proc: ProcId, why: &str) {
        let pml = self.engine().pml();
        pml.lost(proc, why);
        pml.bml().handlers().lost(proc, why);
        pml.bml().abandon(proc);
    }

    /// Returns a description of a process for messages to the user.
    pub(super) fn label_of(self, proc: ProcId) -> String {
        match (
            self.engine().universe().is_foreign(proc),
            self.engine().universe().name(proc),
        ) {
            (true, Some(name)) => format!("rank {} of another job", name.rank()),
            _ => format!("rank {proc} of the job"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::circulant;
    use std::collections::BTreeSet;

    /// Returns the places that get an announcement from place 0 if the places in `dead` do not forward it.
    fn reached(size: u32, dead: &[u32]) -> BTreeSet<u32> {
        let mut reached = BTreeSet::from([0]);
        let mut open = vec![0];
        while let Some(place) = open.pop() {
            for next in circulant(place, size) {
                if !dead.contains(&next) && reached.insert(next) {
                    open.push(next);
                }
            }
        }
        reached
    }

    #[test]
    fn all_ranks_are_notified_of_a_revocation_although_some_die() {
        for size in 1..=40 {
            assert_eq!(reached(size, &[]).len() as u32, size);
        }
        for size in [8, 16, 60] {
            for a in 1..size {
                for b in 1..size {
                    let dead = BTreeSet::from([a, b]);
                    let list: Vec<u32> = dead.iter().copied().collect();
                    assert_eq!(reached(size, &list).len(), size as usize - dead.len());
                }
            }
        }
    }

    #[test]
    fn each_rank_notifies_a_logarithm_of_the_others() {
        assert_eq!(circulant(0, 1), [] as [u32; 0]);
        assert_eq!(circulant(0, 2), [1]);
        assert_eq!(circulant(0, 60).len(), 10);
    }
}

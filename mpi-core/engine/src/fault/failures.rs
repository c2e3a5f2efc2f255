//! What one process knows of failures, and the messages by which it learns and tells.
//!
//! A handler only notes; what it has to say waits in a box for its turn, since nothing is sent from inside a delivery.

use super::agreement::Agreements;
use super::comm::Trouble;
use super::wire::{AGREE, DEATH, REVOKE};
use crate::comm::{Comm, WeakComm};
use crate::engine::{Engine, WeakEngine};
use crate::group::Group;
use mpi_base::node::RetiredBlocks;
use mpi_transport::bml::Route;
use mpi_transport::btl::{Am, AmHandler, Family, Header, Payload, ProcId, SendError, Sink};
use mpi_transport::universe::{Name, job_number};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

/// Revocations of communicators that this process has not made yet are remembered, so many at most.
const MOST_EARLY: usize = 4096;

/// How often this process looks for messages of a process before it is held for dead.
const LAST_LOOKS: usize = 1000;

/// A message that waits for its turn.
type Letter = (ProcId, Am, Header, Vec<u8>);

/// What a process knows of failures.
pub struct Faults {
    engine: WeakEngine,
    /// Whether the job goes on when a process dies.
    tolerant: bool,
    deaths: RefCell<Deaths>,
    /// The living communicators of this process, by number.
    comms: RefCell<HashMap<u64, WeakComm>>,
    /// Numbers of communicators that were revoked before this process made them.
    early: RefCell<VecDeque<u64>>,
    agreements: Agreements,
    /// The memory of agreements on communicators that are gone.
    retired: Rc<RetiredBlocks>,
    outbox: RefCell<VecDeque<Letter>>,
}

/// The processes with which nothing can be done any more, in the order in which this process learnt of them.
#[derive(Default)]
struct Deaths {
    order: Vec<(ProcId, Rc<str>)>,
    /// Those that have left MPI in order. What they began with this process they have ended, so they are no failures
    /// until an operation needs something of them.
    left: Vec<(ProcId, Rc<str>)>,
    all: HashSet<ProcId>,
}

impl Faults {
    pub(crate) fn new(engine: WeakEngine, tolerant: bool) -> Faults {
        Faults {
            engine,
            tolerant,
            deaths: RefCell::default(),
            comms: RefCell::default(),
            early: RefCell::default(),
            agreements: Agreements::default(),
            retired: Rc::default(),
            outbox: RefCell::default(),
        }
    }

    /// Whether the job goes on when a process dies.
    pub fn is_tolerant(&self) -> bool {
        self.tolerant
    }

    pub(super) fn agreements(&self) -> &Agreements {
        &self.agreements
    }

    pub(super) fn retired(&self) -> &Rc<RetiredBlocks> {
        &self.retired
    }

    /// Whether a process has died, or has left MPI.
    pub(super) fn is_dead(&self, proc: ProcId) -> bool {
        self.deaths.borrow().all.contains(&proc)
    }

    fn has_failed(&self, proc: ProcId) -> bool {
        let deaths = self.deaths.borrow();
        deaths.order.iter().any(|(dead, _)| *dead == proc)
    }

    /// The dead among these, in the order in which this process learnt of them, and what is known of each.
    pub(super) fn dead_among(&self, is_member: impl Fn(ProcId) -> bool) -> Vec<(ProcId, Rc<str>)> {
        let deaths = self.deaths.borrow();
        let members = deaths.order.iter().filter(|(proc, _)| is_member(*proc));
        members.cloned().collect()
    }

    /// Those among these that have left MPI in order.
    pub(super) fn left_among(&self, is_member: impl Fn(ProcId) -> bool) -> Vec<(ProcId, Rc<str>)> {
        let deaths = self.deaths.borrow();
        let members = deaths.left.iter().filter(|(proc, _)| is_member(*proc));
        members.cloned().collect()
    }

    /// A communicator begins.
    pub(crate) fn welcome(&self, comm: &Comm) {
        let number = comm.context().number();
        self.comms.borrow_mut().insert(number, comm.downgrade());
        let mut early = self.early.borrow_mut();
        if let Some(at) = early.iter().position(|known| *known == number) {
            early.remove(at);
            comm.trouble().add(Trouble::REVOKED);
        }
        if !self.deaths.borrow().all.is_empty() && comm.has_dead_member(self) {
            comm.trouble().add(Trouble::FAILED);
        }
    }

    /// A communicator has gone.
    pub(crate) fn forget(&self, number: u64) {
        self.comms.borrow_mut().remove(&number);
        self.agreements.retire(number);
    }

    pub(super) fn comm(&self, number: u64) -> Option<Comm> {
        self.comms.borrow().get(&number).and_then(WeakComm::upgrade)
    }

    fn all_comms(&self) -> Vec<Comm> {
        let comms = self.comms.borrow();
        comms.values().filter_map(WeakComm::upgrade).collect()
    }

    /// Says something at the next turn.
    pub(super) fn say(&self, to: ProcId, am: Am, header: Header, payload: Vec<u8>) {
        let Some(engine) = self.engine.upgrade() else {
            return;
        };
        if to == engine.me() || self.is_dead(to) {
            return;
        }
        self.outbox
            .borrow_mut()
            .push_back((to, am, header, payload));
        engine.pml().bml().handlers().ask_for_turns();
    }

    /// Whether everything that was said is with the transports.
    pub(super) fn has_said_all(&self) -> bool {
        self.outbox.borrow().is_empty()
    }

    /// A process is dead; `known` if the others learn of it without this process.
    fn take_death(&self, proc: ProcId, why: &str, known: bool) {
        let Some(engine) = self.engine.upgrade().filter(|_| self.tolerant) else {
            return;
        };
        if proc == engine.me() || self.has_failed(proc) {
            return;
        }
        let mut deaths = self.deaths.borrow_mut();
        deaths.all.insert(proc);
        deaths.left.retain(|(left, _)| *left != proc);
        deaths.order.push((proc, why.into()));
        drop(deaths);
        self.tell_communicators(proc);
        self.agreements.on_death(self);
        if !known {
            self.pass_on(&engine, proc);
        }
        engine.pml().requests().nudge();
    }

    /// A process has left MPI in order; it says nothing more, and agreements do not wait for it.
    fn take_leave(&self, proc: ProcId, why: &str) {
        let Some(engine) = self.engine.upgrade().filter(|_| self.tolerant) else {
            return;
        };
        let mut deaths = self.deaths.borrow_mut();
        if proc == engine.me() || !deaths.all.insert(proc) {
            return;
        }
        deaths.left.push((proc, why.into()));
        drop(deaths);
        self.tell_communicators(proc);
        self.agreements.on_death(self);
        engine.pml().requests().nudge();
    }

    fn tell_communicators(&self, gone: ProcId) {
        for comm in self.all_comms() {
            if comm.has_member(gone) {
                comm.has_lost_member();
            }
        }
    }

    /// Tells some of the job's other processes of a death.
    fn pass_on(&self, engine: &Engine, dead: ProcId) {
        let name = engine.name_of(dead);
        for place in circulant(engine.me(), engine.size()) {
            self.say(place, DEATH, [name, 0], Vec::new());
        }
    }

    /// Tells some members of a communicator that it is revoked.
    pub(super) fn pass_revocation_on(&self, comm: &Comm) {
        let members = comm.everybody();
        let me = comm.engine().me();
        let Some(place) = members.iter().position(|proc| *proc == me) else {
            return;
        };
        for place in circulant(place as u32, members.len() as u32) {
            let to = members[place as usize];
            self.say(to, REVOKE, [comm.context().number(), 0], Vec::new());
        }
    }

    fn on_revoke(&self, number: u64) {
        match self.comm(number) {
            Some(comm) => comm.revoke(),
            None => {
                let mut early = self.early.borrow_mut();
                if !early.contains(&number) {
                    early.push_back(number);
                }
                if early.len() > MOST_EARLY {
                    early.pop_front();
                }
            }
        }
    }
}

/// The places that one tells in a circulant graph: those whose distance is a power of two, on both sides.
fn circulant(me: u32, size: u32) -> Vec<u32> {
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
            AGREE => self.agreements.on_message(self, from, header, payload),
            REVOKE => self.on_revoke(header[0]),
            DEATH => {
                // Where deaths are not survived no peer's word makes another peer lost.
                if let Some(engine) = self.engine.upgrade().filter(|_| self.tolerant)
                    && let Some(proc) = engine.universe().proc(Name(header[0]))
                    && proc != engine.me()
                {
                    let teller = engine.label_of(from);
                    engine.lose(proc, &format!("{teller} has found it dead"));
                }
            }
            // Another version of this library would not have got past the first message of the connection.
            _ => {}
        }
        if let Some(engine) = self.engine.upgrade() {
            engine.pml().requests().nudge();
        }
    }

    fn lost(&self, peer: ProcId, why: &str) {
        // That the connection to a process that has left ends is no death.
        if !self.is_dead(peer) {
            self.take_death(peer, why, false);
        }
    }
}

impl AmHandler for Faults {
    fn turn(&self) -> bool {
        let Some(engine) = self.engine.upgrade() else {
            return false;
        };
        let mut moved = false;
        let bml = engine.pml().bml();
        // Letters to a peer that has no room wait, those to others go by.
        let mut waiting: VecDeque<Letter> = VecDeque::new();
        let mut full: Vec<ProcId> = Vec::new();
        loop {
            let next = self.outbox.borrow_mut().pop_front();
            let Some((to, am, header, payload)) = next else {
                break;
            };
            if full.contains(&to) {
                waiting.push_back((to, am, header, payload));
                continue;
            }
            let sent = match bml.route(to) {
                Route::Via(btl, endpoint) if !self.is_dead(to) => {
                    btl.send(endpoint, am, header, Payload::Bytes(&payload))
                }
                Route::Via(..) => Err(SendError::PeerGone),
                Route::None { .. } => Err(SendError::PeerGone),
            };
            match sent {
                Err(SendError::WouldBlock) => {
                    full.push(to);
                    waiting.push_back((to, am, header, payload));
                    continue;
                }
                // The transport tells of the loss by itself.
                Err(_) => {}
                Ok(()) => bml.attend(),
            }
            bml.handlers().end_turns();
            moved = true;
        }
        let mut outbox = self.outbox.borrow_mut();
        waiting.append(&mut outbox);
        *outbox = waiting;
        if moved {
            // An agreement returns when what it has to say is said.
            engine.pml().requests().nudge();
        }
        moved
    }

    fn pending(&self) -> bool {
        !self.outbox.borrow().is_empty()
    }
}

impl Engine {
    /// From now on failures are heard of; `MPI_COMM_SELF` is made after it.
    pub(crate) fn hear_of_failures(&self) {
        let tolerant = self.params().get(&super::ENABLE).unwrap_or(false);
        self.faults_slot().get_or_init(|| {
            let faults = Rc::new(Faults::new(self.downgrade(), tolerant));
            let handlers = self.pml().bml().handlers();
            handlers.register(Family::Fault, faults.clone());
            if tolerant {
                // Every receive asks whether its peer is lost, and can be interrupted.
                self.pml().survive_losses();
            }
            faults
        });
    }

    /// What this process knows of failures, once it has started.
    pub fn faults(&self) -> Option<&Rc<Faults>> {
        self.faults_slot().get()
    }

    /// Whether the job goes on when a process dies.
    pub fn is_fault_tolerant(&self) -> bool {
        self.faults().is_some_and(|faults| faults.is_tolerant())
    }

    /// The members of a group that this process knows to be dead, in the order in which it learnt of them.
    pub fn failed_among(&self, group: &Group) -> Group {
        let faults = self.faults();
        let dead = faults.map(|faults| faults.dead_among(|proc| group.rank_of(proc).is_some()));
        let procs = dead.into_iter().flatten().map(|(proc, _)| proc);
        Group::from_procs(procs.collect())
    }

    /// The launcher says that a process has died, or has left MPI; it says so to all processes.
    pub fn process_gone(&self, job: &str, rank: u32, left: bool) {
        let name = Name::new(job_number(job), rank);
        let Some(proc) = self.universe().proc(name) else {
            return;
        };
        let Some(faults) = self.faults() else { return };
        if proc == self.me() || faults.is_dead(proc) {
            return;
        }
        // What it has sent before is still delivered. A round of progress does not look everywhere, but `pending` does.
        for _ in 0..LAST_LOOKS {
            if !self.progress() && !self.pml().bml().pending() {
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

    /// An agreement has found a process dead, or gone without its part.
    pub(super) fn found_dead(&self, proc: ProcId) {
        let Some(faults) = self.faults() else { return };
        if proc != self.me() && !faults.has_failed(proc) {
            let why = format!("{} has died", self.label_of(proc));
            faults.take_death(proc, &why, true);
            self.lose(proc, &why);
        }
    }

    /// A process cannot be reached any more, for whatever reason.
    fn lose(&self, proc: ProcId, why: &str) {
        self.pml().lost(proc, why);
        self.pml().bml().handlers().lost(proc, why);
    }

    /// What sentences call a process.
    fn label_of(&self, proc: ProcId) -> String {
        match (self.universe().is_foreign(proc), self.universe().name(proc)) {
            (true, Some(name)) => format!("rank {} of another job", name.rank()),
            _ => format!("rank {proc} of the job"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::circulant;
    use std::collections::BTreeSet;

    /// The places that hear of something that place 0 tells, if those in `dead` tell none.
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
    fn everybody_hears_of_a_revocation_though_some_die() {
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
    fn one_tells_a_logarithm_of_the_others() {
        assert_eq!(circulant(0, 1), [] as [u32; 0]);
        assert_eq!(circulant(0, 2), [1]);
        assert_eq!(circulant(0, 60).len(), 10);
    }
}

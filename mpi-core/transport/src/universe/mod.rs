//! Processes of other jobs: their global names, local numbers and cards.
//!
//! A [`ProcId`] is the number by which this process refers to a process.
//! Numbers below the size of the job are ranks of the job.
//! Other numbers refer to processes of other jobs, which this process knows through `MPI_Comm_accept`,
//! `MPI_Comm_connect` or `MPI_Comm_spawn`.
//! Two processes may use different numbers for the same third process.
//! So messages identify a process by its [`Name`] (job and rank), and contain its card.
//!
//! Guarantees:
//! * a name has the same number as long as a communicator or a call refers to it or a connection to it is open; the number is never reused for another process;
//! * when the last communicator that contains a process is freed ([`Universe::release`]), this process disconnects from that process.
//!   That process is removed when it has disconnected, too; until then it may connect again under the same number;
//! * data from other processes are decoded before use: an unknown name is an error value, not a panic.

use crate::btl::modex::Modex;
use crate::btl::names::Names;
use mpi_base::proc::ProcId;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

mod card;
pub use card::Card;

/// The global name of a process: 40 bits that identify the job, and 24 bits for the rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub u64);

const RANK_BITS: u32 = 24;

/// Maximum number of ranks in a job, because a name contains 24 bits for the rank.
pub const RANKS_MAX: u32 = 1 << RANK_BITS;

impl Name {
    /// Returns the name of the process with the rank `rank` in the job with the number `job` ([`job_number`]).
    pub fn new(job: u64, rank: u32) -> Name {
        Name(job << RANK_BITS | u64::from(rank) & u64::from(RANKS_MAX - 1))
    }

    /// Returns the number of the process's job.
    pub fn job(self) -> u64 {
        self.0 >> RANK_BITS
    }

    /// Returns the rank of the process in its job.
    pub fn rank(self) -> u32 {
        (self.0 & u64::from(RANKS_MAX - 1)) as u32
    }
}

/// Returns the number that identifies a job, computed from the name that the job's launcher has assigned.
///
/// The number consists of 40 bits of SHA-256. Among 1000 connected jobs, two have the same number with a probability below 10^-6;
/// such jobs cannot be connected with each other.
pub fn job_number(job: &str) -> u64 {
    use sha2::{Digest, Sha256};
    let digest = Sha256::digest(job.as_bytes());
    let mut word = [0; 8];
    word.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(word) >> RANK_BITS
}

/// The table of all processes that this process knows.
pub struct Universe {
    job: u64,
    me: ProcId,
    size: u32,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// Number of processes of other jobs that this process has registered so far.
    met: u32,
    by_name: HashMap<Name, ProcId>,
    others: HashMap<ProcId, Other>,
    own_card: Card,
}

/// The state of a process of another job.
struct Other {
    name: Name,
    card: Card,
    /// Number of communicators and calls that refer to the process.
    users: u32,
    /// Number of open connections to the process, in all transports.
    connections: u32,
}

impl Other {
    fn is_idle(&self) -> bool {
        self.users == 0 && self.connections == 0
    }
}

impl Known {
    /// Removes a process that has no references and no connections.
    fn forget_if_idle(&mut self, proc: ProcId) {
        if self.others.get(&proc).is_some_and(Other::is_idle)
            && let Some(other) = self.others.remove(&proc)
        {
            self.by_name.remove(&other.name);
        }
    }
}

impl Universe {
    /// Creates the table of the process with rank `me` in a job of `size` processes, without processes of other jobs.
    pub fn new(job: u64, me: ProcId, size: u32) -> Universe {
        Universe {
            job,
            me,
            size,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the rank of this process in its own job.
    pub fn me(&self) -> ProcId {
        self.me
    }

    /// Returns true if a process belongs to another job.
    #[inline]
    pub fn is_foreign(&self, proc: ProcId) -> bool {
        proc >= self.size
    }

    /// Returns the name of a process; `None` if the number belongs to no process.
    pub fn name(&self, proc: ProcId) -> Option<Name> {
        match self.is_foreign(proc) {
            false => Some(Name::new(self.job, proc)),
            true => self.known().others.get(&proc).map(|other| other.name),
        }
    }

    /// Returns the number of the process with a name; `None` if the process is unknown.
    pub fn proc(&self, name: Name) -> Option<ProcId> {
        match name.job() == self.job {
            true => Some(name.rank()).filter(|rank| *rank < self.size),
            false => self.known().by_name.get(&name).copied(),
        }
    }

    /// Returns this process's card with the addresses of its transports.
    pub fn own_card(&self) -> Card {
        self.known().own_card.clone()
    }

    /// Registers a process whose name and card another process has sent. Returns its number.
    /// A process of this process's own job needs no card.
    ///
    /// Returns `None` if the name is in the own job but is not one of the job's ranks, or
    /// if no number is left.
    pub fn introduce(&self, name: Name, card: Card) -> Option<ProcId> {
        if name.job() == self.job {
            return self.proc(name);
        }
        let mut known = self.known();
        if let Some(&proc) = known.by_name.get(&name) {
            // The process had connected to this process before its card was known, so the card is stored now.
            if let Some(other) = known.others.get_mut(&proc)
                && other.card == Card::default()
            {
                other.card = card;
            }
            return Some(proc);
        }
        let proc = self.size.checked_add(known.met)?;
        known.met = known.met.checked_add(1)?;
        known.by_name.insert(name, proc);
        let other = Other {
            name,
            card,
            users: 0,
            connections: 0,
        };
        known.others.insert(proc, other);
        Some(proc)
    }

    /// Returns the card of a process of another job.
    pub fn card(&self, proc: ProcId) -> Option<Card> {
        self.known()
            .others
            .get(&proc)
            .map(|other| other.card.clone())
    }

    /// Adds a reference to each of these processes, for a communicator or a call.
    pub fn hold(&self, procs: impl Iterator<Item = ProcId>) {
        let mut known = self.known();
        for proc in procs {
            if let Some(other) = known.others.get_mut(&proc) {
                other.users += 1;
            }
        }
    }

    /// Removes a reference to each of these processes. Returns the processes that have no further references.
    ///
    /// Of these, processes without a connection are removed.
    pub fn release(&self, procs: impl Iterator<Item = ProcId>) -> Vec<ProcId> {
        let mut known = self.known();
        let mut gone = Vec::new();
        for proc in procs {
            let Some(other) = known.others.get_mut(&proc) else {
                continue;
            };
            other.users = other.users.saturating_sub(1);
            if other.users == 0 {
                known.forget_if_idle(proc);
                gone.push(proc);
            }
        }
        gone
    }

    /// Returns the other known processes of the same other job.
    pub fn fellows(&self, of: ProcId) -> Vec<ProcId> {
        let known = self.known();
        let Some(job) = known.others.get(&of).map(|other| other.name.job()) else {
            return Vec::new();
        };
        let others = known.others.iter();
        let fellows = others.filter(|(proc, other)| **proc != of && other.name.job() == job);
        fellows.map(|(proc, _)| *proc).collect()
    }

    /// Returns the sorted numbers of the jobs of all referenced processes; see [`job_number`].
    pub fn connected_jobs(&self) -> Vec<u64> {
        let known = self.known();
        let used = known.others.values().filter(|other| other.users > 0);
        let mut jobs: Vec<u64> = used.map(|other| other.name.job()).collect();
        jobs.sort_unstable();
        jobs.dedup();
        jobs
    }

    /// Returns the number of known processes of other jobs.
    pub fn foreign(&self) -> usize {
        self.known().others.len()
    }
}

/// The modex of transports to other jobs, which reads addresses from cards.
impl Modex for Universe {
    fn put(&self, key: &str, value: &[u8]) -> Result<(), String> {
        let put = self.known().own_card.put(key, value);
        put.map_err(|error| error.to_string())
    }

    fn get(&self, of: ProcId, key: &str) -> Result<Vec<u8>, String> {
        let known = self.known();
        let other = known
            .others
            .get(&of)
            .ok_or("no communicator connects it with this process")?;
        let found = other.card.get(key);
        found.ok_or_else(|| format!("its card does not have \"{key}\""))
    }
}

impl Names for Universe {
    fn name(&self, proc: ProcId) -> Option<u64> {
        Universe::name(self, proc).map(|Name(name)| name)
    }

    fn may_call(&self, name: u64) -> bool {
        Name(name).job() != self.job
    }

    fn ends(&self, me: ProcId, peer: ProcId) -> String {
        let theirs = Universe::name(self, peer).map(Name::rank);
        let theirs = theirs.map_or_else(|| "a rank".into(), |rank| format!("rank {rank}"));
        format!("rank {me} of this job and {theirs} of another")
    }

    /// Admits every name of another job: the caller has proved that it knows this process's key.
    /// The key is contained only in this process's card and in its port names.
    fn admit(&self, name: u64) -> Option<ProcId> {
        let name = Name(name);
        let foreign = name.job() != self.job;
        foreign.then(|| self.introduce(name, Card::default()))?
    }

    fn is_unused(&self, proc: ProcId) -> bool {
        let known = self.known();
        let is_unused = || known.others.get(&proc).is_none_or(|other| other.users == 0);
        self.is_foreign(proc) && is_unused()
    }

    fn connected(&self, proc: ProcId) {
        if let Some(other) = self.known().others.get_mut(&proc) {
            other.connections += 1;
        }
    }

    fn disconnected(&self, proc: ProcId) {
        let mut known = self.known();
        if let Some(other) = known.others.get_mut(&proc) {
            other.connections = other.connections.saturating_sub(1);
        }
        known.forget_if_idle(proc);
    }

    fn forget_if_idle(&self, proc: ProcId) {
        self.known().forget_if_idle(proc);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn universe() -> Universe {
        Universe::new(7, 1, 4)
    }

    #[test]
    fn ranks_of_the_own_job_keep_their_numbers_and_others_get_new_ones() {
        let universe = universe();
        let own = Name::new(7, 3);
        assert_eq!(universe.introduce(own, Card::default()), Some(3));
        assert_eq!(universe.introduce(Name::new(7, 4), Card::default()), None);
        let other = Name::new(8, 3);
        assert_eq!(universe.proc(other), None);
        assert_eq!(universe.introduce(other, Card::default()), Some(4));
        assert_eq!(universe.introduce(other, Card::default()), Some(4));
        assert_eq!(
            (universe.proc(other), universe.name(4)),
            (Some(4), Some(other))
        );
    }

    #[test]
    fn a_process_is_forgotten_with_its_last_communicator_and_its_number_is_not_given_again() {
        let universe = universe();
        let other = Name::new(8, 0);
        let proc = universe.introduce(other, Card::default()).unwrap();
        universe.hold([0, proc].into_iter());
        universe.hold([proc].into_iter());
        assert_eq!(universe.release([proc].into_iter()), []);
        assert_eq!(universe.release([0, proc].into_iter()), [proc]);
        assert_eq!((universe.proc(other), universe.foreign()), (None, 0));
        assert_ne!(universe.introduce(other, Card::default()), Some(proc));
    }

    #[test]
    fn a_process_that_only_called_is_forgotten_and_one_that_is_named_is_not() {
        let universe = universe();
        let [caller, named] = [0, 1].map(|rank| {
            let proc = universe.introduce(Name::new(8, rank), Card::default());
            proc.unwrap()
        });
        universe.hold([named].into_iter());
        assert_eq!(
            [caller, named].map(|proc| universe.is_unused(proc)),
            [true, false]
        );
        for proc in [caller, named] {
            universe.connected(proc);
            universe.disconnected(proc);
        }
        assert_eq!(
            (universe.foreign(), universe.proc(Name::new(8, 0))),
            (1, None)
        );
    }

    #[test]
    fn a_process_keeps_its_number_while_a_connection_to_it_is_open() {
        let universe = universe();
        let other = Name::new(8, 0);
        let proc = universe.introduce(other, Card::default()).unwrap();
        universe.hold([proc].into_iter());
        universe.connected(proc);
        assert_eq!(universe.release([proc].into_iter()), [proc]);
        // The process connects again before the first connection has ended.
        assert_eq!(universe.introduce(other, Card::default()), Some(proc));
        universe.hold([proc].into_iter());
        universe.disconnected(proc);
        assert_eq!(universe.proc(other), Some(proc));
        assert_eq!(universe.release([proc].into_iter()), [proc]);
        assert_eq!((universe.proc(other), universe.foreign()), (None, 0));
    }

    #[test]
    fn a_card_is_read_under_the_number_of_its_process() {
        let universe = universe();
        let mut card = Card::default();
        card.put("key", b"value").unwrap();
        let proc = universe.introduce(Name::new(8, 0), card).unwrap();
        assert_eq!(universe.get(proc, "key"), Ok(b"value".to_vec()));
        assert!(universe.get(proc, "other").unwrap_err().contains("other"));
        assert!(universe.get(0, "key").is_err());
    }

    #[test]
    fn jobs_of_different_names_have_different_numbers() {
        assert_ne!(job_number("a"), job_number("b"));
        assert!(job_number("a") < 1 << 40);
    }
}

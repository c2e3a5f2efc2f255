//! Communicators of the program: which ranks of the job are their members, and a number that all of these know.
//!
//! Of a new communicator its rank 0 chooses the number and tells the others in a broadcast on it: each member is in the call that
//! has made it and comes to the broadcast before it returns to the program. Where that is not so, behind `MPI_Comm_idup` and for
//! communicators of several jobs, no message is sent: the first is numbered by what all have counted alike, the second by each
//! process for itself.
#![allow(unsafe_code)]

use super::Watch;
use coll_hwbarr_foreign::library::{Handle, done, place};
use mpi_core::pml::Context;
use std::collections::HashMap;
use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A communicator.
#[derive(Debug)]
pub struct Communicator {
    pub number: u64,
    /// How many members a collective operation has, on this side of it.
    pub members: u32,
    /// This process's rank in it.
    pub rank: c_int,
    /// The ranks in the job of those that messages go to; `None`: rank by rank the world.
    peers: Option<Vec<c_int>>,
    rounds: AtomicU64,
    duplicates: AtomicU64,
}

impl Communicator {
    /// A peer's rank in the job; negative if it has none.
    pub fn in_job(&self, peer: c_int) -> c_int {
        match &self.peers {
            None => peer,
            Some(peers) => usize::try_from(peer)
                .ok()
                .and_then(|peer| peers.get(peer).copied())
                .unwrap_or(-1),
        }
    }

    /// Counts a collective operation; from 1.
    pub fn next_round(&self) -> u64 {
        self.rounds.fetch_add(1, Relaxed) + 1
    }
}

/// The communicators that are known.
#[derive(Debug, Default)]
pub struct Comms {
    known: HashMap<Handle, Arc<Communicator>>,
    /// How many numbers this process has chosen.
    chosen: u32,
}

/// The lowest serial number of a communicator other than those of the start.
const FIRST_SERIAL: u32 = 2;
const SELF_SERIAL: u32 = 1;
/// From here on are numbers that no member has chosen for all.
const UNCHOSEN: u32 = Context::LAST_SERIAL / 2;

fn number(chooser: c_int, serial: u32) -> u64 {
    let serials = u64::from(Context::LAST_SERIAL) + 1;
    u64::from(chooser.unsigned_abs()) * serials + u64::from(serial)
}

impl Comms {
    fn next_serial(&mut self) -> u32 {
        let serial = FIRST_SERIAL + self.chosen % (UNCHOSEN - FIRST_SERIAL);
        self.chosen = self.chosen.wrapping_add(1);
        serial
    }

    pub fn forgets(&mut self, comm: Handle) {
        self.known.remove(&comm);
    }
}

/// How a communicator comes by its number.
enum Numbered {
    /// All members are in the call that has made it.
    Together,
    /// By what the members of its parent have counted.
    ByParent(u64, u64),
    Alone,
}

impl Watch {
    /// The two that every process has.
    pub(super) fn learn_first(&self) {
        let one = |number, members, rank, peers| {
            Arc::new(Communicator {
                number,
                members,
                rank,
                peers,
                rounds: AtomicU64::new(0),
                duplicates: AtomicU64::new(0),
            })
        };
        let me = self.rank;
        let world = one(0, self.size.unsigned_abs(), me, None);
        let alone = one(number(me, SELF_SERIAL), 1, 0, Some(vec![me]));
        let mut comms = self.comms();
        let constants = &self.library.constants;
        comms.known.insert(constants.comm_world, world);
        comms.known.insert(constants.comm_self, alone);
    }

    /// What is known of a communicator; nothing if it is none.
    pub fn communicator(&self, comm: Handle) -> Option<Arc<Communicator>> {
        if let Some(known) = self.comms().known.get(&comm) {
            return Some(Arc::clone(known));
        }
        self.learn(comm, Numbered::Alone)
    }

    /// A new communicator, which all its members have just made.
    pub fn makes(&self, comm: Handle) {
        self.learn(comm, Numbered::Together);
    }

    /// A duplicate of which this process has just heard that it is made.
    pub fn makes_later(&self, parent: &Communicator, comm: Handle) {
        let count = parent.duplicates.fetch_add(1, Relaxed);
        self.learn(comm, Numbered::ByParent(parent.number, count));
    }

    fn learn(&self, comm: Handle, numbered: Numbered) -> Option<Arc<Communicator>> {
        if comm == self.words.comm_null || comm == 0 {
            return None;
        }
        let learned = Arc::new(self.look_at(comm, &numbered).ok()?);
        self.comms().known.insert(comm, Arc::clone(&learned));
        Some(learned)
    }

    fn look_at(&self, comm: Handle, numbered: &Numbered) -> Result<Communicator, String> {
        let mut inter: c_int = 0;
        // SAFETY: a place for the answer.
        let code = unsafe { (self.functions.comm_test_inter)(comm, &raw mut inter) };
        done(code, "MPI_Comm_test_inter")?;
        let (own, rank) = self.members(comm, self.functions.comm_group)?;
        let peers = match inter {
            0 => own.clone(),
            _ => self.members(comm, self.functions.comm_remote_group)?.0,
        };
        let first = |ranks: &[c_int]| ranks.first().copied().unwrap_or(-1);
        let (ours, theirs) = (first(&own), first(&peers));
        let all_in_job = own.iter().chain(&peers).all(|rank| *rank >= 0);
        let (chosen, root) = match numbered {
            Numbered::Together if all_in_job => {
                let serial = match (rank, ours <= theirs) {
                    (0, true) => self.comms().next_serial(),
                    _ => 0,
                };
                let words = &self.words;
                let root = match (inter, ours <= theirs, rank) {
                    (0, ..) | (_, false, _) => 0,
                    (_, true, 0) => words.root,
                    (_, true, _) => words.proc_null,
                };
                (number(ours.min(theirs), serial), Some(root))
            }
            Numbered::ByParent(parent, count) => {
                // The same at all members; two that are equal would have to be duplicates of two parents with the same first rank.
                let mixed = parent.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ count;
                let serial = UNCHOSEN + (mixed % u64::from(UNCHOSEN)) as u32;
                (number(ours.min(theirs), serial), None)
            }
            Numbered::Together | Numbered::Alone => {
                let serial = UNCHOSEN + self.comms().next_serial();
                (number(self.rank, serial), None)
            }
        };
        let chosen = match root {
            None => chosen,
            Some(root) => self.tell(comm, root, chosen)?,
        };
        Ok(Communicator {
            number: chosen,
            members: own.len() as u32,
            rank,
            peers: Some(peers),
            rounds: AtomicU64::new(0),
            duplicates: AtomicU64::new(0),
        })
    }

    /// What the root says; every member calls.
    fn tell(&self, comm: Handle, root: c_int, mine: u64) -> Result<u64, String> {
        let mut bytes = mine.to_ne_bytes();
        let byte = self.library.constants.byte;
        // SAFETY: as many bytes as are said.
        let code = unsafe {
            (self.functions.bcast)(
                bytes.as_mut_ptr().cast(),
                bytes.len() as c_int,
                byte,
                root,
                comm,
            )
        };
        done(code, "MPI_Bcast")?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// The ranks in the job of a group's members, and this process's rank in it.
    fn members(
        &self,
        comm: Handle,
        group_of: unsafe extern "C" fn(Handle, *mut Handle) -> c_int,
    ) -> Result<(Vec<c_int>, c_int), String> {
        let (mut group, mut size, mut rank) = (place(), 0, 0);
        let functions = &self.functions;
        // SAFETY: places for the answers, here and below.
        done(unsafe { group_of(comm, &raw mut group) }, "MPI_Comm_group")?;
        // SAFETY: as above.
        let code = unsafe { (functions.group_size)(group, &raw mut size) };
        done(code, "MPI_Group_size")?;
        // SAFETY: as above.
        let code = unsafe { (functions.group_rank)(group, &raw mut rank) };
        done(code, "MPI_Group_rank")?;
        let theirs: Vec<c_int> = (0..size).collect();
        let mut ours = vec![-1; theirs.len()];
        // SAFETY: both arrays are as long as said.
        let code = unsafe {
            (functions.group_translate_ranks)(
                group,
                size,
                theirs.as_ptr(),
                self.group,
                ours.as_mut_ptr(),
            )
        };
        done(code, "MPI_Group_translate_ranks")?;
        // SAFETY: a group of this function.
        unsafe { (functions.group_free)(&raw mut group) };
        Ok((ours, rank))
    }
}

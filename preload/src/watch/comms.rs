//! The program's communicators: the members' job ranks, and a serial number, equal at all members.
//!
//! Rank 0 of a new communicator chooses the serial number and broadcasts it on the communicator.
//! Every member takes part in the broadcast before the creating call returns to the program.
//! Two cases need no message. After `MPI_Comm_idup`, the serial number derives from a count
//! that is the same at all members. For communicators of several jobs,
//! each process chooses a serial number locally.
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
    /// Number of members in this process's group (the local group of an intercommunicator).
    pub members: u32,
    /// This process's rank in the communicator.
    pub rank: c_int,
    /// Job ranks of the peers; `None` for `MPI_COMM_WORLD`, where rank i is job rank i.
    peers: Option<Vec<c_int>>,
    rounds: AtomicU64,
    duplicates: AtomicU64,
}

impl Communicator {
    /// Returns the job rank of `peer`; negative if the peer is outside this job.
    pub fn in_job(&self, peer: c_int) -> c_int {
        match &self.peers {
            None => peer,
            Some(peers) => usize::try_from(peer)
                .ok()
                .and_then(|peer| peers.get(peer).copied())
                .unwrap_or(-1),
        }
    }

    /// Counts a collective operation. Returns its sequence number on this communicator, from 1.
    pub fn next_round(&self) -> u64 {
        self.rounds.fetch_add(1, Relaxed) + 1
    }
}

/// The program's communicators, by the library's handle.
#[derive(Debug, Default)]
pub struct Comms {
    known: HashMap<Handle, Arc<Communicator>>,
    /// The number of communicators for which this process has chosen a serial number.
    chosen: u32,
}

/// The lowest serial number of a communicator that is not predefined.
const FIRST_SERIAL: u32 = 2;
const SELF_SERIAL: u32 = 1;
/// The lowest serial number of the range that is assigned without a broadcast.
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

/// The source of a communicator's serial number.
enum Numbered {
    /// Broadcast: all members are in the call that created the communicator.
    Together,
    /// The parent's serial number and the count of its duplicates, both the same at all members.
    ByParent(u64, u64),
    Alone,
}

impl Watch {
    /// Registers `MPI_COMM_WORLD` and `MPI_COMM_SELF`.
    pub(super) fn register_predefined(&self) {
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

    /// Returns the record of a communicator; `None` for `MPI_COMM_NULL`.
    pub fn communicator(&self, comm: Handle) -> Option<Arc<Communicator>> {
        if let Some(known) = self.comms().known.get(&comm) {
            return Some(Arc::clone(known));
        }
        self.register(comm, Numbered::Alone)
    }

    /// Registers a new communicator; all members are in the call that created it.
    pub fn makes(&self, comm: Handle) {
        self.register(comm, Numbered::Together);
    }

    /// Registers an `MPI_Comm_idup` duplicate whose request has completed in this process.
    pub fn makes_later(&self, parent: &Communicator, comm: Handle) {
        let count = parent.duplicates.fetch_add(1, Relaxed);
        self.register(comm, Numbered::ByParent(parent.number, count));
    }

    fn register(&self, comm: Handle, numbered: Numbered) -> Option<Arc<Communicator>> {
        if comm == self.constants.comm_null || comm == 0 {
            return None;
        }
        let learned = Arc::new(self.read_communicator(comm, &numbered).ok()?);
        self.comms().known.insert(comm, Arc::clone(&learned));
        Some(learned)
    }

    fn read_communicator(&self, comm: Handle, numbered: &Numbered) -> Result<Communicator, String> {
        let mut inter: c_int = 0;
        // SAFETY: the program passed a valid communicator; `inter` is a live local.
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
                let constants = &self.constants;
                let root = match (inter, ours <= theirs, rank) {
                    (0, ..) | (_, false, _) => 0,
                    (_, true, 0) => constants.root,
                    (_, true, _) => constants.proc_null,
                };
                (number(ours.min(theirs), serial), Some(root))
            }
            Numbered::ByParent(parent, count) => {
                // `mixed` is the same at all members.
                // Numbers of two duplicates can be equal only if their `ours.min(theirs)` is equal.
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
            Some(root) => self.broadcast(comm, root, chosen)?,
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

    /// Broadcasts the root's value; every member calls this function.
    fn broadcast(&self, comm: Handle, root: c_int, mine: u64) -> Result<u64, String> {
        let mut bytes = mine.to_ne_bytes();
        let byte = self.library.constants.byte;
        // SAFETY: the buffer is a live local of the length that is passed.
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

    /// Returns the job ranks of a group's members, and this process's rank in the group.
    fn members(
        &self,
        comm: Handle,
        group_of: unsafe extern "C" fn(Handle, *mut Handle) -> c_int,
    ) -> Result<(Vec<c_int>, c_int), String> {
        let (mut group, mut size, mut rank) = (place(), 0, 0);
        let functions = &self.functions;
        // SAFETY: the communicator is valid during the caller's call, and `group` is a live local.
        done(unsafe { group_of(comm, &raw mut group) }, "MPI_Comm_group")?;
        // SAFETY: `group` was just created, and `size` is a live local.
        let code = unsafe { (functions.group_size)(group, &raw mut size) };
        done(code, "MPI_Group_size")?;
        // SAFETY: `group` was just created, and `rank` is a live local.
        let code = unsafe { (functions.group_rank)(group, &raw mut rank) };
        done(code, "MPI_Group_rank")?;
        let theirs: Vec<c_int> = (0..size).collect();
        let mut ours = vec![-1; theirs.len()];
        // SAFETY: both arrays have the length that is passed.
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
        // SAFETY: this function created `group` and does not use the handle afterwards.
        unsafe { (functions.group_free)(&raw mut group) };
        Ok((ours, rank))
    }
}

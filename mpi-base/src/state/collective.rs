//! The third cache line of the state page: the latest collective operation.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Number of words that encode the arguments that must be equal on all members.
pub const SIGNATURE_WORDS: usize = 4;

/// The latest collective operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The communicator's number, which is the same at all members.
    pub comm: u64,
    /// The index of the operation on its communicator, counted from 1;
    /// 0 before the first operation.
    pub round: u64,
    /// The encoded arguments that must be equal on all members.
    /// If the words differ between members for the same `round`, the program is erroneous.
    pub signature: [u64; SIGNATURE_WORDS],
    /// The number of ranks of the communicator.
    pub members: u32,
    /// True while the rank is blocked in the operation.
    pub inside: bool,
}

#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct CollectiveLine {
    round: AtomicU64,
    comm: AtomicU64,
    signature: [AtomicU64; SIGNATURE_WORDS],
    /// The communicator's size while the rank is inside a blocking operation, else 0.
    inside: AtomicU32,
    /// The size of the latest operation's communicator.
    members: AtomicU32,
}

impl CollectiveLine {
    #[inline]
    pub(super) fn begin(
        &self,
        comm: u64,
        members: u32,
        round: u64,
        signature: [u64; SIGNATURE_WORDS],
    ) {
        self.comm.store(comm, Relaxed);
        self.members.store(members, Relaxed);
        for (place, word) in self.signature.iter().zip(signature) {
            place.store(word, Relaxed);
        }
        self.round.store(round, Relaxed);
    }

    #[inline]
    pub(super) fn set_inside(&self, inside: bool) {
        let members = if inside {
            self.members.load(Relaxed)
        } else {
            0
        };
        self.inside.store(members, Relaxed);
    }

    #[inline]
    pub(super) fn is_inside(&self) -> bool {
        self.inside.load(Relaxed) != 0
    }

    pub(super) fn latest(&self) -> Collective {
        Collective {
            comm: self.comm.load(Relaxed),
            round: self.round.load(Relaxed),
            signature: std::array::from_fn(|at| self.signature[at].load(Relaxed)),
            members: self.members.load(Relaxed),
            inside: self.is_inside(),
        }
    }
}

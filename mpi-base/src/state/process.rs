//! The first cache line of the state page: process, phase and confinement of the rank.
//! The line is written only during initialization and finalization.

use crate::hardware::{Confinement, Kind};
use std::fmt;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// The phase of a rank between start and finalization.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Phase {
    /// The page is zero: the rank has not called `MPI_Init`, and perhaps never will.
    Absent = 0,
    /// The rank is in `MPI_Init`.
    Starting = 1,
    /// `MPI_Init` has returned and `MPI_Finalize` has not.
    Running = 2,
    /// `MPI_Finalize` has returned.
    Finalized = 3,
}

impl Phase {
    /// Decodes a phase; an unknown number counts as [`Phase::Absent`].
    fn from_number(number: u32) -> Phase {
        match number {
            1 => Phase::Starting,
            2 => Phase::Running,
            3 => Phase::Finalized,
            _ => Phase::Absent,
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Phase::Absent => "has not reached MPI_Init",
            Phase::Starting => "is in MPI_Init",
            Phase::Running => "is running",
            Phase::Finalized => "has finalized",
        })
    }
}

#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct ProcessLine {
    pid: AtomicU32,
    rank: AtomicU32,
    phase: AtomicU32,
    /// The words of the [`Confinement`], valid if `placed` is not 0.
    place: [AtomicU32; Kind::ALL.len()],
    placed: AtomicU32,
}

impl ProcessLine {
    pub(super) fn start(&self, pid: u32, rank: u32) {
        self.pid.store(pid, Relaxed);
        self.rank.store(rank, Relaxed);
        self.reach(Phase::Starting);
    }

    pub(super) fn reach(&self, phase: Phase) {
        self.phase.store(phase as u32, Relaxed);
    }

    pub(super) fn confine(&self, here: &Confinement) {
        for (place, word) in self.place.iter().zip(here.words()) {
            place.store(word, Relaxed);
        }
        self.placed.store(1, Release);
    }

    pub(super) fn confinement(&self) -> Option<Confinement> {
        let placed = self.placed.load(Acquire) != 0;
        let words = || std::array::from_fn(|kind| self.place[kind].load(Relaxed));
        placed.then(|| Confinement::from_words(words()))
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid.load(Relaxed)
    }

    pub(super) fn rank(&self) -> u32 {
        self.rank.load(Relaxed)
    }

    pub(super) fn phase(&self) -> Phase {
        Phase::from_number(self.phase.load(Relaxed))
    }
}

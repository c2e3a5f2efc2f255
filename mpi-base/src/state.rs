//! The state page: what a rank is doing, readable by `mpirun` and by its neighbours while it does it.
//!
//! Each rank of a node has one page in the node's shared segment.
//! Promise: keeping it costs a few plain stores for each MPI call, and no system call.
//! From it `mpirun` says what a dead rank did last and explains a hang.
//!
//! Protocol: only the owning process stores, always relaxed; anybody may load, always relaxed.
//! Nothing is ordered by it and nothing may depend on it but messages to people:
//! a reader may see the peer of one call beside the tag of the next.
//! [`StatePage::snapshot`] reads until the call counter stands still, which on real machines makes that rare.
//! A page full of zero bytes, as a new memfd is, is a valid page of a rank that has not come yet.
//!
//! A rank with several threads stores the latest call of any of them.

use std::fmt;
use std::sync::atomic::{AtomicI32, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

/// How far a rank has come in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Phase {
    /// The page is untouched: the rank has not reached `MPI_Init`, or never will.
    Absent = 0,
    /// In `MPI_Init`.
    Starting = 1,
    Running = 2,
    /// `MPI_Finalize` has returned.
    Finalized = 3,
}

/// A rank's page; four cache lines, so that neighbours' pages never share one.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct StatePage {
    // The first line is who the rank is; written at start only.
    pid: AtomicU32,
    rank: AtomicU32,
    phase: AtomicU32,
    _line0: [u32; 13],
    // The second line is the current call.
    /// Counts up at each `enter` and each `leave`: odd inside a call.
    calls: AtomicU64,
    /// When the rank began to wait in this call, CLOCK_MONOTONIC nanoseconds; 0 while it does not wait.
    since_ns: AtomicU64,
    bytes: AtomicU64,
    call: AtomicU16,
    last_call: AtomicU16,
    comm: AtomicU32,
    peer: AtomicI32,
    tag: AtomicI32,
    _line1: [u64; 3],
    // The third line is the latest collective.
    collective_seq: AtomicU64,
    collective_fingerprint: AtomicU64,
    collective_comm: AtomicU32,
    collective_call: AtomicU16,
    _pad2: u16,
    _line2: [u64; 5],
    // The fourth line is the progress engine's, which is the busiest.
    progress: AtomicU64,
    _line3: [u64; 7],
}

/// The peer of a call that has none or takes any.
pub const NO_PEER: i32 = -1;
/// The tag of a call that has none or takes any.
pub const NO_TAG: i32 = -1;

impl StatePage {
    /// The rank has come: it is in `MPI_Init`.
    pub fn start(&self, pid: u32, rank: u32) {
        self.pid.store(pid, Relaxed);
        self.rank.store(rank, Relaxed);
        self.phase.store(Phase::Starting as u32, Relaxed);
    }

    /// `MPI_Init` has returned.
    pub fn run(&self) {
        self.phase.store(Phase::Running as u32, Relaxed);
    }

    /// `MPI_Finalize` has returned.
    pub fn finalized(&self) {
        self.phase.store(Phase::Finalized as u32, Relaxed);
    }

    /// An MPI call begins; `call` is its number in the function table, counted from 1.
    #[inline]
    pub fn enter(&self, call: u16) {
        self.call.store(call, Relaxed);
        self.count_call();
    }

    /// The call ends.
    #[inline]
    pub fn leave(&self) {
        let call = self.call.load(Relaxed);
        self.last_call.store(call, Relaxed);
        self.call.store(0, Relaxed);
        // The next call may have no peer, and would seem to have this one.
        self.peer.store(NO_PEER, Relaxed);
        self.since_ns.store(0, Relaxed);
        self.count_call();
    }

    /// Whom the current call talks to and what about.
    #[inline]
    pub fn about(&self, comm: u32, peer: i32, tag: i32, bytes: u64) {
        self.comm.store(comm, Relaxed);
        self.peer.store(peer, Relaxed);
        self.tag.store(tag, Relaxed);
        self.bytes.store(bytes, Relaxed);
    }

    /// The rank has begun to wait; only the first time within a call counts.
    /// Called from the slow path of waiting, so that a fast call never reads a clock.
    #[inline]
    pub fn waits_since(&self, now_ns: u64) {
        if self.since_ns.load(Relaxed) == 0 {
            self.since_ns.store(now_ns, Relaxed);
        }
    }

    /// A collective begins; equal sequence numbers with different fingerprints are a mismatched program.
    #[inline]
    pub fn collective(&self, comm: u32, call: u16, seq: u64, fingerprint: u64) {
        self.collective_comm.store(comm, Relaxed);
        self.collective_call.store(call, Relaxed);
        self.collective_fingerprint.store(fingerprint, Relaxed);
        self.collective_seq.store(seq, Relaxed);
    }

    /// The progress engine has moved something.
    #[inline]
    pub fn progressed(&self) {
        // A load and a store, not a read-modify-write: only the owner writes here.
        self.progress
            .store(self.progress.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// A copy to look at in peace.
    pub fn snapshot(&self) -> State {
        let mut state = self.read();
        for _ in 0..8 {
            let again = self.read();
            if again.calls == state.calls {
                break;
            }
            state = again;
        }
        state
    }

    #[inline]
    fn count_call(&self) {
        self.calls
            .store(self.calls.load(Relaxed).wrapping_add(1), Relaxed);
    }

    fn read(&self) -> State {
        State {
            calls: self.calls.load(Relaxed),
            pid: self.pid.load(Relaxed),
            rank: self.rank.load(Relaxed),
            phase: match self.phase.load(Relaxed) {
                1 => Phase::Starting,
                2 => Phase::Running,
                3 => Phase::Finalized,
                _ => Phase::Absent,
            },
            call: self.call.load(Relaxed),
            last_call: self.last_call.load(Relaxed),
            comm: self.comm.load(Relaxed),
            peer: self.peer.load(Relaxed),
            tag: self.tag.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            since_ns: self.since_ns.load(Relaxed),
            collective: Collective {
                comm: self.collective_comm.load(Relaxed),
                call: self.collective_call.load(Relaxed),
                seq: self.collective_seq.load(Relaxed),
                fingerprint: self.collective_fingerprint.load(Relaxed),
            },
            progress: self.progress.load(Relaxed),
        }
    }
}

/// What a [`StatePage`] said at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub pid: u32,
    pub rank: u32,
    pub phase: Phase,
    /// The current call's number in the function table, 0 outside MPI.
    pub call: u16,
    /// The call before it, 0 if there was none.
    pub last_call: u16,
    /// Calls entered plus calls left.
    pub calls: u64,
    pub comm: u32,
    pub peer: i32,
    pub tag: i32,
    pub bytes: u64,
    /// When the rank began to wait, 0 if it does not.
    pub since_ns: u64,
    pub collective: Collective,
    pub progress: u64,
}

/// The latest collective of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    pub comm: u32,
    pub call: u16,
    /// Counted on each communicator from 1; 0 if there was none.
    pub seq: u64,
    pub fingerprint: u64,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_four_cache_lines_and_its_subjects_do_not_share_one() {
        assert_eq!(size_of::<StatePage>(), 256);
        assert_eq!(align_of::<StatePage>(), 64);
        assert_eq!(std::mem::offset_of!(StatePage, calls), 64);
        assert_eq!(std::mem::offset_of!(StatePage, collective_seq), 128);
        assert_eq!(std::mem::offset_of!(StatePage, progress), 192);
    }

    #[test]
    fn an_untouched_page_is_a_rank_that_has_not_come() {
        let state = StatePage::default().snapshot();
        assert_eq!(
            (state.phase, state.call, state.calls),
            (Phase::Absent, 0, 0)
        );
    }

    #[test]
    fn a_snapshot_tells_the_call_and_whom_it_talks_to() {
        let page = StatePage::default();
        page.start(17, 3);
        page.run();
        page.enter(9);
        page.about(0, 5, 7, 4096);
        page.waits_since(1000);
        page.waits_since(2000);
        let state = page.snapshot();
        assert_eq!(
            (state.pid, state.rank, state.phase),
            (17, 3, Phase::Running)
        );
        assert_eq!((state.call, state.peer, state.tag), (9, 5, 7));
        assert_eq!((state.bytes, state.since_ns), (4096, 1000));
        page.leave();
        let state = page.snapshot();
        assert_eq!((state.call, state.last_call, state.since_ns), (0, 9, 0));
        assert_eq!(state.calls, 2);
    }

    #[test]
    fn the_latest_collective_is_kept_after_the_call() {
        let page = StatePage::default();
        page.enter(4);
        page.collective(1, 4, 12, 0xfeed);
        page.leave();
        let expected = Collective {
            comm: 1,
            call: 4,
            seq: 12,
            fingerprint: 0xfeed,
        };
        assert_eq!(page.snapshot().collective, expected);
    }
}

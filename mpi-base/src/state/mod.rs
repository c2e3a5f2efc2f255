//! The state page of a rank: a record of what the rank is doing now,
//! which `mpirun` and other ranks of the node can read.
//!
//! Each rank of a node has one page in the node's shared segment.
//! Guarantee: updating the page costs a few plain stores per MPI call, and no system call.
//! From this page `mpirun` reports the last call of a dead rank and diagnoses a hang.
//!
//! Protocol: only the owner of the page stores, and any process may load; both are relaxed.
//! The page orders no other data, so only diagnostic messages may depend on it:
//! a reader may see the peer of one call together with the tag of the next call.
//! Two stores are exceptions. The time in the `quiet` line publishes what the rank stored before
//! the time. A separate flag (Release) publishes the rank's confinement when it is complete,
//! because other ranks compute topologies from it.
//! [`StatePage::snapshot`] repeats its reads until the call counter is stable,
//! which makes mixtures of two calls rare on real machines.
//! A page of zero bytes, as in a new memfd, is valid and describes a rank that has not started yet.
//!
//! In a process with several threads, the page describes the latest call of any thread,
//! and the first of several concurrent collective operations.
//! With lanes, [`ThreadWaits`] also describes the long wait of each thread.
//!
//! Each of the following subjects has its own cache line and source file:
//! `process`, `call`, `collective`, `progress`, `file`, `window`, `quiet`.

mod call;
mod collective;
mod file;
mod name;
mod process;
mod progress;
mod quiet;
#[cfg(test)]
mod tests;
mod threads;
mod window;

pub use call::{About, NO_PEER, NO_TAG, Waits};
pub use collective::{Collective, SIGNATURE_WORDS};
pub use file::{FILE_NAME_WORDS, FileCall, InFile, file_name_words};
pub use process::Phase;
pub use progress::BarrierWire;
pub use quiet::Quiet;
pub use threads::{ThreadWait, ThreadWaits, Threads};
pub use window::{AboutWindow, WindowNeed};

use crate::hardware::Confinement;
use call::CallLine;
use collective::CollectiveLine;
use file::FileLine;
use process::ProcessLine;
use progress::ProgressLine;
use quiet::QuietLine;
use window::WindowLine;

/// A rank's state page of seven cache lines; two ranks' pages never share a line.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct StatePage {
    process: ProcessLine,
    call: CallLine,
    collective: CollectiveLine,
    progress: ProgressLine,
    file: FileLine,
    window: WindowLine,
    quiet: QuietLine,
}

/// A copy of a [`StatePage`], made by [`StatePage::snapshot`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The process ID; 0 if no process has started.
    pub pid: u32,
    /// The rank in the job.
    pub rank: u32,
    /// The rank's phase; an unknown number counts as [`Phase::Absent`].
    pub phase: Phase,
    /// The current MPI call's number in the function table; 0 outside of MPI calls.
    pub call: u16,
    /// The number of the latest MPI call, which may have ended; 0 before the first call.
    pub last_call: u16,
    /// The number of MPI calls that the rank has entered plus the number that it has left.
    pub calls: u64,
    /// The description of the rank's latest wait: for which rank, and why.
    pub about: About,
    /// Time at which the rank began to wait, in CLOCK_MONOTONIC nanoseconds; 0 if it does not wait.
    pub since_ns: u64,
    /// The latest collective operation, which may be complete.
    pub collective: Collective,
    /// The wire of the hardware barrier that the rank drives, if any.
    pub barrier_wire: Option<BarrierWire>,
    /// The system call on a file, or the plugin's function, that the rank is executing, if any.
    pub in_file: Option<InFile>,
    /// The window at which the rank waits, if it does.
    pub at_window: Option<AboutWindow>,
    /// Counter that is incremented, with wrap-around, whenever the progress engine makes progress.
    /// Only the difference between two snapshots is meaningful.
    pub progress: u64,
    /// The rank's state when it last began to sleep in a wait.
    pub quiet: Quiet,
}

impl StatePage {
    /// Records that the rank has started: it is in `MPI_Init`.
    pub fn start(&self, pid: u32, rank: u32) {
        self.process.start(pid, rank);
    }

    /// Publishes the rank's confinement; called one time.
    pub fn confine(&self, here: &Confinement) {
        self.process.confine(here);
    }

    /// Returns the confinement from [`StatePage::confine`]; `None` before that call.
    pub fn confinement(&self) -> Option<Confinement> {
        self.process.confinement()
    }

    /// Records that `MPI_Init` has returned (phase [`Phase::Running`]).
    pub fn run(&self) {
        self.process.reach(Phase::Running);
    }

    /// Records that `MPI_Finalize` has returned (phase [`Phase::Finalized`]).
    pub fn finalized(&self) {
        self.waits_on(None);
        self.process.reach(Phase::Finalized);
    }

    /// Records the start of MPI call `call`, its number in the function table, counted from 1.
    #[inline]
    pub fn enter(&self, call: u16) {
        self.call.enter(call);
    }

    /// Records the end of MPI call `call`.
    #[inline]
    pub fn leave(&self, call: u16) {
        self.call.leave(call);
    }

    /// Records for which rank the current call waits, and why.
    pub fn about(&self, about: &About) {
        self.call.set_about(about);
    }

    /// As [`StatePage::about`], for a wait at a window;
    /// the kind of wait is always [`Waits::Window`].
    pub fn about_window(&self, about: &About, window: &AboutWindow) {
        self.window.set(window);
        self.about(&About {
            waits: Waits::Window,
            ..*about
        });
    }

    /// Returns the number of calls that the rank has entered plus the number that it has left.
    pub fn calls(&self) -> u64 {
        self.call.calls()
    }

    /// Records that the rank has begun to wait;
    /// within an MPI call, only the first call of this function has an effect.
    /// Only waits on the slow path call this, so an MPI call that does not wait reads no clock.
    #[inline]
    pub fn waits_since(&self, now_ns: u64) {
        self.call.waits_since(now_ns);
    }

    /// Records the start of the communicator's collective operation number `round`, from 1.
    /// If ranks have equal `round` and different `signature` words, the program is erroneous.
    #[inline]
    pub fn collective(
        &self,
        comm: u64,
        members: u32,
        round: u64,
        signature: [u64; SIGNATURE_WORDS],
    ) {
        self.collective.begin(comm, members, round, signature);
    }

    /// Records whether the rank is blocked in the latest collective operation.
    #[inline]
    pub fn inside(&self, inside: bool) {
        self.collective.set_inside(inside);
    }

    /// Returns the value stored by [`StatePage::inside`].
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.collective.is_inside()
    }

    /// Records the wire's index, and the barriers that the rank has entered and seen released.
    #[inline]
    pub fn set_barrier_wire(&self, wire: u32, entered: u64, released: u64) {
        self.progress.set_barrier_wire(wire, entered, released);
    }

    /// Records the core on which the rank waits; `None` if it does not wait on a core.
    #[inline]
    pub fn waits_on(&self, core: Option<u32>) {
        self.progress.set_core(core);
    }

    /// Returns the core stored by [`StatePage::waits_on`].
    #[inline]
    pub fn core(&self) -> Option<u32> {
        self.progress.core()
    }

    /// Increments the counter of the progress engine's progress.
    #[inline]
    pub fn progressed(&self) {
        self.progress.count();
    }

    /// Records that the rank is about to sleep in a wait.
    pub fn is_quiet(&self, quiet: &Quiet) {
        self.quiet.set(quiet);
    }

    /// Records the start of a system call on a file.
    #[inline]
    pub fn enters_file_call(&self, call: FileCall, now_ns: u64, name: &[u64; FILE_NAME_WORDS]) {
        self.file.enter(call, now_ns, name);
    }

    /// Records the end of the system call on a file.
    #[inline]
    pub fn leaves_file_call(&self) {
        self.file.leave();
    }

    /// Returns a copy of the page, which the rank may change during the call.
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

    fn read(&self) -> State {
        // The quiet line is loaded first, so that all other fields are at least as recent.
        let quiet = self.quiet.latest();
        let (call, last_call) = self.call.current_and_latest();
        let about = self.call.about();
        State {
            calls: self.call.calls(),
            pid: self.process.pid(),
            rank: self.process.rank(),
            phase: self.process.phase(),
            call,
            last_call,
            about,
            since_ns: self.call.since_ns(),
            collective: self.collective.latest(),
            barrier_wire: self.progress.barrier_wire(),
            in_file: self.file.current(),
            at_window: (about.waits == Waits::Window).then(|| self.window.latest()),
            progress: self.progress.counted(),
            quiet,
        }
    }
}

//! The state page: what a rank is doing, readable by `mpirun` and by its neighbours while it does it.
//!
//! Each rank of a node has one page in the node's shared segment.
//! Promise: keeping it costs a few plain stores for each MPI call, and no system call.
//! From it `mpirun` says what a dead rank did last and explains a hang.
//!
//! Protocol: only the owning process stores, always relaxed; any process may load, always relaxed.
//! Nothing is ordered by it and nothing may depend on it but messages to people: a reader may see the peer of one call beside the tag of the next.
//! Where the rank is confined to is the exception: others lay out topologies by it, so a flag of its own releases it when it is whole.
//! [`StatePage::snapshot`] reads until the call counter stands still, which on real machines makes that rare.
//! A page full of zero bytes, as a new memfd is, is a valid page of a rank that has not come yet.
//!
//! A rank with several threads stores the latest call of any of them, and of collective operations at the same time the first.

//!
//! Each subject has a cache line and a file of its own: [`process`], [`call`], [`collective`], [`progress`], [`file`](self::file), [`window`].

mod call;
mod collective;
mod file;
mod name;
mod process;
mod progress;
#[cfg(test)]
mod tests;
mod window;

pub use call::{About, NO_PEER, NO_TAG, Waits};
pub use collective::{Collective, SAID_WORDS};
pub use file::{FILE_NAME_WORDS, FileCall, InFile, file_name_words};
pub use process::Phase;
pub use progress::Gate;
pub use window::{AboutWindow, WindowNeed};

use crate::hardware::Confinement;
use call::CallLine;
use collective::CollectiveLine;
use file::FileLine;
use process::ProcessLine;
use progress::ProgressLine;
use window::WindowLine;

/// A rank's page; six cache lines, so that neighbours' pages never share one.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct StatePage {
    process: ProcessLine,
    call: CallLine,
    collective: CollectiveLine,
    progress: ProgressLine,
    file: FileLine,
    window: WindowLine,
}

/// What a [`StatePage`] said at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The process, as the system numbers it; 0 if none has come.
    pub pid: u32,
    /// The rank in the job.
    pub rank: u32,
    /// How far it has come; a number that no version of ours writes is taken for [`Phase::Absent`].
    pub phase: Phase,
    /// The current call's number in the function table, 0 outside MPI.
    pub call: u16,
    /// The latest call, ended or not, 0 if there was none.
    pub last_call: u16,
    /// Calls entered plus calls left.
    pub calls: u64,
    /// Which rank the call waits for.
    pub about: About,
    /// When the rank began to wait, 0 if it does not.
    pub since_ns: u64,
    /// The latest one, which may be over.
    pub collective: Collective,
    /// The wire of the hardware barrier that the rank drives.
    pub gate: Option<Gate>,
    /// The system call on a file that it is in.
    pub in_file: Option<InFile>,
    /// The window that it waits at.
    pub at_window: Option<AboutWindow>,
    /// Counts up, and wraps, whenever the progress engine has moved something; only the difference of two snapshots says anything.
    pub progress: u64,
}

impl StatePage {
    /// The rank has come: it is in `MPI_Init`.
    pub fn start(&self, pid: u32, rank: u32) {
        self.process.start(pid, rank);
    }

    /// Where the rank may run; told once.
    pub fn confine(&self, here: &Confinement) {
        self.process.confine(here);
    }

    /// What the owner said with [`StatePage::confine`]; nothing before.
    pub fn confinement(&self) -> Option<Confinement> {
        self.process.confinement()
    }

    /// `MPI_Init` has returned.
    pub fn run(&self) {
        self.process.reach(Phase::Running);
    }

    /// `MPI_Finalize` has returned.
    pub fn finalized(&self) {
        self.waits_on(None);
        self.process.reach(Phase::Finalized);
    }

    /// An MPI call begins; `call` is its number in the function table, counted from 1.
    #[inline]
    pub fn enter(&self, call: u16) {
        self.call.enter(call);
    }

    /// The call ends.
    #[inline]
    pub fn leave(&self, call: u16) {
        self.call.leave(call);
    }

    /// Which rank the current call waits for and what about.
    pub fn about(&self, about: &About) {
        self.call.set_about(about);
    }

    /// Which rank the current call waits for at a window; the kind of waiting is [`Waits::Window`], whatever `about` says.
    pub fn about_window(&self, about: &About, window: &AboutWindow) {
        self.window.set(window);
        self.about(&About {
            waits: Waits::Window,
            ..*about
        });
    }

    /// How many calls the rank has entered and left.
    pub fn calls(&self) -> u64 {
        self.call.calls()
    }

    /// The rank has begun to wait; only the first time within a call counts.
    /// Called from the slow path of waiting, so that a fast call never reads a clock.
    #[inline]
    pub fn waits_since(&self, now_ns: u64) {
        self.call.waits_since(now_ns);
    }

    /// A collective operation begins, number `round` (from 1) of its communicator, which has so many members.
    /// Equal numbers with different words are a mismatched program.
    #[inline]
    pub fn collective(&self, comm: u64, members: u32, round: u64, said: [u64; SAID_WORDS]) {
        self.collective.begin(comm, members, round, said);
    }

    /// The rank is, or is no longer, in the latest collective operation and cannot do anything else meanwhile.
    #[inline]
    pub fn inside(&self, inside: bool) {
        self.collective.set_inside(inside);
    }

    /// What the owner said with [`StatePage::inside`].
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.collective.is_inside()
    }

    /// So many hardware barriers have been entered and released at this rank's wire.
    #[inline]
    pub fn gate(&self, wire: u32, entered: u64, released: u64) {
        self.progress.set_gate(wire, entered, released);
    }

    /// The rank waits on this core, or sleeps on none.
    #[inline]
    pub fn waits_on(&self, core: Option<u32>) {
        self.progress.set_core(core);
    }

    /// What the owner said with [`StatePage::waits_on`].
    #[inline]
    pub fn core(&self) -> Option<u32> {
        self.progress.core()
    }

    /// The progress engine has moved something.
    #[inline]
    pub fn progressed(&self) {
        self.progress.count();
    }

    /// A system call on a file begins.
    #[inline]
    pub fn enters_file_call(&self, call: FileCall, now_ns: u64, name: &[u64; FILE_NAME_WORDS]) {
        self.file.enter(call, now_ns, name);
    }

    /// It has returned.
    #[inline]
    pub fn leaves_file_call(&self) {
        self.file.leave();
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

    fn read(&self) -> State {
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
            gate: self.progress.gate(),
            in_file: self.file.current(),
            at_window: (about.waits == Waits::Window).then(|| self.window.latest()),
            progress: self.progress.counted(),
        }
    }
}

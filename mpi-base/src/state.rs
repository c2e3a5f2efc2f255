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

use crate::hardware::{Confinement, Kind};
use std::fmt;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI32, AtomicU16, AtomicU32, AtomicU64};

/// What a rank waits for in its current call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Waits {
    /// Nothing for longer than a moment.
    #[default]
    Nothing = 0,
    /// A receiver for its message.
    Send = 1,
    /// A message.
    Recv = 2,
    /// The others of a nonblocking collective operation; [`Collective`] says of which.
    Collective = 3,
    /// One of several requests, whichever is first.
    Any = 4,
    /// A member of a window; what of it is in [`AboutWindow`].
    Window = 5,
}

/// What a rank that waits at a window waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum WindowNeed {
    /// Something that no version of ours writes.
    #[default]
    Unknown = 0,
    /// The member's lock.
    Lock = 1,
    /// That the member exposes its part.
    Post = 2,
    /// That the member ends its accesses.
    Complete = 3,
    /// That the member carries out accesses that were sent to it.
    Answer = 4,
}

impl WindowNeed {
    fn from_number(number: u32) -> WindowNeed {
        match number {
            1 => WindowNeed::Lock,
            2 => WindowNeed::Post,
            3 => WindowNeed::Complete,
            4 => WindowNeed::Answer,
            _ => WindowNeed::Unknown,
        }
    }
}

/// Which window a rank waits at, and what for; [`About`] says for which member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AboutWindow {
    /// The window's name, or the end of it; empty if it has none.
    pub name: String,
    /// What the member has to do.
    pub need: WindowNeed,
    /// The rank in the job whose doing ends the wait: the holder of the lock that is waited for, else the member; if it is known and on this node.
    pub on: Option<u32>,
    /// How many calls that rank had entered and left when the wait began: as many as now if it has made none since.
    pub calls: u64,
}

/// Which rank a waiting rank waits for and what about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// What kind of waiting it is; while it is [`Waits::Nothing`], the other fields are left over from an earlier call.
    pub waits: Waits,
    /// The communicator's number, [`Collective::comm`].
    pub comm: u64,
    /// The peer's rank in the communicator, or [`NO_PEER`].
    pub peer: i32,
    /// The peer's rank in the job, or [`NO_PEER`].
    pub proc: i32,
    /// The tag, or a negative number.
    pub tag: i32,
    /// The length of the message that is sent, or of the receive's buffer.
    pub bytes: u64,
    /// How many requests the call waits for, this one included.
    pub requests: u32,
}

impl Default for About {
    fn default() -> About {
        About {
            waits: Waits::Nothing,
            comm: 0,
            peer: NO_PEER,
            proc: NO_PEER,
            tag: NO_TAG,
            bytes: 0,
            requests: 0,
        }
    }
}

/// What the members of a communicator have to agree on in a collective operation, as the engine encodes it.
pub const SAID_WORDS: usize = 4;

/// How far a rank has come in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Phase {
    /// The page is untouched: the rank has not reached `MPI_Init`, or never will.
    Absent = 0,
    /// In `MPI_Init`.
    Starting = 1,
    /// `MPI_Init` has returned and `MPI_Finalize` has not.
    Running = 2,
    /// `MPI_Finalize` has returned.
    Finalized = 3,
}

/// A rank's page; six cache lines, so that neighbours' pages never share one.
#[repr(C, align(64))]
#[derive(Debug, Default)]
pub struct StatePage {
    // The first line is which process the rank is; written at start only.
    pid: AtomicU32,
    rank: AtomicU32,
    phase: AtomicU32,
    /// A [`Confinement`]'s words, once `placed` is not 0.
    place: [AtomicU32; Kind::ALL.len()],
    placed: AtomicU32,
    _line0: [u32; 7],
    // The second line is the current call.
    /// Counts up at each `enter` and each `leave`: odd inside a call.
    calls: AtomicU64,
    /// When the rank began to wait in this call, CLOCK_MONOTONIC nanoseconds; 0 while it does not wait.
    since_ns: AtomicU64,
    bytes: AtomicU64,
    comm: AtomicU64,
    /// The latest call's number, with [`INSIDE`] while it runs.
    call: AtomicU16,
    _pad: u16,
    peer: AtomicI32,
    proc: AtomicI32,
    tag: AtomicI32,
    /// A [`Waits`]; what the fields of [`About`] say is true while it is not `Nothing`.
    waits: AtomicU32,
    requests: AtomicU32,
    _line1: u64,
    // The third line is the latest collective operation.
    round: AtomicU64,
    round_comm: AtomicU64,
    said: [AtomicU64; SAID_WORDS],
    /// The communicator's size while the rank is inside a blocking one, else 0.
    inside: AtomicU32,
    /// The size of the communicator of the latest one.
    members: AtomicU32,
    _line2: u64,
    // The fourth line is the progress engine's, which is the busiest.
    progress: AtomicU64,
    // The hardware barrier's wires of this rank's node, if the rank drives some: written at each barrier.
    gate_entered: AtomicU64,
    gate_released: AtomicU64,
    /// One more than the number of the wire; 0 if there is none.
    gate_wire: AtomicU32,
    /// One more than the number of the core on which the rank was when it waited last, where ranks share cores; 0 if that says nothing.
    core: AtomicU32,
    _line3: [u32; 8],
    // The fifth line is the system call on a file that the rank is in.
    /// When it began, CLOCK_MONOTONIC nanoseconds.
    file_since_ns: AtomicU64,
    /// A [`FileCall`]; 0 outside of one.
    file_call: AtomicU32,
    _pad4: u32,
    /// The end of the file's name, filled up with zeros.
    file_name: [AtomicU64; FILE_NAME_WORDS],
    // The sixth line is the window that the rank waits at, written once it has waited for a moment.
    /// What [`AboutWindow::calls`] says.
    window_calls: AtomicU64,
    /// A [`WindowNeed`].
    window_need: AtomicU32,
    /// One more than the rank in the job of [`AboutWindow::on`]; 0 if it is not known.
    window_on: AtomicU32,
    /// The end of the window's name, filled up with zeros.
    window_name: [AtomicU64; NAME_WORDS],
}

/// Eight bytes each of the end of a name.
const NAME_WORDS: usize = 6;

/// The same of a file's name.
pub const FILE_NAME_WORDS: usize = NAME_WORDS;

/// A system call on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum FileCall {
    /// Writing at an offset.
    Pwrite = 1,
    /// Reading at an offset.
    Pread = 2,
    /// Bringing what was written to the disk.
    Fsync = 3,
    /// Opening, and creating.
    Open = 4,
    /// Locking a range, or giving it back.
    Lock = 5,
    /// Setting the length.
    Ftruncate = 6,
    /// Setting room aside.
    Fallocate = 7,
    /// Closing.
    Close = 8,
}

impl FileCall {
    /// All of them, in the order of their numbers.
    pub const ALL: [FileCall; 8] = [
        FileCall::Pwrite,
        FileCall::Pread,
        FileCall::Fsync,
        FileCall::Open,
        FileCall::Lock,
        FileCall::Ftruncate,
        FileCall::Fallocate,
        FileCall::Close,
    ];

    /// The call of a number.
    pub fn from_number(number: u32) -> Option<FileCall> {
        FileCall::ALL
            .into_iter()
            .find(|call| *call as u32 == number)
    }

    /// The name as manual pages have it.
    pub fn name(self) -> &'static str {
        match self {
            FileCall::Pwrite => "pwrite",
            FileCall::Pread => "pread",
            FileCall::Fsync => "fsync",
            FileCall::Open => "open",
            FileCall::Lock => "fcntl(F_OFD_SETLKW)",
            FileCall::Ftruncate => "ftruncate",
            FileCall::Fallocate => "fallocate",
            FileCall::Close => "close",
        }
    }
}

/// The words of a file's name for [`StatePage::enters_file_call`]: its end, if it is too long.
pub fn file_name_words(name: &str) -> [u64; FILE_NAME_WORDS] {
    name_words(name)
}

fn name_words(name: &str) -> [u64; NAME_WORDS] {
    let bytes = name.as_bytes();
    let end = &bytes[bytes.len().saturating_sub(NAME_WORDS * 8)..];
    std::array::from_fn(|word| {
        let byte = |at: usize| end.get(word * 8 + at).copied().unwrap_or(0);
        u64::from_le_bytes(std::array::from_fn(byte))
    })
}

/// What [`name_words`] made words of.
fn read_name(words: &[AtomicU64; NAME_WORDS]) -> String {
    let words = words.iter().map(|word| word.load(Relaxed));
    let bytes: Vec<u8> = words.flat_map(u64::to_le_bytes).collect();
    let end = bytes.iter().rposition(|byte| *byte != 0);
    String::from_utf8_lossy(&bytes[..end.map_or(0, |at| at + 1)]).into_owned()
}

/// The system call on a file that a rank is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InFile {
    /// Which one.
    pub call: FileCall,
    /// When it began, CLOCK_MONOTONIC nanoseconds.
    pub since_ns: u64,
    /// The file's name, or the end of it.
    pub name: String,
}

/// Set in the number of a call that has not ended.
const INSIDE: u16 = 1 << 15;

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

    /// Where the rank may run; told once.
    pub fn confine(&self, here: &Confinement) {
        for (place, word) in self.place.iter().zip(here.words()) {
            place.store(word, Relaxed);
        }
        self.placed.store(1, Release);
    }

    /// What the owner said with [`StatePage::confine`]; nothing before.
    pub fn confinement(&self) -> Option<Confinement> {
        let placed = self.placed.load(Acquire) != 0;
        let words = || std::array::from_fn(|kind| self.place[kind].load(Relaxed));
        placed.then(|| Confinement::from_words(words()))
    }

    /// `MPI_Init` has returned.
    pub fn run(&self) {
        self.phase.store(Phase::Running as u32, Relaxed);
    }

    /// `MPI_Finalize` has returned.
    pub fn finalized(&self) {
        self.waits_on(None);
        self.phase.store(Phase::Finalized as u32, Relaxed);
    }

    /// An MPI call begins; `call` is its number in the function table, counted from 1.
    #[inline]
    pub fn enter(&self, call: u16) {
        self.call.store(call | INSIDE, Relaxed);
        self.count_call();
    }

    /// The call ends.
    #[inline]
    pub fn leave(&self, call: u16) {
        self.call.store(call, Relaxed);
        // The next call may wait for no rank, and would seem to wait as this one did.
        self.waits.store(Waits::Nothing as u32, Relaxed);
        self.since_ns.store(0, Relaxed);
        self.count_call();
    }

    /// Which rank the current call waits for and what about.
    pub fn about(&self, about: &About) {
        self.comm.store(about.comm, Relaxed);
        self.peer.store(about.peer, Relaxed);
        self.proc.store(about.proc, Relaxed);
        self.tag.store(about.tag, Relaxed);
        self.bytes.store(about.bytes, Relaxed);
        self.requests.store(about.requests, Relaxed);
        self.waits.store(about.waits as u32, Relaxed);
    }

    /// Which rank the current call waits for at a window; the kind of waiting is [`Waits::Window`], whatever `about` says.
    pub fn about_window(&self, about: &About, window: &AboutWindow) {
        for (word, value) in self.window_name.iter().zip(name_words(&window.name)) {
            word.store(value, Relaxed);
        }
        self.window_need.store(window.need as u32, Relaxed);
        let on = window.on.map_or(0, |rank| rank.wrapping_add(1));
        self.window_on.store(on, Relaxed);
        self.window_calls.store(window.calls, Relaxed);
        self.about(&About {
            waits: Waits::Window,
            ..*about
        });
    }

    /// How many calls the rank has entered and left.
    pub fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    /// The rank has begun to wait; only the first time within a call counts.
    /// Called from the slow path of waiting, so that a fast call never reads a clock.
    #[inline]
    pub fn waits_since(&self, now_ns: u64) {
        if self.since_ns.load(Relaxed) == 0 {
            self.since_ns.store(now_ns, Relaxed);
        }
    }

    /// A collective operation begins, number `round` (from 1) of its communicator, which has so many members.
    /// Equal numbers with different words are a mismatched program.
    #[inline]
    pub fn collective(&self, comm: u64, members: u32, round: u64, said: [u64; SAID_WORDS]) {
        self.round_comm.store(comm, Relaxed);
        self.members.store(members, Relaxed);
        for (place, word) in self.said.iter().zip(said) {
            place.store(word, Relaxed);
        }
        self.round.store(round, Relaxed);
    }

    /// The rank is, or is no longer, in the latest collective operation and cannot do anything else meanwhile.
    #[inline]
    pub fn inside(&self, inside: bool) {
        let members = if inside {
            self.members.load(Relaxed)
        } else {
            0
        };
        self.inside.store(members, Relaxed);
    }

    /// What the owner said with [`StatePage::inside`].
    #[inline]
    pub fn is_inside(&self) -> bool {
        self.inside.load(Relaxed) != 0
    }

    /// So many hardware barriers have been entered and released at this rank's wire.
    #[inline]
    pub fn gate(&self, wire: u32, entered: u64, released: u64) {
        self.gate_entered.store(entered, Relaxed);
        self.gate_released.store(released, Relaxed);
        self.gate_wire.store(wire.wrapping_add(1), Relaxed);
    }

    /// The rank waits on this core, or sleeps on none.
    #[inline]
    pub fn waits_on(&self, core: Option<u32>) {
        self.core
            .store(core.map_or(0, |core| core.wrapping_add(1)), Relaxed);
    }

    /// What the owner said with [`StatePage::waits_on`].
    #[inline]
    pub fn core(&self) -> Option<u32> {
        self.core.load(Relaxed).checked_sub(1)
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

    /// A system call on a file begins.
    #[inline]
    pub fn enters_file_call(&self, call: FileCall, now_ns: u64, name: &[u64; FILE_NAME_WORDS]) {
        for (word, value) in self.file_name.iter().zip(name) {
            word.store(*value, Relaxed);
        }
        self.file_since_ns.store(now_ns, Relaxed);
        self.file_call.store(call as u32, Relaxed);
    }

    /// It has returned.
    #[inline]
    pub fn leaves_file_call(&self) {
        self.file_call.store(0, Relaxed);
    }

    fn in_file(&self) -> Option<InFile> {
        let call = FileCall::from_number(self.file_call.load(Relaxed))?;
        Some(InFile {
            call,
            since_ns: self.file_since_ns.load(Relaxed),
            name: read_name(&self.file_name),
        })
    }

    fn at_window(&self) -> Option<AboutWindow> {
        (self.waits.load(Relaxed) == Waits::Window as u32).then(|| AboutWindow {
            name: read_name(&self.window_name),
            need: WindowNeed::from_number(self.window_need.load(Relaxed)),
            on: self.window_on.load(Relaxed).checked_sub(1),
            calls: self.window_calls.load(Relaxed),
        })
    }

    #[inline]
    fn count_call(&self) {
        self.calls
            .store(self.calls.load(Relaxed).wrapping_add(1), Relaxed);
    }

    fn read(&self) -> State {
        let call = self.call.load(Relaxed);
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
            call: if call & INSIDE == 0 {
                0
            } else {
                call & !INSIDE
            },
            last_call: call & !INSIDE,
            about: About {
                waits: match self.waits.load(Relaxed) {
                    1 => Waits::Send,
                    2 => Waits::Recv,
                    3 => Waits::Collective,
                    4 => Waits::Any,
                    5 => Waits::Window,
                    _ => Waits::Nothing,
                },
                comm: self.comm.load(Relaxed),
                peer: self.peer.load(Relaxed),
                proc: self.proc.load(Relaxed),
                tag: self.tag.load(Relaxed),
                bytes: self.bytes.load(Relaxed),
                requests: self.requests.load(Relaxed),
            },
            since_ns: self.since_ns.load(Relaxed),
            collective: Collective {
                comm: self.round_comm.load(Relaxed),
                round: self.round.load(Relaxed),
                said: std::array::from_fn(|at| self.said[at].load(Relaxed)),
                members: self.members.load(Relaxed),
                inside: self.inside.load(Relaxed) != 0,
            },
            gate: self
                .gate_wire
                .load(Relaxed)
                .checked_sub(1)
                .map(|wire| Gate {
                    wire,
                    entered: self.gate_entered.load(Relaxed),
                    released: self.gate_released.load(Relaxed),
                }),
            in_file: self.in_file(),
            at_window: self.at_window(),
            progress: self.progress.load(Relaxed),
        }
    }
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

/// The latest collective operation of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collective {
    /// The communicator's number, the same at all members.
    pub comm: u64,
    /// Counted on each communicator from 1; 0 if there was none.
    pub round: u64,
    /// What the members have to agree on; equal rounds with different words are a mismatched program.
    pub said: [u64; SAID_WORDS],
    /// How many ranks the communicator has.
    pub members: u32,
    /// Whether the rank is in it, in a call that returns when it is over.
    pub inside: bool,
}

/// A wire of the hardware barrier, as the rank that drives it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Which of the board's wires, counted from 0; the rank's own number.
    pub wire: u32,
    /// Barriers of `MPI_COMM_WORLD` that this rank has entered.
    pub entered: u64,
    /// Barriers of these that it has seen released; fewer than entered while it waits at the gate.
    pub released: u64,
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
    fn a_page_is_six_cache_lines_and_its_subjects_do_not_share_one() {
        assert_eq!(size_of::<StatePage>(), 384);
        assert_eq!(std::mem::offset_of!(StatePage, window_calls), 320);
        assert_eq!(std::mem::offset_of!(StatePage, file_since_ns), 256);
        assert_eq!(align_of::<StatePage>(), 64);
        assert_eq!(std::mem::offset_of!(StatePage, calls), 64);
        assert_eq!(std::mem::offset_of!(StatePage, round), 128);
        assert_eq!(std::mem::offset_of!(StatePage, progress), 192);
    }

    #[test]
    fn a_snapshot_tells_the_system_call_on_a_file_and_the_end_of_its_name() {
        let page = StatePage::default();
        page.enters_file_call(FileCall::Pwrite, 7, &file_name_words("data.bin"));
        let seen = page
            .snapshot()
            .in_file
            .map(|at| (at.call, at.since_ns, at.name));
        assert_eq!(seen, Some((FileCall::Pwrite, 7, "data.bin".to_owned())));
        let long = format!("{}/{}", "x".repeat(50), "e".repeat(40));
        page.enters_file_call(FileCall::Open, 8, &file_name_words(&long));
        let seen = page.snapshot().in_file.map(|at| at.name);
        assert_eq!(seen.as_deref(), Some(&long[long.len() - 48..]));
        page.leaves_file_call();
        assert_eq!(page.snapshot().in_file, None);
    }

    #[test]
    fn a_snapshot_tells_the_window_that_a_rank_waits_at_and_on_whom() {
        let page = StatePage::default();
        page.enter(3);
        let at = AboutWindow {
            name: "board".into(),
            need: WindowNeed::Lock,
            on: Some(0),
            calls: 12,
        };
        let about = About {
            peer: 2,
            proc: 4,
            ..About::default()
        };
        page.about_window(&about, &at);
        let state = page.snapshot();
        assert_eq!(state.at_window, Some(at));
        assert_eq!((state.about.waits, state.about.peer), (Waits::Window, 2));
        page.leave(3);
        assert_eq!(page.snapshot().at_window, None);
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
        page.about(&About {
            waits: Waits::Recv,
            peer: 5,
            proc: 8,
            tag: 7,
            bytes: 4096,
            requests: 1,
            ..About::default()
        });
        page.waits_since(1000);
        page.waits_since(2000);
        let state = page.snapshot();
        assert_eq!(
            (state.pid, state.rank, state.phase),
            (17, 3, Phase::Running)
        );
        assert_eq!((state.call, state.about.waits), (9, Waits::Recv));
        let about = state.about;
        assert_eq!((about.peer, about.proc, about.tag), (5, 8, 7));
        assert_eq!((about.bytes, state.since_ns), (4096, 1000));
        page.leave(9);
        let state = page.snapshot();
        assert_eq!((state.call, state.last_call, state.since_ns), (0, 9, 0));
        assert_eq!((state.calls, state.about.waits), (2, Waits::Nothing));
    }

    #[test]
    fn the_latest_collective_is_kept_after_the_call() {
        let page = StatePage::default();
        page.enter(4);
        page.collective(1, 3, 12, [1, 2, 3, 4]);
        page.inside(true);
        assert!(page.snapshot().collective.inside);
        page.inside(false);
        page.leave(4);
        let expected = Collective {
            comm: 1,
            round: 12,
            said: [1, 2, 3, 4],
            members: 3,
            inside: false,
        };
        assert_eq!(page.snapshot().collective, expected);
    }

    #[test]
    fn a_rank_without_a_wire_has_none() {
        let page = StatePage::default();
        assert_eq!(page.snapshot().gate, None);
        page.gate(0, 3, 2);
        let gate = Gate {
            wire: 0,
            entered: 3,
            released: 2,
        };
        assert_eq!(page.snapshot().gate, Some(gate));
    }
}

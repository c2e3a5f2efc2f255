//! The second cache line of the state page: the current MPI call, and what it waits for.
//! The description of a wait is also part of a thread's slot ([`threads`](super::threads)).

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicU16, AtomicU32, AtomicU64};

/// The kind of event that a rank waits for in its current call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Waits {
    /// The rank does not wait, or the wait is too short to be recorded.
    #[default]
    Nothing = 0,
    /// The rank waits until the receiver accepts its message.
    Send = 1,
    /// The rank waits for a message.
    Recv = 2,
    /// The rank waits for the other members of a nonblocking collective operation.
    /// [`Collective`](super::Collective) describes the operation.
    Collective = 3,
    /// The rank waits for any one of several requests.
    Any = 4,
    /// The rank waits at a window for another member;
    /// [`AboutWindow`](super::AboutWindow) describes the wait.
    Window = 5,
}

impl Waits {
    fn from_number(number: u32) -> Waits {
        match number {
            1 => Waits::Send,
            2 => Waits::Recv,
            3 => Waits::Collective,
            4 => Waits::Any,
            5 => Waits::Window,
            _ => Waits::Nothing,
        }
    }
}

/// The value of [`About::peer`] and [`About::proc`] if the call has no peer or accepts any peer.
pub const NO_PEER: i32 = -1;
/// The value of [`About::tag`] if the call has no tag or accepts any tag.
pub const NO_TAG: i32 = -1;

/// Description of a wait: the peer, the communicator and the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The kind of wait; after [`Waits::Nothing`], the other fields belong to an earlier call.
    pub waits: Waits,
    /// The communicator's number, as in [`Collective::comm`](super::Collective).
    pub comm: u64,
    /// The peer's rank in the communicator, or [`NO_PEER`].
    pub peer: i32,
    /// The peer's rank in the job, or [`NO_PEER`].
    pub proc: i32,
    /// The message's tag, or a negative number ([`NO_TAG`] or a tag of the library).
    pub tag: i32,
    /// The length in bytes of the message that is sent, or of the receive buffer.
    pub bytes: u64,
    /// The number of requests that the call waits for, including the one described here.
    pub requests: u32,
    /// The number in the function table of the call that began the request; 0 if it is not known,
    /// or if the call waits for no request.
    pub begun: u16,
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
            begun: 0,
        }
    }
}

/// Flag in the number of the latest call; set until the call ends.
const INSIDE: u16 = 1 << 15;

/// A call, and the description of its wait: an [`About`] in words that are stored one by one.
#[repr(C)]
#[derive(Debug, Default)]
pub(super) struct CallWords {
    bytes: AtomicU64,
    comm: AtomicU64,
    /// The call's number in the function table; on the call line with [`INSIDE`] until the call ends.
    call: AtomicU16,
    /// As [`About::begun`].
    begun: AtomicU16,
    peer: AtomicI32,
    proc: AtomicI32,
    tag: AtomicI32,
    /// A [`Waits`] as a number; the fields of [`About`] are valid unless it is `Nothing`.
    waits: AtomicU32,
    requests: AtomicU32,
}

impl CallWords {
    pub(super) fn set_call(&self, call: u16) {
        self.call.store(call, Relaxed);
    }

    pub(super) fn call(&self) -> u16 {
        self.call.load(Relaxed)
    }

    pub(super) fn set_about(&self, about: &About) {
        self.comm.store(about.comm, Relaxed);
        self.peer.store(about.peer, Relaxed);
        self.proc.store(about.proc, Relaxed);
        self.tag.store(about.tag, Relaxed);
        self.bytes.store(about.bytes, Relaxed);
        self.requests.store(about.requests, Relaxed);
        self.begun.store(about.begun, Relaxed);
        self.waits.store(about.waits as u32, Relaxed);
    }

    pub(super) fn about(&self) -> About {
        About {
            waits: Waits::from_number(self.waits.load(Relaxed)),
            comm: self.comm.load(Relaxed),
            peer: self.peer.load(Relaxed),
            proc: self.proc.load(Relaxed),
            tag: self.tag.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            requests: self.requests.load(Relaxed),
            begun: self.begun.load(Relaxed),
        }
    }
}

#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct CallLine {
    /// Counter that each `enter` and each `leave` increments: odd during a call.
    calls: AtomicU64,
    /// Time at which the rank began to wait in this call, in CLOCK_MONOTONIC nanoseconds;
    /// 0 while the rank does not wait.
    since_ns: AtomicU64,
    words: CallWords,
}

impl CallLine {
    #[inline]
    pub(super) fn enter(&self, call: u16) {
        self.words.call.store(call | INSIDE, Relaxed);
        self.count();
    }

    #[inline]
    pub(super) fn leave(&self, call: u16) {
        self.words.call.store(call, Relaxed);
        // Without this store the next call would seem to wait for the same event as this one,
        // even if the next call does not wait at all.
        self.words.waits.store(Waits::Nothing as u32, Relaxed);
        self.since_ns.store(0, Relaxed);
        self.count();
    }

    #[inline]
    fn count(&self) {
        self.calls
            .store(self.calls.load(Relaxed).wrapping_add(1), Relaxed);
    }

    pub(super) fn set_about(&self, about: &About) {
        self.words.set_about(about);
    }

    #[inline]
    pub(super) fn waits_since(&self, now_ns: u64) {
        if self.since_ns.load(Relaxed) == 0 {
            self.since_ns.store(now_ns, Relaxed);
        }
    }

    /// Returns the number of calls that the rank has entered plus the number that it has left.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }

    /// Returns the number of the current call (0 outside of calls), and that of the latest call.
    pub(super) fn current_and_latest(&self) -> (u16, u16) {
        let call = self.words.call();
        let latest = call & !INSIDE;
        (if call & INSIDE == 0 { 0 } else { latest }, latest)
    }

    pub(super) fn about(&self) -> About {
        self.words.about()
    }

    pub(super) fn since_ns(&self) -> u64 {
        self.since_ns.load(Relaxed)
    }
}

//! A process's inbox: its doorbell, and bitmaps of the peers that have ever sent,
//! of those that wait for ring space, and of those that have sent new messages.
//!
//! Each process of a node has one inbox. The process itself is the *owner*;
//! all others are *senders*, identified by their rank on the node.
//!
//! * `doorbell`: see [`crate::doorbell`].
//!   The doorbell's word has its own cache line:
//!   every sender reads the word after every message, and finds it in its own cache.
//! * `calls` counts the senders' requests, which are rare.
//!   So the owner polls one word instead of two bitmaps.
//!   A sender sets its bit in `senders` (one time,
//!   when its ring to the owner exists) or in `wants_space` (it found no space and must be rung
//!   when there is space), and then adds one to `calls`.
//! * `news` has the peers that have sent. The bitmap is used only while the owner requests it with
//!   [`MARK`], because the owner has too many senders to scan.
//!
//! SYNC POINT `inbox.calls`: a sender sets its bit and then adds to the count (Release);
//! the owner loads the count (Acquire) before it takes the bits.
#![allow(unsafe_code)]

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::bitmap::Bitmap;
use crate::doorbell::{ASLEEP, Doorbell, FENCE, GONE, MARK};
use crate::fence::light;

/// A process's inbox in shared memory: the owner's requests to senders, and the senders' requests.
#[derive(Debug)]
#[repr(C)]
pub struct Inbox {
    doorbell: Line<Doorbell>,
    calls: Line<AtomicU32>,
    senders: Bitmap,
    wants_space: Bitmap,
    news: Bitmap,
}

/// A value in its own two cache lines, because processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Line<T>(T);

#[cfg(not(loom))]
// SAFETY: the fields are atomics and padding that no code writes, so every bit pattern is valid.
unsafe impl crate::mem::Shared for Inbox {}

impl Inbox {
    /// Returns an empty inbox in private memory;
    /// zeroed shared memory is also an empty inbox.
    pub fn new() -> Inbox {
        Inbox {
            doorbell: Line::default(),
            calls: Line(AtomicU32::new(0)),
            senders: Bitmap::new(),
            wants_space: Bitmap::new(),
            news: Bitmap::new(),
        }
    }

    /// Returns the doorbell that wakes the owner.
    pub fn doorbell(&self) -> &Doorbell {
        &self.doorbell.0
    }

    /// Notifies the owner that `me` has published a message.
    /// The call executes the sender's only fence, and usually one load.
    ///
    /// Returns false if the owner has left.
    #[inline(always)]
    pub fn notify(&self, me: usize) -> bool {
        // SYNC POINT doorbell.sleep
        fence(Ordering::SeqCst);
        let wishes = self.doorbell.0.wishes();
        wishes & !FENCE == 0 || self.fulfil(wishes, me)
    }

    /// As [`Inbox::notify`], for a process that has registered for `membarrier`
    /// ([`crate::fence::register`]). The other side executes the full fence,
    /// so this side usually executes one load and no fence.
    #[inline(always)]
    pub fn notify_lightly(&self, me: usize) -> bool {
        // SYNC POINT doorbell.sleep
        light();
        self.doorbell.0.wishes() == 0 || self.notify(me)
    }

    #[cold]
    fn fulfil(&self, wishes: u32, me: usize) -> bool {
        if wishes & MARK != 0 {
            self.news.mark(me);
        }
        // The owner may have gone to sleep after the caller's load of the word.
        // Then either the owner sees the bit, or the load below sees that the owner sleeps.
        let wishes = if wishes & MARK != 0 {
            fence(Ordering::SeqCst);
            self.doorbell.0.wishes()
        } else {
            wishes
        };
        if wishes & ASLEEP != 0 {
            self.doorbell.0.wake();
        }
        wishes & GONE == 0
    }

    /// Sets the bit of `me` as a sender; called once, before the first message's [`Inbox::notify`].
    pub fn announce(&self, me: usize) {
        self.senders.mark(me);
        // SYNC POINT inbox.calls
        self.calls.0.fetch_add(1, Ordering::Release);
    }

    /// Requests that the owner ring `me` when the owner has freed space.
    /// The caller then calls [`Inbox::notify`] and polls for space once more.
    ///
    /// If the owner is just taking an earlier bit of `me`, the owner rings `me` afterwards.
    /// So no request is lost, although this call does not set the bit again.
    pub fn want_space(&self, me: usize) {
        self.wants_space.mark(me);
        // SYNC POINT inbox.calls
        self.calls.0.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of requests so far (owner only).
    /// When the number changes, the owner polls [`Inbox::senders`] and [`Inbox::take_wants_space`].
    #[inline(always)]
    pub fn calls(&self) -> u32 {
        // SYNC POINT inbox.calls
        self.calls.0.load(Ordering::Acquire)
    }

    /// Returns word `w` of the bitmap of all peers that have ever announced themselves.
    pub fn senders(&self, w: usize) -> u64 {
        self.senders.peek(w)
    }

    /// Returns and clears word `w` of the bitmap of the senders that wait for space.
    pub fn take_wants_space(&self, w: usize) -> u64 {
        self.wants_space.take(w)
    }

    /// Returns and clears word `w` of the bitmap of the senders with new messages.
    #[inline]
    pub fn take_news(&self, w: usize) -> u64 {
        self.news.take(w)
    }

    /// Returns true if a bit is set in the first `words` words of `news`.
    #[inline]
    pub fn any_news(&self, words: usize) -> bool {
        self.news.any(words)
    }
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox::new()
    }
}

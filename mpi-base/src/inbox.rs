//! How senders get a process's attention: its doorbell, which peers have ever sent, which wait for room, which have news.
//!
//! One inbox for each process of a node; the process itself is the *owner*, all others are *senders*, known by their rank on the node.
//!
//! * `bell`: see [`crate::doorbell`].
//!   Its word shares no line with anything, because every sender reads it after every message and should find it in its own cache.
//! * `calls` counts requests of the rare kind, so that the owner reads one word, not two bitmaps, in each round:
//!   a sender marks `senders` (once in its life: "my ring to you exists now") or `starving` ("I found no room, ring me when there is") and then adds one.
//! * `news`: which peers have sent; only used when the owner asked for marks ([`MARK`]), which it does when it has too many senders to scan.
//!
//! SYNC POINT `inbox.calls`: the sender's add (Release) after its mark is read by the owner (Acquire) before it takes the marks.
#![allow(unsafe_code)]

use crate::atomic::{AtomicU32, Ordering, fence};
use crate::bitmap::Bitmap;
use crate::doorbell::{Doorbell, FENCE, GONE, MARK, SLEEPING};
use crate::fence::light;

/// The owner's published wishes and its senders' requests.
#[derive(Debug)]
#[repr(C)]
pub struct Inbox {
    bell: Line<Doorbell>,
    calls: Line<AtomicU32>,
    senders: Bitmap,
    starving: Bitmap,
    news: Bitmap,
}

/// A value with two cache lines of its own, since processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(C, align(128))]
struct Line<T>(T);

// SAFETY: atomics only.
#[cfg(not(loom))]
unsafe impl crate::mem::Shared for Inbox {}

impl Inbox {
    /// An inbox outside of shared memory; in shared memory zeroed bytes are an empty inbox.
    pub fn new() -> Inbox {
        Inbox {
            bell: Line::default(),
            calls: Line(AtomicU32::new(0)),
            senders: Bitmap::new(),
            starving: Bitmap::new(),
            news: Bitmap::new(),
        }
    }

    /// What wakes the owner of the inbox.
    pub fn bell(&self) -> &Doorbell {
        &self.bell.0
    }

    /// Tells the owner that `me` has published a message: the one fence of the sending side, and usually one load.
    ///
    /// Answers whether the owner is still there.
    #[inline(always)]
    pub fn notify(&self, me: usize) -> bool {
        // SYNC POINT bell.sleep
        fence(Ordering::SeqCst);
        let wishes = self.bell.0.wishes();
        wishes & !FENCE == 0 || self.fulfil(wishes, me)
    }

    /// As [`Inbox::notify`], from a process whose fences others may execute ([`crate::fence::register`]): usually one load and no fence.
    #[inline(always)]
    pub fn notify_lightly(&self, me: usize) -> bool {
        // SYNC POINT bell.sleep
        light();
        self.bell.0.wishes() == 0 || self.notify(me)
    }

    #[cold]
    fn fulfil(&self, wishes: u32, me: usize) -> bool {
        if wishes & MARK != 0 {
            self.news.mark(me);
        }
        // The mark must be visible to an owner that goes to sleep between our first look and here.
        let wishes = if wishes & MARK != 0 {
            fence(Ordering::SeqCst);
            self.bell.0.wishes()
        } else {
            wishes
        };
        if wishes & SLEEPING != 0 {
            self.bell.0.wake();
        }
        wishes & GONE == 0
    }

    /// Announces `me` as a sender, once; the first message's [`Inbox::notify`] comes after it.
    pub fn announce(&self, me: usize) {
        self.senders.mark(me);
        // SYNC POINT inbox.calls
        self.calls.0.fetch_add(1, Ordering::Release);
    }

    /// Asks the owner to ring `me` when it has made room; [`Inbox::notify`] and one more look for room come after it.
    ///
    /// If the owner takes an older mark of ours at this moment, it rings us after that, so nothing is lost by not marking again.
    pub fn starve(&self, me: usize) {
        self.starving.mark(me);
        // SYNC POINT inbox.calls
        self.calls.0.fetch_add(1, Ordering::Release);
    }

    /// How many requests there have been (owner only); when it changes, look at [`Inbox::senders`] and [`Inbox::take_starving`].
    #[inline(always)]
    pub fn calls(&self) -> u32 {
        // SYNC POINT inbox.calls
        self.calls.0.load(Ordering::Acquire)
    }

    /// Word `w` of the bitmap of all that have ever sent.
    pub fn senders(&self, w: usize) -> u64 {
        self.senders.peek(w)
    }

    /// Takes word `w` of the bitmap of those that wait for room.
    pub fn take_starving(&self, w: usize) -> u64 {
        self.starving.take(w)
    }

    /// Takes word `w` of the bitmap of those with news.
    #[inline]
    pub fn take_news(&self, w: usize) -> u64 {
        self.news.take(w)
    }

    /// Whether any peer among the first `words` words has marked news.
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

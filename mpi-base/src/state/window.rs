//! The sixth cache line of the state page: the window at which the rank waits,
//! written only if the wait lasts longer than a few polls.

use super::name::{NAME_WORDS, name_words, read_name, store_name};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The action of another member that a rank waits for at a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum WindowNeed {
    /// A value that this version of the library does not know.
    #[default]
    Unknown = 0,
    /// The member must grant its lock.
    Lock = 1,
    /// The member must post (`MPI_Win_post`), which exposes its part of the window.
    Post = 2,
    /// The member must complete (`MPI_Win_complete`), which ends its accesses.
    Complete = 3,
    /// The member must execute accesses that this rank has sent to it.
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

/// The window at which a rank waits, and the reason; [`About`](super::About) names the member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AboutWindow {
    /// The window's name, or the end of a long name; empty if the window has no name.
    pub name: String,
    /// The action that the member has to perform.
    pub need: WindowNeed,
    /// The rank in the job that can end the wait: the holder of the lock, or else the member.
    /// `None` if that rank is unknown or not on this node.
    pub on: Option<u32>,
    /// The number of calls entered plus the number of calls left by this rank when the wait began.
    /// If the current number is equal, the rank has entered and left no call since then.
    pub calls: u64,
}

#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct WindowLine {
    /// The counter of [`AboutWindow::calls`].
    calls: AtomicU64,
    /// The action, a [`WindowNeed`] as a number.
    need: AtomicU32,
    /// The rank of [`AboutWindow::on`] plus one; 0 if that rank is unknown.
    on: AtomicU32,
    /// The window's name or its end, padded with zeros.
    name: [AtomicU64; NAME_WORDS],
}

impl WindowLine {
    pub(super) fn set(&self, window: &AboutWindow) {
        store_name(&self.name, &name_words(&window.name));
        self.need.store(window.need as u32, Relaxed);
        let on = window.on.map_or(0, |rank| rank.wrapping_add(1));
        self.on.store(on, Relaxed);
        self.calls.store(window.calls, Relaxed);
    }

    /// Returns the window of the latest recorded wait, which may have ended.
    pub(super) fn latest(&self) -> AboutWindow {
        AboutWindow {
            name: read_name(&self.name),
            need: WindowNeed::from_number(self.need.load(Relaxed)),
            on: self.on.load(Relaxed).checked_sub(1),
            calls: self.calls.load(Relaxed),
        }
    }
}

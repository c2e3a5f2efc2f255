//! The sixth line: the window that the rank waits at, written once it has waited for a moment.

use super::name::{NAME_WORDS, name_words, read_name, store_name};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

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

/// Which window a rank waits at, and what for; [`About`](super::About) says for which member.
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

#[repr(C, align(64))]
#[derive(Debug, Default)]
pub(super) struct WindowLine {
    /// What [`AboutWindow::calls`] says.
    calls: AtomicU64,
    /// A [`WindowNeed`].
    need: AtomicU32,
    /// One more than the rank in the job of [`AboutWindow::on`]; 0 if it is not known.
    on: AtomicU32,
    /// The end of the window's name, filled up with zeros.
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

    /// The latest one, which the rank need not wait at any more.
    pub(super) fn latest(&self) -> AboutWindow {
        AboutWindow {
            name: read_name(&self.name),
            need: WindowNeed::from_number(self.need.load(Relaxed)),
            on: self.on.load(Relaxed).checked_sub(1),
            calls: self.calls.load(Relaxed),
        }
    }
}

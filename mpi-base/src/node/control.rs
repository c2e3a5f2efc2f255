//! A rank's control page: its inbox, its process, its state page, its shared copies,
//! and the location of its event ring.
#![allow(unsafe_code)]

use super::event_ring_head::EventRingHead;
use crate::atomic::{AtomicU32, AtomicU64};
use crate::inbox::Inbox;
use crate::mem::{PAGE, Shared};
use crate::split_copy::{Helping, Offers};
use crate::state::{StatePage, ThreadWaits};

/// The page of the segment in which a rank publishes its state to the other ranks.
#[repr(C)]
pub(super) struct Control {
    pub inbox: Inbox,
    pub presence: Presence,
    pub state: StatePage,
    /// The copies of long messages that this rank shares with their senders.
    pub offers: Offers,
    /// The other rank's copy in which this rank helps.
    pub helping: Helping,
    /// The location of the rank's event ring, if it has one.
    pub event_ring: EventRingHead,
    /// The long waits of the rank's threads, if its messages have lanes.
    /// Added without a new version of the layout: an older rank leaves zeros here.
    pub threads: ThreadWaits,
}

// SAFETY: all fields are atomics; the padding is never written.
unsafe impl Shared for Control {}
// SAFETY: all fields are atomics; the padding is never written.
unsafe impl Shared for StatePage {}
// SAFETY: all fields are atomics; the padding is never written.
unsafe impl Shared for ThreadWaits {}

const _: () = assert!(size_of::<Control>() <= PAGE);

/// The process of a rank. The process writes these fields when it claims the rank and attaches.
#[repr(C, align(128))]
pub(super) struct Presence {
    /// Zero until a process has claimed the rank, then the ID of that process.
    pub pid: AtomicU32,
    /// Nonzero when the fields below are valid.
    pub ready: AtomicU32,
    /// The address of `word` in the rank's private memory; see [`crate::cma`].
    pub address: AtomicU64,
    pub word: AtomicU64,
}

//! A rank's control page: its inbox, its presence, its state page, and the shared copies that it takes part in.
#![allow(unsafe_code)]

use super::event_ring_head::EventRingHead;
use crate::atomic::{AtomicU32, AtomicU64};
use crate::inbox::Inbox;
use crate::mem::{PAGE, Shared};
use crate::split_copy::{Helping, Offers};
use crate::state::StatePage;

/// The part of the segment that describes one rank to the others.
#[repr(C)]
pub(super) struct Control {
    pub inbox: Inbox,
    pub presence: Presence,
    pub state: StatePage,
    /// The copies that this rank shares with senders.
    pub offers: Offers,
    /// The copy of another rank that this rank helps with.
    pub helping: Helping,
    /// The location of the rank's event ring, if it has one.
    pub event_ring: EventRingHead,
}

// SAFETY: its fields are atomics, apart from padding that no code writes.
unsafe impl Shared for Control {}
// SAFETY: its fields are atomics, apart from padding that no code writes.
unsafe impl Shared for StatePage {}

const _: () = assert!(size_of::<Control>() <= PAGE);

/// The process of a rank, written by the rank when it claims and attaches.
#[repr(C, align(128))]
pub(super) struct Presence {
    /// Zero until a process has claimed the rank, then its process number.
    pub pid: AtomicU32,
    /// Set after the fields below.
    pub ready: AtomicU32,
    /// The address of `word` in the rank's memory; see [`crate::cma`].
    pub address: AtomicU64,
    pub word: AtomicU64,
}

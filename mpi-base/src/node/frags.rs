//! Pooled fragments: buffers in the sender's private area, for payloads too long for a byte ring.
//!
//! Ownership: a fragment's state word is [`FREE`] or [`OUT`].
//! The owner sets `OUT`, fills the fragment and sends its token in a ring cell.
//! The receiver reads the fragment and sets `FREE`; afterwards the owner may reuse the fragment.
//! The owner detects returned fragments by polling the outstanding ones, oldest first,
//! so no queue is shared with other processes.
//!
//! SYNC POINT `frags.back`: the receiver stores `FREE` with Release;
//! the owner loads it with Acquire before it fills the fragment again.
//! SYNC POINT `ring.cell` passes the fragment to the receiver.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;

use super::layout::Layout;
use crate::atomic::{AtomicU32, Ordering};
use crate::mem::Segment;

const FREE: u32 = 0;
const OUT: u32 = 1;

/// The owner's handle of its pool of fragments.
#[derive(Debug)]
pub struct FragPool {
    segment: Arc<Segment>,
    layout: Layout,
    rank: u32,
    /// Fragments that are unused or returned; the last one is taken next, as it is probably cached.
    free: Vec<u32>,
    /// Outstanding fragments, oldest first, each with the rank to which it was sent.
    out: VecDeque<(u32, u32)>,
}

impl FragPool {
    pub(super) fn new(segment: Arc<Segment>, layout: Layout, rank: u32) -> FragPool {
        let frags = layout.sizes.frags;
        FragPool {
            segment,
            layout,
            rank,
            free: (0..frags).rev().collect(),
            out: VecDeque::with_capacity(frags as usize),
        }
    }

    /// Returns the length of a fragment in bytes.
    pub fn frag_len(&self) -> usize {
        self.layout.sizes.frag_len as usize
    }

    /// Calls `fill` to write `len` bytes into a fragment for rank `to`;
    /// returns the token for the ring cell, with which the receiver finds the fragment.
    ///
    /// Returns `None` if all fragments are outstanding, or if `len` exceeds the fragment length.
    pub fn fill(&mut self, to: u32, len: usize, fill: impl FnOnce(&mut [u8])) -> Option<u64> {
        if len > self.frag_len() {
            return None;
        }
        let frag = self.next_free()?;
        let at = self.segment.range(self.layout.frag(self.rank, frag), len)?;
        self.state(frag)?.store(OUT, Ordering::Relaxed);
        self.out.push_back((frag, to));
        // SAFETY: the range is inside the segment.
        // `next_free` returned the fragment as unused or as returned by its reader (SYNC POINT
        // frags.back), so no other process accesses it.
        fill(unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), len) });
        Some(frag.into())
    }

    /// Returns true if a fragment is unused or has been returned.
    pub fn has_free(&mut self) -> bool {
        match self.next_free() {
            Some(frag) => {
                self.free.push(frag);
                true
            }
            None => false,
        }
    }

    /// Returns the rank to which the oldest outstanding fragment was sent.
    pub fn slowest(&self) -> Option<u32> {
        self.out.front().map(|&(_, to)| to)
    }

    fn next_free(&mut self) -> Option<u32> {
        // The oldest outstanding fragment, if it was returned, is preferred to an unused one:
        // so the same few fragments are reused cyclically and stay in the cache.
        if let Some(&(frag, _)) = self.out.front()
            && self.is_back(frag)
        {
            self.out.pop_front();
            return Some(frag);
        }
        self.free.pop().or_else(|| {
            // A slow receiver must not prevent the reuse of fragments from other receivers.
            let at = self.out.iter().position(|&(frag, _)| self.is_back(frag))?;
            self.out.remove(at).map(|(frag, _)| frag)
        })
    }

    fn is_back(&self, frag: u32) -> bool {
        // SYNC POINT frags.back
        self.state(frag)
            .is_some_and(|state| state.load(Ordering::Acquire) == FREE)
    }

    fn state(&self, frag: u32) -> Option<&AtomicU32> {
        self.segment.at(self.layout.frag_state(self.rank, frag))
    }
}

/// Calls `f` on the `len` bytes of the fragment with `token` in the pool of rank `owner`,
/// then returns the fragment.
///
/// Returns `None` and accesses nothing if no outstanding fragment has this owner and token.
pub(super) fn read<R>(
    segment: &Segment,
    layout: &Layout,
    owner: u32,
    token: u64,
    len: usize,
    f: impl FnOnce(&[u8]) -> R,
) -> Option<R> {
    let frag = u32::try_from(token).ok()?;
    let named = owner < layout.nlocal && frag < layout.sizes.frags;
    if !named || len > layout.sizes.frag_len as usize {
        return None;
    }
    let state = segment.at::<AtomicU32>(layout.frag_state(owner, frag))?;
    let at = segment.range(layout.frag(owner, frag), len)?;
    if state.load(Ordering::Relaxed) != OUT {
        return None;
    }
    // SAFETY: the range is inside the segment.
    // With the cell, this process received the right to read the fragment until the store below
    // (SYNC POINT ring.cell).
    let result = f(unsafe { std::slice::from_raw_parts(at.as_ptr(), len) });
    // SYNC POINT frags.back
    state.store(FREE, Ordering::Release);
    Some(result)
}

//! Pooled fragments: payloads too long for a ring's byte part, in the sender's private area.
//!
//! Ownership: a fragment's state word is [`FREE`] or [`OUT`].
//! The owner sets `OUT`, fills the fragment and sends its token in a ring cell; the receiver reads it and sets `FREE`; then the owner may reuse it.
//! The owner finds returned fragments by polling the oldest outstanding one, so it needs no queue shared with other processes.
//!
//! SYNC POINT `frags.back`: the receiver's store of `FREE` (Release) is read by the owner (Acquire) before it fills the fragment again.
//! The fragment is handed to the receiver by SYNC POINT `ring.cell`.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::Arc;

use super::layout::Layout;
use crate::atomic::{AtomicU32, Ordering};
use crate::mem::Segment;

const FREE: u32 = 0;
const OUT: u32 = 1;

/// The owner's side of its fragments.
#[derive(Debug)]
pub struct FragPool {
    segment: Arc<Segment>,
    layout: Layout,
    rank: u32,
    /// Fragments that were never used or are known to be returned; the last one pushed is most likely cached.
    free: Vec<u32>,
    /// Outstanding fragments, oldest first, each with the rank it was sent to.
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

    /// Calls `fill` to write `len` bytes into a fragment for rank `to`; returns the token for the ring cell.
    ///
    /// `None` if all fragments are outstanding or `len` exceeds the fragment length.
    pub fn fill(&mut self, to: u32, len: usize, fill: impl FnOnce(&mut [u8])) -> Option<u64> {
        if len > self.frag_len() {
            return None;
        }
        let frag = self.next_free()?;
        let at = self.segment.range(self.layout.frag(self.rank, frag), len)?;
        self.state(frag)?.store(OUT, Ordering::Relaxed);
        self.out.push_back((frag, to));
        // SAFETY: inside the segment; `next_free` returned the fragment as unused or as returned by its reader (SYNC POINT frags.back), so no other process accesses it.
        fill(unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), len) });
        Some(frag.into())
    }

    /// Returns true if a fragment is available now.
    pub fn has_free(&mut self) -> bool {
        match self.next_free() {
            Some(frag) => {
                self.free.push(frag);
                true
            }
            None => false,
        }
    }

    /// Returns the rank that holds the oldest outstanding fragment.
    pub fn slowest(&self) -> Option<u32> {
        self.out.front().map(|&(_, to)| to)
    }

    fn next_free(&mut self) -> Option<u32> {
        // If the oldest outstanding fragment has been returned, it is preferred to an unused one: reusing few fragments in turn keeps them in the cache.
        if let Some(&(frag, _)) = self.out.front()
            && self.is_back(frag)
        {
            self.out.pop_front();
            return Some(frag);
        }
        self.free.pop().or_else(|| {
            // A slow receiver must not prevent the reuse of fragments that others have returned.
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

/// Calls `f` on the `len` bytes of the fragment that rank `owner` named by `token`, then returns the fragment.
///
/// Returns `None` and touches nothing if the pair names no outstanding fragment.
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
    // SAFETY: inside the segment; the cell that carried the token gave this process the fragment until the store below (SYNC POINT ring.cell).
    let result = f(unsafe { std::slice::from_raw_parts(at.as_ptr(), len) });
    // SYNC POINT frags.back
    state.store(FREE, Ordering::Release);
    Some(result)
}

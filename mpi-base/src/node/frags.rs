//! Pooled fragments: payloads too long for a ring's byte part, in the sender's private area.
//!
//! Which side touches what: a fragment's state word says [`FREE`] or [`OUT`].
//! The owner sets `OUT`, fills the fragment and names it in a ring cell; the receiver reads it and sets `FREE`; then it is the owner's again.
//! The owner finds fragments that came back by looking at the oldest one out, so it needs no queue shared with any process.
//!
//! SYNC POINT `frags.back`: the receiver's store of `FREE` (Release) is read by the owner (Acquire) before it fills the fragment again.
//! The way there is SYNC POINT `ring.cell`.
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
    /// Never used yet or known to be back; the last one in is the warmest.
    free: Vec<u32>,
    /// Out, oldest first, and to which rank.
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

    /// The longest payload of a fragment.
    pub fn frag_len(&self) -> usize {
        self.layout.sizes.frag_len as usize
    }

    /// Has `fill` write `len` bytes into a fragment meant for rank `to`; the answer is the token for the ring cell.
    ///
    /// `None` if all fragments are out or `len` is longer than a fragment.
    pub fn fill(&mut self, to: u32, len: usize, fill: impl FnOnce(&mut [u8])) -> Option<u64> {
        if len > self.frag_len() {
            return None;
        }
        let frag = self.next_free()?;
        let at = self.segment.range(self.layout.frag(self.rank, frag), len)?;
        self.state(frag)?.store(OUT, Ordering::Relaxed);
        self.out.push_back((frag, to));
        // SAFETY: in the segment; the state word says that the fragment is ours, and SYNC POINT frags.back that its reader is through.
        fill(unsafe { std::slice::from_raw_parts_mut(at.as_ptr(), len) });
        Some(frag.into())
    }

    /// Whether a fragment could be had now.
    pub fn has_free(&mut self) -> bool {
        match self.next_free() {
            Some(frag) => {
                self.free.push(frag);
                true
            }
            None => false,
        }
    }

    /// Which rank holds the fragment that has been out longest.
    pub fn slowest(&self) -> Option<u32> {
        self.out.front().map(|&(_, to)| to)
    }

    fn next_free(&mut self) -> Option<u32> {
        // The oldest that is back is better than a fresh one: few fragments in turn stay in the cache.
        if let Some(&(frag, _)) = self.out.front()
            && self.is_back(frag)
        {
            self.out.pop_front();
            return Some(frag);
        }
        self.free.pop().or_else(|| {
            // One slow receiver must not hold up the fragments of the others.
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

/// Shows `len` bytes of the fragment that rank `owner` named by `token` to `f`, then gives the fragment back.
///
/// `None`, and nothing touched, if the pair names no fragment that is out.
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
    // SAFETY: in the segment; the cell that carried the token made the fragment ours until the store below.
    let result = f(unsafe { std::slice::from_raw_parts(at.as_ptr(), len) });
    // SYNC POINT frags.back
    state.store(FREE, Ordering::Release);
    Some(result)
}

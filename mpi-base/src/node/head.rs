//! The header of a node's segment. Every process computes the same [`Layout`] from its numbers.
//!
//! The creator of the segment writes the header before another process receives the descriptor;
//! each process that maps the segment reads the header.
#![allow(unsafe_code)]

use std::os::fd::AsFd;
use std::sync::Arc;

use super::error::NodeError;
use super::layout::{Layout, Sizes};
use crate::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::mem::{PAGE, Segment, Shared};

const MAGIC: u64 = u64::from_le_bytes(*b"PORTCULL");
pub(super) const VERSION: u32 = 4;

/// The fields of the header that an attaching process reads.
#[repr(C)]
pub(super) struct Head {
    magic: AtomicU64,
    version: AtomicU32,
    pub(super) nlocal: AtomicU32,
    ring_cells: AtomicU32,
    ring_bytes: AtomicU32,
    ring_span: AtomicU32,
    frags: AtomicU32,
    frag_len: AtomicU32,
    arena_len: AtomicU64,
}

// SAFETY: the fields are atomics, so every bit pattern is valid and every write is atomic.
unsafe impl Shared for Head {}

const _: () = assert!(size_of::<Head>() <= PAGE);

/// Fills the header of a new segment.
pub(super) fn write_head(fd: impl AsFd, nlocal: u32, sizes: Sizes) -> Result<(), NodeError> {
    let segment = map(fd, PAGE)?;
    let head = segment.at::<Head>(0).ok_or(NodeError::NotANode)?;
    head.version.store(VERSION, Ordering::Relaxed);
    head.nlocal.store(nlocal, Ordering::Relaxed);
    head.ring_cells.store(sizes.ring_cells, Ordering::Relaxed);
    head.ring_bytes.store(sizes.ring_bytes, Ordering::Relaxed);
    head.ring_span.store(sizes.ring_span, Ordering::Relaxed);
    head.frags.store(sizes.frags, Ordering::Relaxed);
    head.frag_len.store(sizes.frag_len, Ordering::Relaxed);
    head.arena_len.store(sizes.arena_len, Ordering::Relaxed);
    head.magic.store(MAGIC, Ordering::Release);
    Ok(())
}

pub(super) fn map(fd: impl AsFd, bytes: usize) -> Result<Arc<Segment>, NodeError> {
    Segment::map(fd, bytes)
        .map(Arc::new)
        .map_err(|error| NodeError::Map { bytes, error })
}

/// Reads and checks the layout of a segment that another process created.
pub(super) fn read_head(fd: impl AsFd) -> Result<Layout, NodeError> {
    let segment = Segment::map(fd, PAGE).map_err(|_| NodeError::NotANode)?;
    let head = segment.at::<Head>(0).ok_or(NodeError::NotANode)?;
    if head.magic.load(Ordering::Acquire) != MAGIC {
        return Err(NodeError::NotANode);
    }
    let found = head.version.load(Ordering::Relaxed);
    if found != VERSION {
        return Err(NodeError::Version {
            found,
            ours: VERSION,
        });
    }
    let nlocal = head.nlocal.load(Ordering::Relaxed);
    let sizes = Sizes {
        ring_cells: head.ring_cells.load(Ordering::Relaxed),
        ring_bytes: head.ring_bytes.load(Ordering::Relaxed),
        ring_span: head.ring_span.load(Ordering::Relaxed),
        frags: head.frags.load(Ordering::Relaxed),
        frag_len: head.frag_len.load(Ordering::Relaxed),
        arena_len: head.arena_len.load(Ordering::Relaxed),
    };
    Layout::new(nlocal, sizes).ok_or(NodeError::Sizes { nlocal })
}

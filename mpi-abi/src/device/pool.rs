//! Pinned host memory for copies of device memory.
//!
//! Block sizes are powers of two. Blocks are pinned once and never freed: pinning is expensive.
//! This module maps the memory and registers it with the accelerator's library.
//! When the accelerator context ends, the library unpins the memory, and the mapping stays valid.
//! Larger blocks, and blocks beyond the limit, are not pinned and are unmapped after use.

use super::libraries::Located;
use mpi_base::mem::PAGE;
use mpi_base::param::{Level, Param};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The maximum of pinned memory for staged buffers, in bytes.
pub static MAX_PINNED: Param<usize> = Param::new(
    "accelerator",
    "base",
    "max_pinned",
    "256m",
    Level::TUNER,
    "The most bytes of pinned host memory that a rank keeps for copies of buffers in device memory; longer buffers use memory that is not pinned",
);

/// The minimum length in bytes of a message that is copied part by part while it is sent or received.
pub static PIPELINE_MIN: Param<usize> = Param::new(
    "accelerator",
    "base",
    "pipeline_min",
    "128k",
    Level::TUNER,
    "The length in bytes from which a contiguous message in device memory is copied directly between devices of one node, or in pieces while it is sent or received; at least 64k",
);

/// Binary logarithms of the sizes in bytes of the smallest and the largest pooled block:
/// 64 KiB and 64 MiB.
const SHORTEST: u32 = 16;
const LONGEST: u32 = 26;
const SIZES: usize = (LONGEST - SHORTEST + 1) as usize;

/// The error if the host has no memory for a block.
#[derive(Debug)]
pub struct NoMemory;

/// The maximum of pooled memory, in bytes.
static LIMIT: AtomicUsize = AtomicUsize::new(0);

static POOL: Mutex<Pool> = Mutex::new(Pool {
    free: [const { Vec::new() }; SIZES],
    kept: 0,
});

struct Pool {
    /// Free blocks by size class.
    free: [Vec<Mapped>; SIZES],
    /// Total size in bytes of all pooled blocks, free or in use.
    kept: usize,
}

/// The start address of a pooled block, which is never unmapped.
struct Mapped(NonNull<u8>);

// SAFETY: a free block has no owner, and any thread may use its memory.
unsafe impl Send for Mapped {}

fn pool() -> MutexGuard<'static, Pool> {
    POOL.lock().unwrap_or_else(PoisonError::into_inner)
}

static SHORTEST_PIPELINE: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Returns the minimum length in bytes of a message that is copied while it is sent.
pub fn pipeline_min() -> usize {
    SHORTEST_PIPELINE.load(Relaxed)
}

/// Sets the minimum length in bytes of a message that is copied while it is sent.
pub fn set_pipeline_min(bytes: usize) {
    SHORTEST_PIPELINE.store(bytes.max(64 << 10), Relaxed);
}

/// Sets the maximum of pinned memory, in bytes.
pub fn set_limit(bytes: usize) {
    LIMIT.store(bytes, Relaxed);
}

/// A block of host memory with arbitrary content.
pub struct Block {
    start: NonNull<u8>,
    len: usize,
    /// The size class of a pooled block.
    class: Option<usize>,
}

impl Block {
    /// Takes a block of at least `bytes` bytes for a copy of device memory.
    pub fn take(bytes: usize, located: &Located) -> Result<Block, NoMemory> {
        let power = bytes.checked_next_power_of_two().ok_or(NoMemory)?;
        let log = power.trailing_zeros().max(SHORTEST);
        if log > LONGEST {
            return Block::map(bytes);
        }
        let (class, len) = ((log - SHORTEST) as usize, 1usize << log);
        let mut pool = pool();
        if let Some(Mapped(start)) = pool.free[class].pop() {
            return Ok(Block {
                start,
                len,
                class: Some(class),
            });
        }
        if pool.kept + len > LIMIT.load(Relaxed) {
            return Block::map(len);
        }
        let mut block = Block::map(len)?;
        block.class = Some(class);
        pool.kept += len;
        // If the library refuses to pin the block, copies are only slower.
        // SAFETY: a block with a size class is never unmapped.
        unsafe { located.by.pin(&located.memory, block.start.as_ptr(), len) };
        Ok(block)
    }

    /// Maps memory, whose pages are allocated on first use.
    fn map(bytes: usize) -> Result<Block, NoMemory> {
        let len = bytes.checked_next_multiple_of(PAGE).ok_or(NoMemory)?;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: this is a new mapping at an address chosen by the kernel.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len.max(PAGE),
                protection,
                flags,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(NoMemory);
        }
        let start = NonNull::new(start.cast()).ok_or(NoMemory)?;
        Ok(Block {
            start,
            len: len.max(PAGE),
            class: None,
        })
    }

    pub fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        match self.class {
            Some(class) => pool().free[class].push(Mapped(self.start)),
            // SAFETY: `map` mapped this range, and the operation that used it has ended.
            None => unsafe {
                libc::munmap(self.start.as_ptr().cast(), self.len);
            },
        }
    }
}

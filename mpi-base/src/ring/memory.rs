//! The memory of one ring, in a shared segment or on the heap.
#![allow(unsafe_code)]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use super::UNIT;
use crate::atomic::{AtomicU64, prefetch_for_read, prefetch_for_write};
#[cfg(not(loom))]
use crate::mem::PAGE;

/// Page size in bytes.
#[cfg(loom)]
const PAGE: usize = 4096;

/// Maximum length in bytes of a block that is prefetched for writing.
/// The copy of a longer block does not fetch the previous contents of its lines;
/// with a prefetch the next message took half as long again (8 KiB: 0.60 instead of 0.40 us).
const AHEAD: usize = crate::copy::LONG - 1;

/// Minimum size in units (128 KiB) of a byte ring that begins in the middle of a page.
///
/// Long buffers of programs usually begin at a page boundary.
/// A copy between addresses whose lowest twelve bits are nearly equal is slower.
/// Measured with 32 KiB messages through a span of 384 KiB,
/// between two cores that share their nearest caches:
/// 52.5, 54.5 and 54.2 GB/s if the byte ring begins 128,
/// 1,024 and 2,048 bytes after the start of a page;
/// with 64 KiB messages through a span of 512 KiB: 53, 56 and 56.5 GB/s.
const PAGES: u32 = (128 << 10) / UNIT as u32;

/// One cell: control word, two header words, five payload words.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Cell {
    pub words: [AtomicU64; 8],
}

/// The two words in which the consumer sends counts and requests to the producer.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct GivenBack {
    /// Cells (low half) and units of the byte ring (high half) that the consumer has released.
    pub consumed: AtomicU64,
    /// The span that the consumer requests from the producer, in units; 0 before the first request.
    pub span: AtomicU64,
}

/// The size of a ring: the number of its cells, and the length of its byte ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    cells: u32,
    units: u32,
}

impl Shape {
    /// Returns the size of a ring; `cells` must be a power of two from 4 to 2^16,
    /// `bytes` a multiple of 64 up to 64 MiB.
    pub fn new(cells: u32, bytes: u32) -> Option<Shape> {
        let cells_ok = cells.is_power_of_two() && (4..=1 << 16).contains(&cells);
        let bytes_ok = bytes.is_multiple_of(UNIT as u32) && bytes <= 64 << 20;
        (cells_ok && bytes_ok).then_some(Shape {
            cells,
            units: bytes / UNIT as u32,
        })
    }

    /// Returns the number of cells, a power of two.
    pub fn cells(self) -> u32 {
        self.cells
    }

    pub(super) fn units(self) -> u32 {
        self.units
    }

    /// Returns the smallest span of a producer, in units.
    pub(super) fn least_span(self) -> u32 {
        super::LAP.min(self.units / 2)
    }

    /// Returns the number of units after which a producer with span `span` tries to restart
    /// at the start of the byte ring.
    pub(super) fn lap(self, span: u32) -> u32 {
        match span as usize * UNIT > super::NEAR {
            true => span,
            false => self.least_span(),
        }
    }

    /// Returns the size of the byte ring in bytes.
    pub fn bytes(self) -> usize {
        self.units as usize * UNIT
    }

    /// Returns the maximum length in bytes of a payload in the byte ring:
    /// a quarter of the ring. So the payload fits eventually, and several payloads fit together.
    pub fn longest(self) -> usize {
        (self.units as usize / 4 * UNIT).min(super::MAX_LEN)
    }

    /// Returns the number of bytes that a ring of this size occupies in memory.
    pub const fn footprint(self) -> usize {
        self.bytes_at() + self.units as usize * UNIT
    }

    /// Returns the offset of the byte ring in bytes, after the consumer's line and the cells.
    const fn bytes_at(self) -> usize {
        let end = size_of::<GivenBack>() + self.cells as usize * size_of::<Cell>();
        match self.units < PAGES {
            true => end,
            false => end.next_multiple_of(PAGE) + PAGE / 2,
        }
    }
}

/// The memory of one ring, with a reference that keeps the memory mapped or allocated.
#[derive(Clone)]
pub struct RingMemory {
    given_back: NonNull<GivenBack>,
    cells: NonNull<Cell>,
    bytes: NonNull<u8>,
    shape: Shape,
    #[cfg(loom)]
    watch: Arc<Vec<loom::cell::UnsafeCell<()>>>,
    _owner: Arc<dyn Any + Send + Sync>,
}

// SAFETY: cells and `given_back` are atomics. The bytes are accessed only through `Producer` and
// `Consumer`. These pass the bytes to each other with the cells
// (SYNC POINTs ring.cell and ring.consumed).
unsafe impl Send for RingMemory {}

impl RingMemory {
    /// Creates a handle of the ring in `shape.footprint()` bytes at `base`,
    /// which must be zero before the first handle exists.
    ///
    /// # Safety
    /// `base` must be 128-byte aligned and valid as long as `owner` lives;
    /// nothing else may use the memory, and it may only ever have one producer and one consumer.
    #[cfg(not(loom))]
    pub unsafe fn at(base: NonNull<u8>, shape: Shape, owner: Arc<dyn Any + Send + Sync>) -> Self {
        let cells_at = size_of::<GivenBack>();
        let bytes_at = shape.bytes_at();
        RingMemory {
            given_back: base.cast(),
            // SAFETY: `cells_at` is inside the footprint,
            // which is valid memory by this function's contract.
            cells: unsafe { base.add(cells_at) }.cast(),
            // SAFETY: `bytes_at` is inside the footprint or at its end,
            // and the footprint is valid memory by this function's contract.
            bytes: unsafe { base.add(bytes_at) },
            shape,
            _owner: owner,
        }
    }

    /// Creates a ring on the heap, for ranks that are threads and for loom models.
    pub fn on_heap(shape: Shape) -> Self {
        struct Heap {
            given_back: Box<GivenBack>,
            cells: Box<[Cell]>,
            bytes: NonNull<u8>,
            units: usize,
        }
        // SAFETY: the owner only frees the memory; `RingMemory` defines the use of the memory.
        unsafe impl Send for Heap {}
        // SAFETY: no method takes `&Heap`; `RingMemory` defines the use of the memory.
        unsafe impl Sync for Heap {}
        impl Drop for Heap {
            fn drop(&mut self) {
                let line = std::ptr::slice_from_raw_parts_mut(
                    self.bytes.as_ptr().cast::<[u8; UNIT]>(),
                    self.units,
                );
                // SAFETY: the pointer is from the `Box::into_raw` below with the same length,
                // and is freed only here.
                drop(unsafe { Box::from_raw(line) });
            }
        }
        let bytes: Box<[[u8; UNIT]]> = vec![[0; UNIT]; shape.units as usize].into();
        let heap = Arc::new(Heap {
            given_back: Box::new(GivenBack {
                consumed: AtomicU64::new(0),
                span: AtomicU64::new(0),
            }),
            cells: (0..shape.cells)
                .map(|_| Cell {
                    words: std::array::from_fn(|_| AtomicU64::new(0)),
                })
                .collect(),
            // SAFETY: a pointer from a box is not null.
            bytes: unsafe { NonNull::new_unchecked(Box::into_raw(bytes).cast()) },
            units: shape.units as usize,
        });
        RingMemory {
            given_back: NonNull::from(&*heap.given_back),
            cells: NonNull::from(&*heap.cells).cast(),
            bytes: heap.bytes,
            shape,
            #[cfg(loom)]
            watch: Arc::new(
                (0..shape.units)
                    .map(|_| loom::cell::UnsafeCell::new(()))
                    .collect(),
            ),
            _owner: heap,
        }
    }

    /// Returns the size that was passed when this handle was created.
    /// The shape is not stored in shared memory, so one process cannot change it for another.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    #[inline(always)]
    pub(super) fn given_back(&self) -> &GivenBack {
        // SAFETY: the memory is valid while self lives,
        // by the contract of `at` or as allocated by `on_heap`.
        unsafe { self.given_back.as_ref() }
    }

    /// Returns the cell of message number `seq`.
    #[inline(always)]
    pub(super) fn cell(&self, seq: u32) -> &Cell {
        let i = (seq & (self.shape.cells - 1)) as usize;
        // SAFETY: the mask keeps i below the number of cells, which are valid while self lives.
        unsafe { self.cells.add(i).as_ref() }
    }

    /// Prefetches for writing the lines of the block that the next message will probably use,
    /// at a time when no thread waits for these lines.
    ///
    /// The consumer's cache contains these lines since the previous lap;
    /// without a prefetch the next message begins with a round trip per line.
    /// Measured: a 3 KiB message and a stream of such messages take a tenth less time.
    #[inline(always)]
    pub(super) fn expect_block(&self, start: usize, len: usize) {
        if len > AHEAD {
            return;
        }
        let end = (start + len).min(self.shape.units as usize * UNIT);
        for line in (start..end).step_by(UNIT) {
            prefetch_for_write(self.bytes.as_ptr().wrapping_add(line));
        }
    }

    /// Populates the pages of units `from..to` of the byte ring before they are written.
    /// Populating takes half of the time of separate page faults.
    #[cfg(not(any(loom, miri)))]
    pub(super) fn populate(&self, from: u32, to: u32) {
        let (from, to) = (
            from as usize * UNIT,
            to.min(self.shape.units) as usize * UNIT,
        );
        // SAFETY: `from.min(to)` is at most the ring's units, so the result is inside the footprint or at its end.
        let start = unsafe { self.bytes.add(from.min(to)) };
        crate::mem::populate(start, to.saturating_sub(from));
    }

    #[cfg(any(loom, miri))]
    pub(super) fn populate(&self, _from: u32, _to: u32) {}

    /// Prefetches the consumer's published counts before the producer reads them.
    #[inline(always)]
    pub(super) fn expect_given_back(&self) {
        prefetch_for_read(self.given_back.as_ptr().cast());
    }

    /// Prefetches for writing the `count` cells from sequence number `seq` on,
    /// which will probably be written next (as [`RingMemory::expect_block`] does for blocks).
    ///
    /// Measured together with [`RingMemory::await_cells`] in a stream of 8-byte messages:
    /// each message takes 16 to 40 % less time.
    #[inline(always)]
    pub(super) fn expect_cells(&self, seq: u32, count: u32) {
        for i in 0..count {
            prefetch_for_write(std::ptr::from_ref(self.cell(seq.wrapping_add(i))).cast());
        }
    }

    /// Prefetches for reading the `count` cells from number `seq` on, which are probably read soon.
    #[inline(always)]
    pub(super) fn await_cells(&self, seq: u32, count: u32) {
        for i in 0..count {
            prefetch_for_read(std::ptr::from_ref(self.cell(seq.wrapping_add(i))).cast());
        }
    }

    /// Calls `f` on the bytes of a block for writing.
    ///
    /// # Safety
    /// The block is within the byte ring, and the producer owns it now.
    #[inline(always)]
    pub(super) unsafe fn write<R>(
        &self,
        start: usize,
        len: usize,
        f: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        debug_assert!(start + len <= self.shape.units as usize * UNIT);
        #[cfg(loom)]
        for line in &self.watch[start / UNIT..(start + len).div_ceil(UNIT)] {
            line.with_mut(|_| ());
        }
        // SAFETY: the block is in range and by this function's contract the producer owns it,
        // so no other thread accesses it.
        f(unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr().add(start), len) })
    }

    /// Calls `f` on the bytes of a block for reading.
    ///
    /// # Safety
    /// The block is within the byte ring, and the consumer owns it now.
    #[inline(always)]
    pub(super) unsafe fn read<R>(&self, start: usize, len: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        debug_assert!(start + len <= self.shape.units as usize * UNIT);
        #[cfg(loom)]
        for line in &self.watch[start / UNIT..(start + len).div_ceil(UNIT)] {
            line.with(|_| ());
        }
        // SAFETY: the block is in range and by this function's contract the consumer owns it,
        // so no thread writes it.
        f(unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().add(start), len) })
    }
}

impl std::fmt::Debug for RingMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingMemory")
            .field("shape", &self.shape)
            .finish_non_exhaustive()
    }
}

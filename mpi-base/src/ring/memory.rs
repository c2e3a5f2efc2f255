//! The memory of one ring, wherever it lies.
#![allow(unsafe_code)]

use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

use super::UNIT;
use crate::atomic::{AtomicU64, prefetch_for_read, prefetch_for_write};
#[cfg(not(loom))]
use crate::mem::PAGE;

/// Models have no other memory than the heap.
#[cfg(loom)]
const PAGE: usize = 4096;

/// The longest block that is fetched ahead; a longer one is copied in a way that does not want the old lines,
/// and fetching them made the message after it a third slower (8 KiB: 0.60 for 0.40 microseconds).
const AHEAD: usize = crate::copy::LONG - 1;

/// From so many units on, 128 KiB, the bytes of a ring begin in the middle of a page.
///
/// Long data of programs nearly always begin at the beginning of one, and a copy to where the last twelve bits of the address are about the same is slower.
/// A program that copies 32 KiB at a time through 384 KiB, between two processors that share their nearest caches, made 52.5, 54.5 and 54.2 GB/s with bytes that began 128, 1,024 and 2,048 bytes behind a page's beginning,
/// and 53, 56 and 56.5 with 64 KiB at a time through 512 KiB.
const PAGES: u32 = (128 << 10) / UNIT as u32;

/// One message's place: control word, two header words, five payload words.
#[derive(Debug)]
#[repr(C, align(64))]
pub(super) struct Cell {
    pub words: [AtomicU64; 8],
}

/// What the consumer tells.
#[derive(Debug)]
#[repr(C, align(128))]
pub(super) struct GivenBack {
    /// What it has given back: cells in the low half, units of the byte ring in the high half.
    pub consumed: AtomicU64,
    /// How much of the byte ring is to be used, in units; 0 as long as it has no wish.
    pub span: AtomicU64,
}

/// How large a ring is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    cells: u32,
    units: u32,
}

impl Shape {
    /// `cells` must be a power of two from 4 to 2^16; `bytes` a multiple of 64 up to 64 MiB.
    pub fn new(cells: u32, bytes: u32) -> Option<Shape> {
        let cells_ok = cells.is_power_of_two() && (4..=1 << 16).contains(&cells);
        let bytes_ok = bytes.is_multiple_of(UNIT as u32) && bytes <= 64 << 20;
        (cells_ok && bytes_ok).then_some(Shape {
            cells,
            units: bytes / UNIT as u32,
        })
    }

    /// How many messages fit, a power of two.
    pub fn cells(self) -> u32 {
        self.cells
    }

    pub(super) fn units(self) -> u32 {
        self.units
    }

    /// How many units are written before the producer tries to begin again at the start.
    pub(super) fn lap(self) -> u32 {
        super::LAP.min(self.units / 2)
    }

    /// How many bytes there are beside the cells.
    pub fn bytes(self) -> usize {
        self.units as usize * UNIT
    }

    /// The longest payload that goes through the byte ring: a quarter of it, so that it always fits in the end and several are on their way.
    pub fn longest(self) -> usize {
        (self.units as usize / 4 * UNIT).min(super::MAX_LEN)
    }

    /// The size of the memory of such a ring in bytes.
    pub const fn footprint(self) -> usize {
        self.bytes_at() + self.units as usize * UNIT
    }

    /// Where the bytes begin, behind the consumer's line and the cells.
    const fn bytes_at(self) -> usize {
        let end = size_of::<GivenBack>() + self.cells as usize * size_of::<Cell>();
        match self.units < PAGES {
            true => end,
            false => end.next_multiple_of(PAGE) + PAGE / 2,
        }
    }
}

/// The memory of one ring and what keeps it alive.
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

// SAFETY: cells and `given_back` are atomics; the bytes are reached only through `Producer` and `Consumer`, which hand them over by the cells.
unsafe impl Send for RingMemory {}

impl RingMemory {
    /// A ring in `shape.footprint()` bytes at `base`, which were zero when the ring's first user came.
    ///
    /// # Safety
    /// `base` must be 128-byte aligned and valid as long as `owner` lives;
    /// nothing else may use the memory, and it has at most one producer and one consumer, ever.
    #[cfg(not(loom))]
    pub unsafe fn at(base: NonNull<u8>, shape: Shape, owner: Arc<dyn Any + Send + Sync>) -> Self {
        let cells_at = size_of::<GivenBack>();
        let bytes_at = shape.bytes_at();
        RingMemory {
            given_back: base.cast(),
            // SAFETY: inside the footprint, which the caller vouches for.
            cells: unsafe { base.add(cells_at) }.cast(),
            // SAFETY: as above.
            bytes: unsafe { base.add(bytes_at) },
            shape,
            _owner: owner,
        }
    }

    /// A ring on the heap, for ranks that are threads and for models.
    pub fn on_heap(shape: Shape) -> Self {
        struct Heap {
            given_back: Box<GivenBack>,
            cells: Box<[Cell]>,
            bytes: NonNull<u8>,
            units: usize,
        }
        // SAFETY: the owner only frees; see RingMemory for the use of the memory.
        unsafe impl Send for Heap {}
        // SAFETY: as above.
        unsafe impl Sync for Heap {}
        impl Drop for Heap {
            fn drop(&mut self) {
                let line = std::ptr::slice_from_raw_parts_mut(
                    self.bytes.as_ptr().cast::<[u8; UNIT]>(),
                    self.units,
                );
                // SAFETY: made by Box::into_raw below and freed once, here.
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

    /// As both ends were told; it is not in the memory, so that no process can change it for another.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    #[inline(always)]
    pub(super) fn given_back(&self) -> &GivenBack {
        // SAFETY: valid while self lives, by the constructors' contract.
        unsafe { self.given_back.as_ref() }
    }

    /// The cell of message number `seq`.
    #[inline(always)]
    pub(super) fn cell(&self, seq: u32) -> &Cell {
        let i = (seq & (self.shape.cells - 1)) as usize;
        // SAFETY: the mask keeps i below the number of cells.
        unsafe { self.cells.add(i).as_ref() }
    }

    /// Fetches the lines of the block that will probably be written next, while no thread waits for them.
    ///
    /// They are in the consumer's cache from the lap before, so without this the next message begins with a round trip for each.
    /// Measured: a tenth off the time of a 3 KiB message and off a stream of such.
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

    /// Has the system find memory for units `from..to` of the bytes before they are written, which takes half as long as a fault for each page.
    #[cfg(not(any(loom, miri)))]
    pub(super) fn populate(&self, from: u32, to: u32) {
        let (from, to) = (
            from as usize * UNIT,
            to.min(self.shape.units) as usize * UNIT,
        );
        // SAFETY: inside the footprint or at its end.
        let start = unsafe { self.bytes.add(from.min(to)) };
        crate::mem::populate(start, to.saturating_sub(from));
    }

    #[cfg(any(loom, miri))]
    pub(super) fn populate(&self, _from: u32, _to: u32) {}

    /// Fetches what the consumer has given back, before it is looked at.
    #[inline(always)]
    pub(super) fn expect_given_back(&self) {
        prefetch_for_read(self.given_back.as_ptr().cast());
    }

    /// Fetches the `count` cells from number `seq` on that will probably be filled next, as [`RingMemory::expect_block`] does for blocks.
    ///
    /// Measured together with [`RingMemory::await_cells`] in a stream of one-word messages: 16 to 40 % less time for each.
    #[inline(always)]
    pub(super) fn expect_cells(&self, seq: u32, count: u32) {
        for i in 0..count {
            prefetch_for_write(std::ptr::from_ref(self.cell(seq.wrapping_add(i))).cast());
        }
    }

    /// Asks for the `count` cells from number `seq` on, which the consumer will probably read soon.
    #[inline(always)]
    pub(super) fn await_cells(&self, seq: u32, count: u32) {
        for i in 0..count {
            prefetch_for_read(std::ptr::from_ref(self.cell(seq.wrapping_add(i))).cast());
        }
    }

    /// Runs `f` on the bytes of a block as its writer.
    ///
    /// # Safety
    /// The block lies in the byte ring and is the producer's now.
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
        // SAFETY: in range, and by the caller's promise no one else reads or writes it now.
        f(unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr().add(start), len) })
    }

    /// Runs `f` on the bytes of a block as its reader.
    ///
    /// # Safety
    /// The block lies in the byte ring and is the consumer's now.
    #[inline(always)]
    pub(super) unsafe fn read<R>(&self, start: usize, len: usize, f: impl FnOnce(&[u8]) -> R) -> R {
        debug_assert!(start + len <= self.shape.units as usize * UNIT);
        #[cfg(loom)]
        for line in &self.watch[start / UNIT..(start + len).div_ceil(UNIT)] {
            line.with(|_| ());
        }
        // SAFETY: in range, and by the caller's promise no one writes it now.
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

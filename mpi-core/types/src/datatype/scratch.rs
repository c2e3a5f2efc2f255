//! Temporary buffers in library memory, for collective algorithms.
#![allow(unsafe_code)]

use std::alloc::{Layout as Memory, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::rc::Rc;

use super::{Datatype, RecvBuf, SendBuf};

/// The error if memory for a temporary buffer cannot be allocated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory {
    pub bytes: i64,
}

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "there is no memory for a temporary of {} bytes",
            self.bytes
        )
    }
}

impl std::error::Error for NoMemory {}

/// Zeroed bytes on the heap, aligned for every predefined type and for vector instructions.
pub struct Block {
    start: NonNull<u8>,
    memory: Memory,
}

const ALIGN: usize = 64;

impl Block {
    fn new(len: i64) -> Result<Block, NoMemory> {
        let error = NoMemory { bytes: len };
        let size = usize::try_from(len.max(1)).map_err(|_| error)?;
        let memory = Memory::from_size_align(size, ALIGN).map_err(|_| error)?;
        // SAFETY: the size is at least 1 byte.
        let start = unsafe { alloc_zeroed(memory) };
        let start = NonNull::new(start).ok_or(error)?;
        Ok(Block { start, memory })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `new` got `start` from `alloc_zeroed` with this `memory`, and the last buffer
        // that refers to the block has been dropped.
        unsafe { dealloc(self.start.as_ptr(), self.memory) };
    }
}

/// Library memory for `count` elements of a datatype.
///
/// The memory starts at the lowest byte of data of all elements, so a lower bound wastes no memory.
/// Element 0 is at offset `-span.start` of the memory, which is `-true_lb` for positive extents.
/// The methods take ranges of elements, so an algorithm does not need the offset of element 0.
///
/// The buffers of one scratch follow MPI's rule: while one operation writes data of the scratch,
/// no other operation uses these data.
#[derive(Clone)]
pub struct Scratch {
    block: Rc<Block>,
    origin: *mut u8,
    count: i64,
    datatype: Datatype,
}

impl Scratch {
    /// Allocates zeroed memory for `count` elements.
    /// The last buffer that refers to the memory frees it.
    pub fn new(count: i64, datatype: &Datatype) -> Result<Scratch, NoMemory> {
        let span = datatype.span(count);
        let block = Rc::new(Block::new(span.end.saturating_sub(span.start))?);
        Ok(Scratch {
            origin: block.start.as_ptr().wrapping_offset(-span.start as isize),
            block,
            count: count.max(0),
            datatype: datatype.clone(),
        })
    }

    /// Allocates `len` bytes.
    pub fn bytes(len: i64) -> Result<Scratch, NoMemory> {
        Scratch::new(len, &super::Named::BYTE.into())
    }

    /// Allocates `len` bytes of packed data, whose type signature is not known.
    pub fn packed(len: i64) -> Result<Scratch, NoMemory> {
        Scratch::new(len, &super::Named::PACKED.into())
    }

    /// Returns the elements in the range `elements` as a send buffer.
    pub fn send(&self, elements: Range<i64>) -> SendBuf {
        self.recv(elements).as_send()
    }

    /// Returns the elements in the range `elements` as a receive buffer.
    pub fn recv(&self, elements: Range<i64>) -> RecvBuf {
        self.all().slice(elements)
    }

    /// Returns all elements as a receive buffer.
    pub fn all(&self) -> RecvBuf {
        let owner = self.block.clone();
        RecvBuf::of_scratch(self.origin, self.count, self.datatype.clone(), owner)
    }

    /// Returns the number of elements.
    pub fn count(&self) -> i64 {
        self.count
    }

    /// Returns the datatype for which the memory was allocated.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }
}

//! Memory of our own that is seen as buffers, for the temporaries of collective algorithms.
#![allow(unsafe_code)]

use std::alloc::{Layout as Memory, alloc_zeroed, dealloc};
use std::fmt;
use std::ops::Range;
use std::ptr::NonNull;
use std::rc::Rc;

use super::{Datatype, RecvBuf, SendBuf};

/// The machine has no memory for a temporary.
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
        // SAFETY: the size is not zero.
        let start = unsafe { alloc_zeroed(memory) };
        let start = NonNull::new(start).ok_or(error)?;
        Ok(Block { start, memory })
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // SAFETY: `start` came from `alloc_zeroed` with this `memory`, and the last view is gone.
        unsafe { dealloc(self.start.as_ptr(), self.memory) };
    }
}

/// Memory of our own for `count` elements of a datatype.
///
/// Its first byte is the lowest byte of data of all elements, so nothing is wasted on a lower bound:
/// element 0 starts at `-span.start` of the block, which is `-true_lb` for the usual positive extent.
/// Views speak in elements, so an algorithm need not know.
///
/// Views of one scratch follow MPI's rule for buffers: what one operation writes, no other uses at the same time.
#[derive(Clone)]
pub struct Scratch {
    block: Rc<Block>,
    origin: *mut u8,
    count: i64,
    datatype: Datatype,
}

impl Scratch {
    /// Room for so many elements, zeroed; freed with the last view of it.
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

    /// So many bytes.
    pub fn bytes(len: i64) -> Result<Scratch, NoMemory> {
        Scratch::new(len, &super::Named::BYTE.into())
    }

    /// Elements `elements` to be read.
    pub fn send(&self, elements: Range<i64>) -> SendBuf {
        self.recv(elements).as_send()
    }

    /// Elements `elements` to be written.
    pub fn recv(&self, elements: Range<i64>) -> RecvBuf {
        self.all().slice(elements)
    }

    /// All elements.
    pub fn all(&self) -> RecvBuf {
        let owner = self.block.clone();
        RecvBuf::of_scratch(self.origin, self.count, self.datatype.clone(), owner)
    }

    /// How many elements there is room for.
    pub fn count(&self) -> i64 {
        self.count
    }

    /// The type of the elements that it was made for.
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }
}

//! Buffers of `v` and `w` operations, which hold one block for each rank or neighbour.
//!
//! A buffer, an array of counts, one of displacements, and a datatype or an array of them are four arguments that belong together.
//! The number of blocks depends on the communicator, so it is given when they are read.

use super::{IntoI64, RecvMem, SendMem, slice};
use crate::abi::*;
use crate::error::Failure;
use crate::state;
use mpi_core::datatype::{RecvBuf, SendBuf};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::rc::Rc;

/// A block of a buffer: its byte offset, count and datatype.
struct Block {
    offset: isize,
    count: i64,
    datatype: MPI_Datatype,
}

/// An array of counts or displacements of either width.
#[derive(Clone, Copy)]
struct Integers {
    first: *const c_void,
    is_wide: bool,
}

impl Integers {
    fn of<T: IntoI64>(first: *const T) -> Self {
        Integers {
            first: first.cast(),
            is_wide: size_of::<T>() == size_of::<i64>(),
        }
    }

    /// # Safety
    /// A pointer that is not null is valid for reading `n` integers of the width of `of`.
    unsafe fn read(self, n: usize, name: &str) -> Result<Vec<i64>, Failure> {
        // SAFETY: valid for `n` integers of this width by the `# Safety` contract of this function.
        unsafe {
            match self.is_wide {
                true => super::widened(self.first.cast::<i64>(), n, name),
                false => super::widened(self.first.cast::<c_int>(), n, name),
            }
        }
    }
}

/// The datatypes of blocks.
#[derive(Clone, Copy)]
enum Types {
    /// One for all, whose extent is the unit of displacements.
    One(MPI_Datatype),
    /// One for each block; displacements count bytes.
    Each(*const MPI_Datatype),
}

/// The arrays that describe blocks.
#[derive(Clone, Copy)]
struct Shape {
    counts: Integers,
    displacements: Integers,
    types: Types,
}

impl Shape {
    /// Returns the first `n` blocks.
    ///
    /// # Safety
    /// The arrays have `n` elements.
    unsafe fn read(self, n: usize) -> Result<Vec<Block>, Failure> {
        // SAFETY: the arrays have `n` elements by the `# Safety` contract of this function.
        let (counts, displacements) = unsafe {
            (
                self.counts.read(n, "counts")?,
                self.displacements.read(n, "displs")?,
            )
        };
        let both = counts.iter().zip(displacements);
        match self.types {
            Types::One(datatype) => {
                let most = counts.iter().copied().max().unwrap_or(0);
                let extent = state::datatype_of(most, datatype)?.extent();
                let block = |(count, displacement): (&i64, i64)| Block {
                    offset: displacement.wrapping_mul(extent) as isize,
                    count: *count,
                    datatype,
                };
                Ok(both.map(block).collect())
            }
            Types::Each(types) => {
                // SAFETY: `types` has `n` elements by the `# Safety` contract of this function.
                let types = unsafe { slice(types, n, "types")? };
                let block = |((count, displacement), datatype): ((&i64, i64), &_)| Block {
                    offset: displacement as isize,
                    count: *count,
                    datatype: *datatype,
                };
                Ok(both.zip(types).map(block).collect())
            }
        }
    }
}

/// Blocks that a function reads.
#[derive(Clone, Copy)]
pub struct SendBlocks<'a> {
    at: *const c_void,
    shape: Shape,
    of: PhantomData<&'a [u8]>,
}

/// Blocks that a function writes.
#[derive(Clone, Copy)]
pub struct RecvBlocks<'a> {
    at: *mut c_void,
    shape: Shape,
    of: PhantomData<&'a mut [u8]>,
}

impl SendBlocks<'_> {
    /// The blocks of a `v` operation.
    ///
    /// # Safety
    /// What the standard says of the arguments: each array has an element for each rank or neighbour, and the blocks there are send buffers
    /// as [`SendMem::new`] requires, unless the function ignores them.
    pub unsafe fn new(
        at: *const c_void,
        counts: *const impl IntoI64,
        displacements: *const impl IntoI64,
        datatype: MPI_Datatype,
    ) -> Self {
        SendBlocks {
            at,
            shape: Shape {
                counts: Integers::of(counts),
                displacements: Integers::of(displacements),
                types: Types::One(datatype),
            },
            of: PhantomData,
        }
    }

    /// The blocks of a `w` operation.
    ///
    /// # Safety
    /// As [`SendBlocks::new`].
    pub unsafe fn typed(
        at: *const c_void,
        counts: *const impl IntoI64,
        displacements: *const impl IntoI64,
        datatypes: *const MPI_Datatype,
    ) -> Self {
        // SAFETY: the contract is the same.
        let mut blocks = unsafe { Self::new(at, counts, displacements, MPI_DATATYPE_NULL) };
        blocks.shape.types = Types::Each(datatypes);
        blocks
    }

    pub fn address(self) -> *const c_void {
        self.at
    }

    /// Returns the blocks.
    ///
    /// # Safety
    /// The operation has `n` blocks by the standard: one for each rank that it addresses, or one for each neighbour.
    pub unsafe fn read(self, n: usize) -> Result<Rc<[SendBuf]>, Failure> {
        // SAFETY: the arrays have `n` elements by the `# Safety` contract of this function and that of `new`.
        let blocks = unsafe { self.shape.read(n)? };
        // An empty block may be anywhere, also in a null buffer.
        let one = |b: Block| {
            let at = self.at.wrapping_byte_offset(b.offset);
            // SAFETY: the block is a send buffer by the contract of `new`.
            unsafe { SendMem::new(at, b.count, b.datatype) }.buffer()
        };
        blocks.into_iter().map(one).collect()
    }
}

impl RecvBlocks<'_> {
    /// The blocks of a `v` operation.
    ///
    /// # Safety
    /// What the standard says of the arguments: each array has an element for each rank or neighbour, and the blocks there are receive buffers
    /// as [`RecvMem::new`] requires, unless the function ignores them.
    pub unsafe fn new(
        at: *mut c_void,
        counts: *const impl IntoI64,
        displacements: *const impl IntoI64,
        datatype: MPI_Datatype,
    ) -> Self {
        RecvBlocks {
            at,
            shape: Shape {
                counts: Integers::of(counts),
                displacements: Integers::of(displacements),
                types: Types::One(datatype),
            },
            of: PhantomData,
        }
    }

    /// The blocks of a `w` operation.
    ///
    /// # Safety
    /// As [`RecvBlocks::new`].
    pub unsafe fn typed(
        at: *mut c_void,
        counts: *const impl IntoI64,
        displacements: *const impl IntoI64,
        datatypes: *const MPI_Datatype,
    ) -> Self {
        // SAFETY: the contract is the same.
        let mut blocks = unsafe { Self::new(at, counts, displacements, MPI_DATATYPE_NULL) };
        blocks.shape.types = Types::Each(datatypes);
        blocks
    }

    /// Returns the blocks.
    ///
    /// # Safety
    /// The operation has `n` blocks by the standard: one for each rank that it addresses, or one for each neighbour.
    pub unsafe fn read(self, n: usize) -> Result<Rc<[RecvBuf]>, Failure> {
        // SAFETY: the arrays have `n` elements by the `# Safety` contract of this function and that of `new`.
        let blocks = unsafe { self.shape.read(n)? };
        // An empty block may be anywhere, also in a null buffer.
        let one = |b: Block| {
            let at = self.at.wrapping_byte_offset(b.offset);
            // SAFETY: the block is a receive buffer by the contract of `new`.
            unsafe { RecvMem::new(at, b.count, b.datatype) }.buffer()
        };
        blocks.into_iter().map(one).collect()
    }
}

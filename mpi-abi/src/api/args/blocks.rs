//! Buffers of `v` and `w` collectives, which hold one block for each rank or neighbour.
//!
//! A buffer of blocks is four arguments: address, counts, displacements, and datatype or datatypes.
//! The number of blocks depends on the communicator, so the caller passes the number to `read`.

use super::{Blocks, IntoI64, RecvMem, Resolved, SendMem, slice};
use crate::abi::*;
use crate::error::Failure;
use mpi_core::datatype::{RecvBuf, SendBuf};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::rc::Rc;

/// One block of a buffer: byte offset and element count.
struct Block {
    offset: isize,
    count: i64,
}

/// An array of counts or displacements, either `int` or `MPI_Count`/`MPI_Aint`.
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
    /// A pointer that is not null is valid for reading `n` integers during the call.
    /// The integers have the width of the pointer given to `of`.
    unsafe fn get<'a>(self, n: usize, name: &str) -> Result<Elements<'a>, Failure> {
        // SAFETY: `first` has `n` integers of this width by the contract of this function.
        unsafe {
            Ok(match self.is_wide {
                true => Elements::Wide(slice(self.first.cast::<i64>(), n, name)?),
                false => Elements::Narrow(slice(self.first.cast::<c_int>(), n, name)?),
            })
        }
    }
}

/// The elements of an [`Integers`] array, widened one at a time on access.
/// A widened copy of the array would cost more than a short operation.
#[derive(Clone, Copy)]
enum Elements<'a> {
    Narrow(&'a [c_int]),
    Wide(&'a [i64]),
}

impl Elements<'_> {
    #[inline]
    fn get(self, index: usize) -> i64 {
        match self {
            Elements::Narrow(all) => all[index].into(),
            Elements::Wide(all) => all[index],
        }
    }
}

/// The datatype argument of a `v` collective, or the datatypes of a `w` collective.
#[derive(Clone, Copy)]
enum Types {
    /// One datatype for all blocks. Its extent is the unit of the displacements.
    One(MPI_Datatype),
    /// One datatype for each block. The displacements are in bytes.
    Each(*const MPI_Datatype),
}

/// The counts, displacements and datatypes of the blocks.
#[derive(Clone, Copy)]
struct Shape {
    counts: Integers,
    displacements: Integers,
    types: Types,
}

impl Shape {
    /// Calls `make` for each of the first `n` blocks, and collects the results.
    /// `make` receives the block, the handle of its datatype, and the datatype.
    ///
    /// # Safety
    /// The arrays have `n` elements.
    unsafe fn map<T>(
        self,
        n: usize,
        make: impl Fn(Block, MPI_Datatype, &Resolved) -> Result<T, Failure>,
    ) -> Result<Rc<[T]>, Failure> {
        // SAFETY: the arrays have `n` elements by the `# Safety` contract of this function.
        let (counts, displacements) = unsafe {
            (
                self.counts.get(n, "counts")?,
                self.displacements.get(n, "displs")?,
            )
        };
        let block = |index: usize, unit: isize| Block {
            offset: (displacements.get(index) as isize).wrapping_mul(unit),
            count: counts.get(index),
        };
        let mut all = Vec::with_capacity(n);
        match self.types {
            Types::One(handle) => {
                let most = (0..n).map(|index| counts.get(index)).max().unwrap_or(0);
                let datatype = Resolved::for_elements(most, handle)?;
                let extent = datatype.datatype().extent() as isize;
                for index in 0..n {
                    all.push(make(block(index, extent), handle, &datatype)?);
                }
            }
            Types::Each(types) => {
                // SAFETY: `types` has `n` elements by the `# Safety` contract of this function.
                let types = unsafe { slice(types, n, "types")? };
                let mut last: Option<Resolved> = None;
                for (index, &handle) in types.iter().enumerate() {
                    let datatype = match last.take() {
                        Some(known) if known.is_of(handle) => known,
                        _ => Resolved::for_elements(counts.get(index), handle)?,
                    };
                    all.push(make(block(index, 1), handle, &datatype)?);
                    last = Some(datatype);
                }
            }
        }
        Ok(all.into())
    }
}

/// A send buffer of `v` and `w` collectives.
#[derive(Clone, Copy)]
pub struct SendBlocks<'a> {
    at: *const c_void,
    shape: Shape,
    of: PhantomData<&'a [u8]>,
}

/// A receive buffer of `v` and `w` collectives.
#[derive(Clone, Copy)]
pub struct RecvBlocks<'a> {
    at: *mut c_void,
    shape: Shape,
    of: PhantomData<&'a mut [u8]>,
}

impl SendBlocks<'_> {
    /// Creates the blocks from the arguments of a `v` collective, such as `MPI_Gatherv`.
    ///
    /// # Safety
    /// Each array has one element per rank or neighbour, as the standard requires.
    /// The blocks meet the contract of [`SendMem::new`], unless the function ignores them.
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

    /// Creates the blocks from the arguments of a `w` collective, such as `MPI_Alltoallw`.
    ///
    /// # Safety
    /// The same contract as that of [`SendBlocks::new`].
    pub unsafe fn typed(
        at: *const c_void,
        counts: *const impl IntoI64,
        displacements: *const impl IntoI64,
        datatypes: *const MPI_Datatype,
    ) -> Self {
        // SAFETY: `typed` and `new` have the same contract, see the `# Safety` section.
        let mut blocks = unsafe { Self::new(at, counts, displacements, MPI_DATATYPE_NULL) };
        blocks.shape.types = Types::Each(datatypes);
        blocks
    }

    pub fn address(self) -> *const c_void {
        self.at
    }

    /// Returns the send buffers, one for each block.
    ///
    /// # Safety
    /// The operation has `n` blocks: one per rank that it addresses, or one per neighbour.
    pub unsafe fn read(self, n: usize) -> Result<Rc<[SendBuf]>, Failure> {
        // An empty block may have any address, and the whole buffer may be null.
        let one = |block: Block, handle, datatype: &Resolved| {
            let at = self.at.wrapping_byte_offset(block.offset);
            // SAFETY: the block is a send buffer by the contract of `new`.
            unsafe { SendMem::new(at, block.count, handle) }.buffer_of(datatype)
        };
        // SAFETY: the arrays have `n` elements by the contracts of `read` and `new`.
        unsafe { self.shape.map(n, one) }
    }
}

impl<'a> Blocks for RecvBlocks<'a> {
    type All = RecvMem<'a>;

    #[inline]
    unsafe fn blocks(self, number: u32) -> Option<RecvMem<'a>> {
        let Types::One(datatype) = self.shape.types else {
            return None;
        };
        let n = number as usize;
        // SAFETY: the arrays have `number` elements by the contracts of this function and of `new`.
        let (counts, displacements) = unsafe {
            (
                self.shape.counts.get(n, "counts").ok()?,
                self.shape.displacements.get(n, "displs").ok()?,
            )
        };
        let (count, mut all) = (counts.get(0), 0i64);
        for index in 0..n {
            if counts.get(index) != count || displacements.get(index) != all {
                return None;
            }
            all = all.checked_add(count)?;
        }
        // SAFETY: the blocks are receive buffers by the contract of `new`, and together they are `all` contiguous elements.
        Some(unsafe { RecvMem::new(self.at, all, datatype) })
    }
}

impl RecvBlocks<'_> {
    /// Creates the blocks from the arguments of a `v` collective, such as `MPI_Gatherv`.
    ///
    /// # Safety
    /// Each array has one element per rank or neighbour, as the standard requires.
    /// The blocks meet the contract of [`RecvMem::new`], unless the function ignores them.
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

    /// Creates the blocks from the arguments of a `w` collective, such as `MPI_Alltoallw`.
    ///
    /// # Safety
    /// The same contract as that of [`RecvBlocks::new`].
    pub unsafe fn typed(
        at: *mut c_void,
        counts: *const impl IntoI64,
        displacements: *const impl IntoI64,
        datatypes: *const MPI_Datatype,
    ) -> Self {
        // SAFETY: `typed` and `new` have the same contract, see the `# Safety` section.
        let mut blocks = unsafe { Self::new(at, counts, displacements, MPI_DATATYPE_NULL) };
        blocks.shape.types = Types::Each(datatypes);
        blocks
    }

    /// Returns the receive buffers, one for each block.
    ///
    /// # Safety
    /// The operation has `n` blocks: one per rank that it addresses, or one per neighbour.
    pub unsafe fn read(self, n: usize) -> Result<Rc<[RecvBuf]>, Failure> {
        // An empty block may have any address, and the whole buffer may be null.
        let one = |block: Block, handle, datatype: &Resolved| {
            let at = self.at.wrapping_byte_offset(block.offset);
            // SAFETY: the block is a receive buffer by the contract of `new`.
            unsafe { RecvMem::new(at, block.count, handle) }.buffer_of(datatype)
        };
        // SAFETY: the arrays have `n` elements by the contracts of `read` and `new`.
        unsafe { self.shape.map(n, one) }
    }
}

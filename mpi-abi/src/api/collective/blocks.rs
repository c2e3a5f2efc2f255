//! Blocks of buffers that hold one block for each rank or neighbour.

use crate::abi::*;
use crate::api::args::{IntoI64, recv_buf, send_buf, slice};
use crate::error::Failure;
use crate::state;
use mpi_core::datatype::{RecvBuf, SendBuf};
use std::ffi::c_void;
use std::rc::Rc;

/// A block of a buffer: its byte offset, count and datatype.
pub(super) struct Block {
    offset: isize,
    count: i64,
    datatype: MPI_Datatype,
}

/// The blocks of a `v` operation, whose displacements count elements.
///
/// # Safety
/// The arrays are arguments of the caller with `n` elements.
pub(super) unsafe fn blocks(
    n: usize,
    counts: *const impl IntoI64,
    displacements: *const impl IntoI64,
    datatype: MPI_Datatype,
) -> Result<Vec<Block>, Failure> {
    // SAFETY: `counts` and `displacements` are valid by the `# Safety` contract of this function.
    let (counts, displacements) = unsafe {
        (
            slice(counts, n, "counts")?,
            slice(displacements, n, "displs")?,
        )
    };
    let most = counts.iter().map(|count| count.wide()).max().unwrap_or(0);
    let extent = state::datatype_of(most, datatype)?.extent();
    let block = |(count, displacement): (&_, &_)| Block {
        offset: IntoI64::wide(*displacement).wrapping_mul(extent) as isize,
        count: IntoI64::wide(*count),
        datatype,
    };
    Ok(counts.iter().zip(displacements).map(block).collect())
}

/// The blocks of a `w` operation, whose displacements count bytes.
///
/// # Safety
/// The arrays are arguments of the caller with `n` elements.
pub(super) unsafe fn typed_blocks(
    n: usize,
    counts: *const impl IntoI64,
    displacements: *const impl IntoI64,
    datatypes: *const MPI_Datatype,
) -> Result<Vec<Block>, Failure> {
    // SAFETY: `counts`, `displacements` and `datatypes` are valid by the `# Safety` contract of this function.
    let (counts, displacements, datatypes) = unsafe {
        (
            slice(counts, n, "counts")?,
            slice(displacements, n, "displs")?,
            slice(datatypes, n, "types")?,
        )
    };
    let block = |((count, displacement), datatype): ((&_, &_), &_)| Block {
        offset: IntoI64::wide(*displacement) as isize,
        count: IntoI64::wide(*count),
        datatype: *datatype,
    };
    Ok(counts
        .iter()
        .zip(displacements)
        .zip(datatypes)
        .map(block)
        .collect())
}

/// Returns the send blocks, one for each rank.
///
/// # Safety
/// As [`send_buf`] for each block.
pub(super) unsafe fn sent_blocks(
    buf: *const c_void,
    blocks: Vec<Block>,
) -> Result<Rc<[SendBuf]>, Failure> {
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    let one = |b: Block| unsafe { send_buf(at(buf, &b), b.count, b.datatype) };
    blocks.into_iter().map(one).collect()
}

/// Returns the receive blocks, one for each rank.
///
/// # Safety
/// As [`recv_buf`] for each block.
pub(super) unsafe fn received_blocks(
    buf: *mut c_void,
    blocks: Vec<Block>,
) -> Result<Rc<[RecvBuf]>, Failure> {
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    let one = |b: Block| unsafe { recv_buf(at(buf, &b).cast_mut(), b.count, b.datatype) };
    blocks.into_iter().map(one).collect()
}

/// Returns the address of a block; an empty block may be anywhere, also in a null buffer.
fn at(buf: *const c_void, block: &Block) -> *const c_void {
    buf.wrapping_byte_offset(block.offset)
}

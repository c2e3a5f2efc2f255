//! Send and receive buffers: an address, a count and a datatype in one type.
//!
//! A buffer is checked only when it is read or written, because some functions ignore the argument.
//! The address may be a constant such as `MPI_IN_PLACE`.
//!
//! A buffer in device memory is staged in host memory for the engine ([`device`](crate::device)).

use super::IntoI64;
use crate::abi::*;
use crate::device::{self, Access};
use crate::error::Failure;
use crate::state;
use mpi_core::datatype::{Datatype, Named, RecvBuf, RecvBytes, SendBuf};
use std::ffi::c_void;
use std::marker::PhantomData;

/// Returns the size in bytes of a contiguous buffer of a predefined type (the fast path).
///
/// Returns `None` for all other buffers, and for wrong arguments, which [`checked`] handles.
#[inline(always)]
fn plain(buf: *const c_void, count: i64, datatype: MPI_Datatype) -> Option<usize> {
    let size = Named::dense_size(datatype.0);
    // No buffer is at MPI_BOTTOM (null) or MPI_IN_PLACE.
    let usable = size != 0 && buf.addr() > MPI_IN_PLACE.addr() && count >= 0;
    if !usable || (state::is_staging() && device::takes_general_path(buf.cast())) {
        return None;
    }
    // At most 2^63 - 1 bytes: the length of a slice is an `isize`.
    let bytes = count.checked_mul(size as i64)?;
    Some(bytes as usize)
}

/// Checks the count, the address and the datatype of a buffer argument of `blocks` blocks of `count` elements.
/// Returns the datatype.
#[inline]
fn checked(
    buf: *const c_void,
    count: i64,
    blocks: i64,
    datatype: Datatype,
) -> Result<Datatype, Failure> {
    if count < 0 {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("count is {count}, which is negative"),
        ));
    }
    let bytes = count.checked_mul(datatype.size());
    if bytes.and_then(|bytes| bytes.checked_mul(blocks)).is_none() {
        return Err(too_long(count, blocks, &datatype));
    }
    if !datatype.is_committed() {
        return Err(Failure::new(
            MPI_ERR_TYPE,
            format!("{datatype} has not been committed"),
        ));
    }
    // MPI_BOTTOM is null too, but is only valid with a derived datatype of absolute addresses.
    if buf.is_null() && count > 0 && datatype.as_named().is_some() {
        return Err(Failure::new(
            MPI_ERR_BUFFER,
            format!("the buffer of {count} elements of {datatype} is a null pointer"),
        ));
    }
    if buf.addr() == MPI_IN_PLACE.addr() {
        return Err(Failure::new(
            MPI_ERR_BUFFER,
            "MPI_IN_PLACE is not allowed here",
        ));
    }
    Ok(datatype)
}

#[cold]
fn too_long(count: i64, blocks: i64, datatype: &Datatype) -> Failure {
    let of = match blocks {
        1 => String::new(),
        blocks => format!(" for each of {blocks} blocks"),
    };
    let text = format!(
        "count is {count}{of}, but {datatype} has {} bytes, and a buffer has at most 2^63 - 1",
        datatype.size()
    );
    Failure::new(MPI_ERR_COUNT, text)
}

/// A datatype handle and the datatype to which it refers, looked up once for several buffers.
pub struct Resolved {
    handle: MPI_Datatype,
    datatype: Datatype,
}

impl Resolved {
    #[inline]
    pub fn of(handle: MPI_Datatype) -> Result<Self, Failure> {
        let datatype = state::datatype(handle)?;
        Ok(Resolved { handle, datatype })
    }

    /// Looks up the datatype of buffers that have at most `count` elements each.
    /// `MPI_DATATYPE_NULL` is allowed if `count` is 0.
    #[inline]
    pub fn for_elements(count: i64, handle: MPI_Datatype) -> Result<Self, Failure> {
        let datatype = state::datatype_of(count, handle)?;
        Ok(Resolved { handle, datatype })
    }

    /// Returns true if `handle` equals the stored handle and is not `MPI_DATATYPE_NULL`.
    #[inline]
    pub fn is_of(&self, handle: MPI_Datatype) -> bool {
        handle == self.handle && handle != MPI_DATATYPE_NULL
    }

    #[inline]
    pub fn datatype(&self) -> &Datatype {
        &self.datatype
    }

    /// Returns the datatype of a handle, without a lookup if it is the stored handle.
    #[inline]
    fn named(&self, handle: MPI_Datatype) -> Result<Datatype, Failure> {
        match handle == self.handle {
            true => Ok(self.datatype.clone()),
            false => state::datatype(handle),
        }
    }
}

/// Returns the host address of a buffer that the operation reads, staged if it is on a device.
#[inline]
fn readable(
    at: *const c_void,
    count: i64,
    datatype: &Datatype,
    access: Access,
) -> Result<*const c_void, Failure> {
    if !state::is_staging() {
        return Ok(at);
    }
    let staged = device::stage(at.cast_mut().cast(), count, datatype, access)?;
    Ok(staged.map_or(at, |host| host.cast_const().cast()))
}

/// Returns the host address of a buffer that the operation writes, staged if it is on a device.
#[inline]
fn writable(
    at: *mut c_void,
    count: i64,
    datatype: &Datatype,
    access: Access,
) -> Result<*mut c_void, Failure> {
    if !state::is_staging() {
        return Ok(at);
    }
    let staged = device::stage(at.cast(), count, datatype, access)?;
    Ok(staged.map_or(at, |host| host.cast()))
}

/// Makes a send buffer. The parameters are scalars, so they are passed in registers.
///
/// # Safety
/// The elements are valid for reading until the operation completes.
#[inline]
unsafe fn send_buf(
    at: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    blocks: i64,
    access: Access,
) -> Result<SendBuf, Failure> {
    let datatype = checked(at, count, blocks, state::datatype_of(count, datatype)?)?;
    let at = readable(at, count.saturating_mul(blocks), &datatype, access)?;
    // SAFETY: the elements are valid by the `# Safety` contract of this function.
    // Staged elements are valid until the operation completes.
    Ok(unsafe { SendBuf::new(at.cast(), count, datatype) })
}

/// Makes a receive buffer. The parameters are scalars, so they are passed in registers.
///
/// # Safety
/// The elements are valid for writing until the operation completes.
#[inline]
unsafe fn recv_buf(
    at: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    blocks: i64,
    access: Access,
) -> Result<RecvBuf, Failure> {
    let datatype = checked(at, count, blocks, state::datatype_of(count, datatype)?)?;
    let at = writable(at, count.saturating_mul(blocks), &datatype, access)?;
    // SAFETY: the elements are valid by the `# Safety` contract of this function.
    // Staged elements are valid until the operation completes.
    Ok(unsafe { RecvBuf::new(at.cast(), count, datatype) })
}

/// A buffer argument with one block per rank.
pub trait Blocks {
    /// The buffer of all blocks.
    type All;

    /// Returns the buffer of `number` consecutive blocks with the same count of elements each.
    /// Returns `None` if the number of elements overflows, or if the blocks are not equal and consecutive.
    ///
    /// # Safety
    /// The program's buffer has `number` blocks, and arrays of their counts have as many elements.
    unsafe fn blocks(self, number: u32) -> Option<Self::All>;
}

impl Blocks for SendMem<'_> {
    type All = Self;

    #[inline(always)]
    unsafe fn blocks(self, number: u32) -> Option<Self> {
        let count = self.count.checked_mul(number.into())?;
        Some(SendMem { count, ..self })
    }
}

impl Blocks for RecvMem<'_> {
    type All = Self;

    #[inline(always)]
    unsafe fn blocks(self, number: u32) -> Option<Self> {
        let count = self.count.checked_mul(number.into())?;
        Some(RecvMem { count, ..self })
    }
}

/// An input buffer: address, count and datatype.
#[derive(Clone, Copy)]
pub struct SendMem<'a> {
    at: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
    of: PhantomData<&'a [u8]>,
}

impl<'a> SendMem<'a> {
    /// # Safety
    /// `at` is a constant, or `count` elements of the datatype at `at` are readable.
    /// The elements stay readable until the operation of the call completes.
    /// A buffer that the function ignores may have any value.
    #[inline(always)]
    pub unsafe fn new(at: *const c_void, count: impl IntoI64, datatype: MPI_Datatype) -> Self {
        SendMem {
            at,
            count: count.wide(),
            datatype,
            of: PhantomData,
        }
    }

    #[inline(always)]
    pub fn address(self) -> *const c_void {
        self.at
    }

    #[inline(always)]
    pub fn count(self) -> i64 {
        self.count
    }

    #[inline(always)]
    pub fn datatype(self) -> MPI_Datatype {
        self.datatype
    }

    /// Returns true if the buffer is not null and is not in device memory.
    #[inline(always)]
    pub fn is_on_host(self) -> bool {
        !self.at.is_null() && !self.is_on_device()
    }

    /// Returns true if the buffer is in device memory.
    #[inline(always)]
    pub fn is_on_device(self) -> bool {
        state::is_staging() && device::holds(self.at.cast())
    }

    /// Returns the buffer with at most `count` elements.
    pub fn up_to(self, count: i64) -> Self {
        let count = self.count.min(count);
        SendMem { count, ..self }
    }

    /// Returns the data if they are contiguous and of a predefined type.
    #[inline(always)]
    pub fn plain(self) -> Option<&'a [u8]> {
        let len = plain(self.at, self.count, self.datatype)?;
        // SAFETY: `len` is the size of `count` elements, readable by the contract of `new`.
        Some(unsafe { std::slice::from_raw_parts(self.at.cast(), len) })
    }

    /// Checks the argument and returns it as a send buffer of the engine.
    #[inline(always)]
    pub fn buffer(self) -> Result<SendBuf, Failure> {
        // SAFETY: the elements are valid for reading until completion by the contract of `new`.
        unsafe { send_buf(self.at, self.count, self.datatype, 1, Access::Read) }
    }

    /// Returns the send buffer of a point-to-point message.
    /// Only the engine's message protocols read this buffer,
    /// so they may copy a long message from device memory part by part.
    #[inline(always)]
    pub fn message_buffer(self) -> Result<SendBuf, Failure> {
        // SAFETY: the elements are valid for reading until completion by the contract of `new`.
        unsafe { send_buf(self.at, self.count, self.datatype, 1, Access::Send) }
    }

    /// Returns the send buffer of a partitioned send, whose partitions have `elements` elements each.
    /// The engine sends each partition as one message after the program has marked it as ready.
    pub fn partitions_buffer(self, elements: i64) -> Result<SendBuf, Failure> {
        let access = Access::SendParts { elements };
        // SAFETY: the elements are valid for reading until completion by the contract of `new`.
        unsafe { send_buf(self.at, self.count, self.datatype, 1, access) }
    }

    /// Returns the send buffer of a collective whose count argument is the count of one block.
    #[inline]
    pub fn buffer_of_blocks(self, blocks: usize) -> Result<SendBuf, Failure> {
        let blocks = i64::try_from(blocks).unwrap_or(i64::MAX);
        // SAFETY: the elements of all blocks are readable until completion by `new`'s contract.
        unsafe { send_buf(self.at, self.count, self.datatype, blocks, Access::Read) }
    }

    /// Returns the send buffer. `datatype` is reused if it belongs to the buffer's handle.
    #[inline]
    pub fn buffer_of(self, datatype: &Resolved) -> Result<SendBuf, Failure> {
        self.with(datatype.named(self.datatype)?)
    }

    /// Checks and stages the send buffer. `datatype` is the datatype of the buffer's handle.
    #[inline]
    fn with(self, datatype: Datatype) -> Result<SendBuf, Failure> {
        let datatype = checked(self.at, self.count, 1, datatype)?;
        let at = readable(self.at, self.count, &datatype, Access::Read)?;
        // SAFETY: the elements are readable until completion by the contract of `new`.
        // Staged elements are valid until completion.
        Ok(unsafe { SendBuf::new(at.cast(), self.count, datatype) })
    }
}

/// An output buffer: address, count and datatype.
#[derive(Clone, Copy)]
pub struct RecvMem<'a> {
    at: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
    of: PhantomData<&'a mut [u8]>,
}

impl<'a> RecvMem<'a> {
    /// # Safety
    /// `at` is a constant, or `count` elements of the datatype at `at` are writable.
    /// The program does not use these elements until the operation of the call completes.
    /// A buffer that the function ignores may have any value.
    #[inline(always)]
    pub unsafe fn new(at: *mut c_void, count: impl IntoI64, datatype: MPI_Datatype) -> Self {
        RecvMem {
            at,
            count: count.wide(),
            datatype,
            of: PhantomData,
        }
    }

    #[inline(always)]
    pub fn address(self) -> *mut c_void {
        self.at
    }

    #[inline(always)]
    pub fn count(self) -> i64 {
        self.count
    }

    #[inline(always)]
    pub fn datatype(self) -> MPI_Datatype {
        self.datatype
    }

    /// Returns true if the buffer is not null and is not in device memory.
    #[inline(always)]
    pub fn is_on_host(self) -> bool {
        self.sent().is_on_host()
    }

    /// Returns the buffer with at most `count` elements.
    pub fn up_to(self, count: i64) -> Self {
        let count = self.count.min(count);
        RecvMem { count, ..self }
    }

    /// Returns the buffer as an input buffer, for a call that sends its content.
    pub fn sent(self) -> SendMem<'a> {
        let RecvMem {
            at,
            count,
            datatype,
            ..
        } = self;
        SendMem {
            at,
            count,
            datatype,
            of: PhantomData,
        }
    }

    /// Returns the bytes of the buffer if it is contiguous and of a predefined type.
    #[inline(always)]
    pub fn plain(self) -> Option<RecvBytes> {
        let len = plain(self.at, self.count, self.datatype)?;
        // SAFETY: `len` is the size of `count` elements.
        // The elements are writable until completion by the contract of `new`.
        Some(unsafe { RecvBytes::new(self.at.cast(), len) })
    }

    /// Checks the argument and returns it as a receive buffer of the engine.
    #[inline(always)]
    pub fn buffer(self) -> Result<RecvBuf, Failure> {
        // SAFETY: the elements are valid for writing until completion by the contract of `new`.
        unsafe { recv_buf(self.at, self.count, self.datatype, 1, Access::Update) }
    }

    /// Returns the receive buffer of a collective whose count argument is the count of one block.
    #[inline]
    pub fn buffer_of_blocks(self, blocks: usize) -> Result<RecvBuf, Failure> {
        let blocks = i64::try_from(blocks).unwrap_or(i64::MAX);
        // SAFETY: the elements of all blocks are writable until completion by `new`'s contract.
        unsafe { recv_buf(self.at, self.count, self.datatype, blocks, Access::Update) }
    }

    /// Returns the receive buffer of a point-to-point message, or of all partitions of one.
    /// The message is written from the beginning of the buffer, and the buffer is not read.
    #[inline(always)]
    pub fn message_buffer(self) -> Result<RecvBuf, Failure> {
        // SAFETY: the elements are valid for writing until completion by the contract of `new`.
        unsafe { recv_buf(self.at, self.count, self.datatype, 1, Access::Receive) }
    }

    /// Returns the receive buffer. `datatype` is reused if it belongs to the buffer's handle.
    #[inline]
    pub fn buffer_of(self, datatype: &Resolved) -> Result<RecvBuf, Failure> {
        self.with(datatype.named(self.datatype)?)
    }

    /// Returns the receive buffer without a check of the address.
    /// Only for an operation that writes nothing to this buffer.
    pub fn unchecked(self, datatype: &Resolved) -> Result<RecvBuf, Failure> {
        let datatype = datatype.named(self.datatype)?;
        // SAFETY: the elements are valid for writing until completion by the contract of `new`.
        Ok(unsafe { RecvBuf::new(self.at.cast(), self.count, datatype) })
    }

    /// Checks and stages the receive buffer. `datatype` is the datatype of the buffer's handle.
    #[inline]
    fn with(self, datatype: Datatype) -> Result<RecvBuf, Failure> {
        let datatype = checked(self.at, self.count, 1, datatype)?;
        let at = writable(self.at, self.count, &datatype, Access::Update)?;
        // SAFETY: the elements are writable until completion by the contract of `new`.
        // Staged elements are valid until completion.
        Ok(unsafe { RecvBuf::new(at.cast(), self.count, datatype) })
    }
}

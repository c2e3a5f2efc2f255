//! Reading and writing what C passes by pointer.
//!
//! Each function checks for null and says which argument was; what else a pointer must satisfy is the caller's promise.

use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::state;
use mpi_base::text;
use mpi_core::datatype::{Datatype, Named, RecvBuf, RecvBytes, SendBuf};
use std::ffi::{CStr, c_char, c_int, c_void};

/// The failure of a null pointer.
#[cold]
fn null(name: &str) -> Failure {
    Failure::new(MPI_ERR_ARG, format!("{name} is a null pointer"))
}

/// Stores a result.
///
/// # Safety
/// A pointer that is not null is valid for writing.
#[inline]
pub unsafe fn out<T>(to: *mut T, value: T, name: &str) -> Outcome {
    if to.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null, and otherwise valid by the caller's promise.
    unsafe { to.write(value) };
    Ok(())
}

/// Reads an argument that is passed by pointer.
///
/// # Safety
/// A pointer that is not null is valid for reading.
#[inline]
pub unsafe fn read<T: Copy>(from: *const T, name: &str) -> Result<T, Failure> {
    if from.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null, and otherwise valid by the caller's promise.
    Ok(unsafe { *from })
}

/// An array argument; a null pointer is an empty array.
///
/// # Safety
/// A pointer that is not null is valid for reading `len` elements for as long as the result is used.
#[inline]
pub unsafe fn slice<'a, T>(from: *const T, len: usize, name: &str) -> Result<&'a [T], Failure> {
    match (from.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(name)),
        // SAFETY: not null, and otherwise valid by the caller's promise.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(from, len) }),
    }
}

/// An array that is written.
///
/// # Safety
/// A pointer that is not null is valid for reading and writing `len` elements for as long as the result is used, by nothing else.
#[inline]
pub unsafe fn slice_mut<'a, T>(
    from: *mut T,
    len: usize,
    name: &str,
) -> Result<&'a mut [T], Failure> {
    match (from.is_null(), len) {
        (_, 0) => Ok(&mut []),
        (true, _) => Err(null(name)),
        // SAFETY: not null, and otherwise valid by the caller's promise.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(from, len) }),
    }
}

/// The length of an array argument, which must not be negative.
#[inline]
pub fn length(value: c_int, name: &str) -> Result<usize, Failure> {
    usize::try_from(value)
        .map_err(|_| Failure::new(MPI_ERR_ARG, format!("{name} is {value}, which is negative")))
}

/// A string argument shorter than `max` bytes, whose violation is an error of `class`.
///
/// # Safety
/// A pointer that is not null leads to a string that ends with a zero byte.
pub unsafe fn string(
    from: *const c_char,
    max: c_int,
    class: c_int,
    name: &str,
) -> Result<String, Failure> {
    if from.is_null() {
        return Err(Failure::new(class, format!("{name} is a null pointer")));
    }
    // SAFETY: not null, and otherwise valid by the caller's promise.
    let text = unsafe { CStr::from_ptr(from) };
    let len = text.count_bytes();
    if len >= max.unsigned_abs() as usize {
        return Err(Failure::new(
            class,
            format!(
                "{name} has {len} characters, but at most {} are allowed",
                max - 1
            ),
        ));
    }
    Ok(text::from_bytes(text.to_bytes()))
}

/// A name for an object, cut to the length that names may have (section 7.8).
///
/// # Safety
/// As [`string`].
pub unsafe fn name(from: *const c_char, argument: &str) -> Result<String, Failure> {
    if from.is_null() {
        return Err(null(argument));
    }
    // SAFETY: not null, and otherwise valid by the caller's promise.
    let all = unsafe { CStr::from_ptr(from) }.to_bytes();
    let most = MPI_MAX_OBJECT_NAME as usize - 1;
    let mut end = all.len().min(most);
    // In UTF-8 not in the middle of a character, which begins at most three bytes before.
    let continues = |at: usize| all.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    while end > most.saturating_sub(3) && continues(end) {
        end -= 1;
    }
    Ok(text::from_bytes(&all[..end]))
}

/// Stores a string and its length, cut to the room of `max` bytes with the terminating zero.
///
/// # Safety
/// Pointers that are not null are valid for writing, `to` for `max` bytes.
pub unsafe fn write_string(
    to: *mut c_char,
    len: *mut c_int,
    text: &str,
    max: c_int,
    name: &str,
) -> Outcome {
    if to.is_null() {
        return Err(null(name));
    }
    let bytes = text::to_bytes(text);
    let kept = bytes.len().min((max.max(1) - 1) as usize);
    // SAFETY: room for `kept` bytes and the zero by the caller's promise; the source is another object.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, kept);
        to.add(kept).write(0);
        out(len, kept as c_int, "resultlen")
    }
}

/// An integer of one of the widths in which counts and displacements come.
pub trait Wide: Copy {
    fn wide(self) -> i64;
}

impl Wide for c_int {
    #[inline]
    fn wide(self) -> i64 {
        self.into()
    }
}

impl Wide for i64 {
    #[inline]
    fn wide(self) -> i64 {
        self
    }
}

impl Wide for isize {
    #[inline]
    fn wide(self) -> i64 {
        self as i64
    }
}

/// An array of counts or displacements of any width.
///
/// # Safety
/// A pointer that is not null is valid for reading `len` elements.
pub unsafe fn wides<T: Wide>(from: *const T, len: usize, name: &str) -> Result<Vec<i64>, Failure> {
    // SAFETY: `from` is valid by the `# Safety` contract of this function.
    Ok(unsafe { slice(from, len, name)? }
        .iter()
        .map(|v| v.wide())
        .collect())
}

/// The length in bytes of a buffer that is one run of a predefined type and needs no further check.
///
/// Everything else, wrong arguments among it, is for [`data`].
#[inline(always)]
fn plain(buf: *const c_void, count: i64, datatype: MPI_Datatype) -> Option<usize> {
    let size = Named::dense_size(datatype.0);
    // No buffer lies where MPI_BOTTOM (null) and MPI_IN_PLACE point.
    let usable = size != 0 && buf.addr() > MPI_IN_PLACE.addr() && count >= 0;
    if !usable {
        return None;
    }
    (count as usize).checked_mul(size)
}

/// Data that is read and lies in one run.
///
/// # Safety
/// The caller of the C function promises that the buffer holds the data.
#[inline(always)]
pub unsafe fn plain_data<'a>(
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Option<&'a [u8]> {
    let len = plain(buf, count, datatype)?;
    // SAFETY: not null, and otherwise valid by the caller's promise.
    Some(unsafe { std::slice::from_raw_parts(buf.cast(), len) })
}

/// Room for data that lies in one run.
///
/// # Safety
/// The caller of the C function promises that the buffer has room until the operation is complete.
#[inline(always)]
pub unsafe fn plain_room(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Option<RecvBytes> {
    let len = plain(buf, count, datatype)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    Some(unsafe { RecvBytes::new(buf.cast(), len) })
}

/// Checks a buffer argument and gives its datatype.
#[inline]
fn data(buf: *const c_void, count: i64, datatype: MPI_Datatype) -> Result<Datatype, Failure> {
    checked(buf, count, state::datatype_of(count, datatype)?)
}

/// Checks a buffer argument of a datatype, and gives that back.
#[inline]
fn checked(buf: *const c_void, count: i64, datatype: Datatype) -> Result<Datatype, Failure> {
    if count < 0 {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("count is {count}, which is negative"),
        ));
    }
    if !datatype.is_committed() {
        return Err(Failure::new(
            MPI_ERR_TYPE,
            format!("{datatype} has not been committed"),
        ));
    }
    // MPI_BOTTOM is null too, but only derived datatypes hold the addresses it needs.
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

/// Data that is read.
///
/// # Safety
/// The caller of the C function promises that the buffer holds the data until the operation is complete.
#[inline]
pub unsafe fn send_buf(
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Result<SendBuf, Failure> {
    let datatype = data(buf, count, datatype)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    Ok(unsafe { SendBuf::new(buf.cast(), count, datatype) })
}

/// Data that is read, of a datatype that has been looked up.
///
/// # Safety
/// As [`send_buf`].
#[inline]
pub unsafe fn send_of(
    buf: *const c_void,
    count: i64,
    datatype: &Datatype,
) -> Result<SendBuf, Failure> {
    let datatype = checked(buf, count, datatype.clone())?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    Ok(unsafe { SendBuf::new(buf.cast(), count, datatype) })
}

/// Data that is written, of a datatype that has been looked up.
///
/// # Safety
/// As [`recv_buf`].
#[inline]
pub unsafe fn recv_of(
    buf: *mut c_void,
    count: i64,
    datatype: &Datatype,
) -> Result<RecvBuf, Failure> {
    let datatype = checked(buf, count, datatype.clone())?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    Ok(unsafe { RecvBuf::new(buf.cast(), count, datatype) })
}

/// Data that is written.
///
/// # Safety
/// The caller of the C function promises that the buffer has room for the data and is not used until the operation is complete.
#[inline]
pub unsafe fn recv_buf(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Result<RecvBuf, Failure> {
    let datatype = data(buf, count, datatype)?;
    // SAFETY: `buf` is valid by the `# Safety` contract of this function.
    Ok(unsafe { RecvBuf::new(buf.cast(), count, datatype) })
}

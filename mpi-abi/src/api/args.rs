//! Access to pointer arguments of C functions.
//!
//! Each function checks for null and names the argument in its failure; all other requirements on a pointer are its `# Safety` contract.

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

/// Stores a result in an output argument.
///
/// # Safety
/// A pointer that is not null is valid for writing.
#[inline]
pub unsafe fn out<T>(to: *mut T, value: T, name: &str) -> Outcome {
    if to.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null, so valid for writing by the `# Safety` contract of this function.
    unsafe { to.write(value) };
    Ok(())
}

/// Reads a pointer argument.
///
/// # Safety
/// A pointer that is not null is valid for reading.
#[inline]
pub unsafe fn read<T: Copy>(from: *const T, name: &str) -> Result<T, Failure> {
    if from.is_null() {
        return Err(null(name));
    }
    // SAFETY: not null, so valid for reading by the `# Safety` contract of this function.
    Ok(unsafe { *from })
}

/// Returns an input array; a null pointer is allowed if it is empty.
///
/// # Safety
/// A pointer that is not null is valid for reading `len` elements for as long as the result is used.
#[inline]
pub unsafe fn slice<'a, T>(from: *const T, len: usize, name: &str) -> Result<&'a [T], Failure> {
    match (from.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(name)),
        // SAFETY: not null, so valid for reading `len` elements by the `# Safety` contract of this function.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(from, len) }),
    }
}

/// Returns an input/output array; a null pointer is allowed if it is empty.
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
        // SAFETY: not null, so exclusively valid for `len` elements by the `# Safety` contract of this function.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts_mut(from, len) }),
    }
}

/// Converts the length of an array argument, which must not be negative.
#[inline]
pub fn length(value: c_int, name: &str) -> Result<usize, Failure> {
    usize::try_from(value)
        .map_err(|_| Failure::new(MPI_ERR_ARG, format!("{name} is {value}, which is negative")))
}

/// Returns a string argument shorter than `max` bytes; a violation is an error of `class`.
///
/// # Safety
/// A pointer that is not null points to a NUL-terminated string.
pub unsafe fn string(
    from: *const c_char,
    max: c_int,
    class: c_int,
    name: &str,
) -> Result<String, Failure> {
    if from.is_null() {
        return Err(Failure::new(class, format!("{name} is a null pointer")));
    }
    // SAFETY: not null, so NUL-terminated by the `# Safety` contract of this function.
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

/// Returns an object name, truncated to the maximum length of names (section 7.8).
///
/// # Safety
/// As [`string`].
pub unsafe fn name(from: *const c_char, argument: &str) -> Result<String, Failure> {
    if from.is_null() {
        return Err(null(argument));
    }
    // SAFETY: not null, so NUL-terminated by the `# Safety` contract of [`string`].
    let all = unsafe { CStr::from_ptr(from) }.to_bytes();
    let most = MPI_MAX_OBJECT_NAME as usize - 1;
    let mut end = all.len().min(most);
    // UTF-8: do not cut within a character, which begins at most three bytes earlier.
    let continues = |at: usize| all.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    while end > most.saturating_sub(3) && continues(end) {
        end -= 1;
    }
    Ok(text::from_bytes(&all[..end]))
}

/// Stores a string and its length, truncated to a buffer of `max` bytes including the terminating NUL;
/// a buffer without a byte stays as it is.
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
    let room = usize::try_from(max).unwrap_or(0);
    let kept = bytes.len().min(room.saturating_sub(1));
    // SAFETY: `to` is valid for `room` bytes by the `# Safety` contract of this function, of which `kept` and a NUL are written,
    // none if `room` is 0; the source is another object, and `len` is valid for writing.
    unsafe {
        if room > 0 {
            std::ptr::copy_nonoverlapping(bytes.as_ptr().cast(), to, kept);
            to.add(kept).write(0);
        }
        out(len, kept as c_int, "resultlen")
    }
}

/// An integer type of counts and displacements.
pub trait IntoI64: Copy {
    fn wide(self) -> i64;
}

impl IntoI64 for c_int {
    #[inline]
    fn wide(self) -> i64 {
        self.into()
    }
}

impl IntoI64 for i64 {
    #[inline]
    fn wide(self) -> i64 {
        self
    }
}

impl IntoI64 for isize {
    #[inline]
    fn wide(self) -> i64 {
        self as i64
    }
}

/// Reads an array of counts or displacements of any width.
///
/// # Safety
/// A pointer that is not null is valid for reading `len` elements.
pub unsafe fn widened<T: IntoI64>(
    from: *const T,
    len: usize,
    name: &str,
) -> Result<Vec<i64>, Failure> {
    // SAFETY: `from` is valid for `len` elements by the `# Safety` contract of this function, as `slice` requires.
    Ok(unsafe { slice(from, len, name)? }
        .iter()
        .map(|v| v.wide())
        .collect())
}

/// Returns the length in bytes of a contiguous buffer of a predefined type that needs no further check.
///
/// Everything else, including wrong arguments, is left to [`data`].
#[inline(always)]
fn plain(buf: *const c_void, count: i64, datatype: MPI_Datatype) -> Option<usize> {
    let size = Named::dense_size(datatype.0);
    // No buffer is at MPI_BOTTOM (null) or MPI_IN_PLACE.
    let usable = size != 0 && buf.addr() > MPI_IN_PLACE.addr() && count >= 0;
    if !usable {
        return None;
    }
    (count as usize).checked_mul(size)
}

/// Returns contiguous send data.
///
/// # Safety
/// The caller of the C function guarantees that the buffer holds the data.
#[inline(always)]
pub unsafe fn plain_data<'a>(
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Option<&'a [u8]> {
    let len = plain(buf, count, datatype)?;
    // SAFETY: not null, so valid for `len` bytes by the `# Safety` contract of this function.
    Some(unsafe { std::slice::from_raw_parts(buf.cast(), len) })
}

/// Returns a contiguous receive buffer.
///
/// # Safety
/// The caller of the C function guarantees that the buffer is large enough and unused until the operation completes.
#[inline(always)]
pub unsafe fn plain_room(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Option<RecvBytes> {
    let len = plain(buf, count, datatype)?;
    // SAFETY: `buf` is valid for `len` bytes until completion by the `# Safety` contract of this function.
    Some(unsafe { RecvBytes::new(buf.cast(), len) })
}

/// Checks a buffer argument and returns its datatype.
#[inline]
fn data(buf: *const c_void, count: i64, datatype: MPI_Datatype) -> Result<Datatype, Failure> {
    checked(buf, count, state::datatype_of(count, datatype)?)
}

/// Checks a buffer argument of a datatype, and returns the datatype.
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
    // MPI_BOTTOM is null too, but requires a derived datatype with absolute addresses.
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

/// Returns a send buffer.
///
/// # Safety
/// The caller of the C function guarantees that the buffer holds the data until the operation completes.
#[inline]
pub unsafe fn send_buf(
    buf: *const c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Result<SendBuf, Failure> {
    let datatype = data(buf, count, datatype)?;
    // SAFETY: `buf` holds the data until completion by the `# Safety` contract of this function, as `SendBuf::new` requires.
    Ok(unsafe { SendBuf::new(buf.cast(), count, datatype) })
}

/// Returns a send buffer of a datatype that has been looked up.
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
    // SAFETY: `buf` holds the data until completion by the `# Safety` contract of [`send_buf`], as `SendBuf::new` requires.
    Ok(unsafe { SendBuf::new(buf.cast(), count, datatype) })
}

/// Returns a receive buffer of a datatype that has been looked up.
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
    // SAFETY: `buf` is large enough and unused until completion by the `# Safety` contract of [`recv_buf`], as `RecvBuf::new` requires.
    Ok(unsafe { RecvBuf::new(buf.cast(), count, datatype) })
}

/// Returns a receive buffer.
///
/// # Safety
/// The caller of the C function guarantees that the buffer is large enough for the data and is not used until the operation completes.
#[inline]
pub unsafe fn recv_buf(
    buf: *mut c_void,
    count: i64,
    datatype: MPI_Datatype,
) -> Result<RecvBuf, Failure> {
    let datatype = data(buf, count, datatype)?;
    // SAFETY: `buf` is large enough and unused until completion by the `# Safety` contract of this function, as `RecvBuf::new` requires.
    Ok(unsafe { RecvBuf::new(buf.cast(), count, datatype) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_fills_no_more_than_its_buffer() {
        for (max, expected, expected_len) in [
            (-1, *b"????", 0),
            (0, *b"????", 0),
            (1, *b"\0???", 0),
            (3, *b"ab\0?", 2),
            (4, *b"abc\0", 3),
        ] {
            let mut to = *b"????";
            let mut len = -1;
            // SAFETY: the buffer has at least `max` bytes.
            let done = unsafe { write_string(to.as_mut_ptr().cast(), &mut len, "abc", max, "to") };
            assert!(done.is_ok());
            assert_eq!((to, len), (expected, expected_len), "{max}");
        }
    }
}

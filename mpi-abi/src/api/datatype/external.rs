//! Packing in the `external32` representation (sections 5.3 and 14.5.2).

use super::pack::room;
use crate::abi::*;
use crate::api::args::{out, read, recv_buf, send_buf, slice, slice_mut};
use crate::error::{Failure, Outcome};
use crate::state;
use std::ffi::{CStr, c_char, c_void};

/// The only representation that the standard defines for these functions.
///
/// # Safety
/// A pointer that is not null points to a NUL-terminated string.
unsafe fn check(datarep: *const c_char) -> Outcome {
    if datarep.is_null() {
        return Err(Failure::new(MPI_ERR_ARG, "datarep is a null pointer"));
    }
    // SAFETY: not null, so NUL-terminated by the `# Safety` contract of this function.
    let name = unsafe { CStr::from_ptr(datarep) };
    match name.to_bytes() {
        b"external32" => Ok(()),
        _ => Err(Failure::new(
            MPI_ERR_ARG,
            format!("datarep is {name:?}, but only \"external32\" can be packed"),
        )),
    }
}

pub unsafe fn MPI_Pack_external_c(
    datarep: *const c_char,
    inbuf: *const c_void,
    incount: MPI_Count,
    datatype: MPI_Datatype,
    outbuf: *mut c_void,
    outsize: MPI_Count,
    position: *mut MPI_Count,
) -> Outcome {
    // SAFETY: `datarep`, `inbuf`, `outbuf` (for `outsize` bytes) and `position` are valid as the C binding of MPI_Pack_external_c requires of its caller.
    unsafe {
        check(datarep)?;
        let data = send_buf(inbuf, incount, datatype)?;
        let at = read(position, "position")?;
        let bytes = data.datatype().external_bytes(incount);
        let (start, len) = room(outsize, at, bytes)?;
        let packed = slice_mut(outbuf.cast::<u8>().wrapping_add(start), len, "outbuf")?;
        data.pack_external(packed);
        out(position, at + bytes, "position")
    }
}

pub unsafe fn MPI_Unpack_external_c(
    datarep: *const c_char,
    inbuf: *const c_void,
    insize: MPI_Count,
    position: *mut MPI_Count,
    outbuf: *mut c_void,
    outcount: MPI_Count,
    datatype: MPI_Datatype,
) -> Outcome {
    // SAFETY: `datarep`, `inbuf` (for `insize` bytes), `outbuf` and `position` are valid as the C binding of MPI_Unpack_external_c requires of its caller.
    unsafe {
        check(datarep)?;
        let mut data = recv_buf(outbuf, outcount, datatype)?;
        let at = read(position, "position")?;
        let bytes = data.datatype().external_bytes(outcount);
        let (start, len) = room(insize, at, bytes)?;
        let packed = slice(inbuf.cast::<u8>().wrapping_add(start), len, "inbuf")?;
        data.unpack_external(packed);
        out(position, at + bytes, "position")
    }
}

pub unsafe fn MPI_Pack_external_size_c(
    datarep: *const c_char,
    incount: MPI_Count,
    datatype: MPI_Datatype,
    size: *mut MPI_Count,
) -> Outcome {
    let datatype = state::datatype(datatype)?;
    if incount < 0 {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("incount is {incount}, which is negative"),
        ));
    }
    // SAFETY: `datarep` and `size` are valid as the C binding of MPI_Pack_external_size_c requires of its caller.
    unsafe {
        check(datarep)?;
        out(size, datatype.external_bytes(incount), "size")
    }
}

//! Packing and unpacking into buffers of the program (section 5.2).
//!
//! All processes have the same data representation, so packed data are the bytes of the elements in order.

use crate::abi::*;
use crate::api::args::{out, read, recv_buf, send_buf, slice, slice_mut};
use crate::error::{Failure, Outcome};
use crate::phase;
use crate::state;
use std::ffi::c_void;

/// Returns the part of a packed buffer from the position on.
pub(super) fn room(
    size: MPI_Count,
    position: MPI_Count,
    needed: i64,
) -> Result<(usize, usize), Failure> {
    let fits =
        position >= 0 && needed >= 0 && position.checked_add(needed).is_some_and(|end| end <= size);
    if !fits {
        return Err(Failure::new(
            MPI_ERR_TRUNCATE,
            format!(
                "{needed} packed bytes at position {position} do not fit a buffer of {size} bytes"
            ),
        ));
    }
    Ok((position as usize, needed as usize))
}

/// Checks the communicator: packed data are the same for every one, but a wrong handle is an error all the same.
///
/// Before initialization no communicator exists, but packing is allowed.
fn check_comm(comm: MPI_Comm) -> Outcome {
    if phase::initialized() {
        state::comm(comm)?;
    }
    Ok(())
}

pub unsafe fn MPI_Pack_c(
    inbuf: *const c_void,
    incount: MPI_Count,
    datatype: MPI_Datatype,
    outbuf: *mut c_void,
    outsize: MPI_Count,
    position: *mut MPI_Count,
    comm: MPI_Comm,
) -> Outcome {
    check_comm(comm)?;
    // SAFETY: `inbuf`, `outbuf` (for `outsize` bytes) and `position` are valid as the C binding of MPI_Pack_c requires of its caller.
    unsafe {
        let data = send_buf(inbuf, incount, datatype)?;
        let at = read(position, "position")?;
        let (start, len) = room(outsize, at, data.bytes())?;
        let packed = slice_mut(outbuf.cast::<u8>().wrapping_add(start), len, "outbuf")?;
        let written = data.pack_at(0, packed);
        out(position, at + written as MPI_Count, "position")
    }
}

pub unsafe fn MPI_Unpack_c(
    inbuf: *const c_void,
    insize: MPI_Count,
    position: *mut MPI_Count,
    outbuf: *mut c_void,
    outcount: MPI_Count,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
) -> Outcome {
    check_comm(comm)?;
    // SAFETY: `inbuf` (for `insize` bytes), `outbuf` and `position` are valid as the C binding of MPI_Unpack_c requires of its caller.
    unsafe {
        let mut data = recv_buf(outbuf, outcount, datatype)?;
        let at = read(position, "position")?;
        let (start, len) = room(insize, at, data.bytes())?;
        let packed = slice(inbuf.cast::<u8>().wrapping_add(start), len, "inbuf")?;
        let taken = data.unpack_at(0, packed);
        out(position, at + taken as MPI_Count, "position")
    }
}

pub unsafe fn MPI_Pack_size_c(
    incount: MPI_Count,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
    size: *mut MPI_Count,
) -> Outcome {
    check_comm(comm)?;
    let datatype = state::datatype(datatype)?;
    if incount < 0 {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("incount is {incount}, which is negative"),
        ));
    }
    // A size that no number represents is reported as in the binding with int.
    let bytes = datatype.size().checked_mul(incount);
    let bytes = bytes.unwrap_or(MPI_UNDEFINED.into());
    // SAFETY: `size` is null or writable: the C binding of MPI_Pack_size_c requires it of the caller.
    unsafe { out(size, bytes, "size") }
}

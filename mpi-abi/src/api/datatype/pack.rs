//! Packing into and unpacking from contiguous buffers of the program (section 5.2).
//!
//! All processes have one data representation, so packed data are the elements' bytes in order.

use crate::abi::*;
use crate::api::args::{InArray, InOut, InOutArray, Out, RecvMem, SendMem};
use crate::error::{Failure, Outcome};
use crate::phase;
use crate::state;

/// Returns the position and length of `needed` bytes in a packed buffer of `size` bytes.
pub(super) fn packed_range(
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

/// Checks the communicator. Packed data do not depend on it, but an invalid handle is an error.
///
/// Packing is also allowed before initialization, when no communicator exists.
fn check_comm(comm: MPI_Comm) -> Outcome {
    if phase::initialized() {
        state::comm(comm)?;
    }
    Ok(())
}

pub fn MPI_Pack_c(
    inbuf: SendMem,
    outbuf: InOutArray<u8>,
    outsize: MPI_Count,
    position: InOut<MPI_Count>,
    comm: MPI_Comm,
) -> Outcome {
    check_comm(comm)?;
    let data = inbuf.buffer()?;
    let at = position.get("position")?;
    let (start, len) = packed_range(outsize, at, data.bytes())?;
    let packed = outbuf.part(start, len).bytes("outbuf")?;
    let written = data.pack_at(0, packed);
    position.set(at + written as MPI_Count, "position")
}

pub fn MPI_Unpack_c(
    inbuf: InArray<u8>,
    insize: MPI_Count,
    position: InOut<MPI_Count>,
    outbuf: RecvMem,
    comm: MPI_Comm,
) -> Outcome {
    check_comm(comm)?;
    let mut data = outbuf.buffer()?;
    let at = position.get("position")?;
    let (start, len) = packed_range(insize, at, data.bytes())?;
    let packed = inbuf.part(start, len).bytes("inbuf")?;
    let taken = data.unpack_at(0, packed);
    position.set(at + taken as MPI_Count, "position")
}

pub fn MPI_Pack_size_c(
    incount: MPI_Count,
    datatype: MPI_Datatype,
    comm: MPI_Comm,
    size: Out<MPI_Count>,
) -> Outcome {
    check_comm(comm)?;
    let datatype = state::datatype(datatype)?;
    if incount < 0 {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("incount is {incount}, which is negative"),
        ));
    }
    // A size that overflows `MPI_Count` is `MPI_UNDEFINED`, as in the binding with int.
    let bytes = datatype.size().checked_mul(incount);
    let bytes = bytes.unwrap_or(MPI_UNDEFINED.into());
    size.set(bytes, "size")
}

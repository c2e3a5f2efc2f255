//! Packing in the `external32` representation (sections 5.3 and 14.5.2).

use super::pack::packed_range;
use crate::abi::*;
use crate::api::args::{InArray, InOut, InOutArray, Out, RecvMem, SendMem, Text};
use crate::error::{Failure, Outcome};
use crate::state;
use mpi_core::datatype;

/// Checks that the data representation is `external32`, the only one that the standard defines.
fn check(datarep: Text) -> Outcome {
    let Some(name) = datarep.get() else {
        return Err(Failure::new(MPI_ERR_ARG, "datarep is a null pointer"));
    };
    match name.to_bytes() {
        b"external32" => Ok(()),
        _ => Err(Failure::new(
            MPI_ERR_ARG,
            format!("datarep is {name:?}, but only \"external32\" can be packed"),
        )),
    }
}

pub fn MPI_Pack_external_c(
    datarep: Text,
    inbuf: SendMem,
    outbuf: InOutArray<u8>,
    outsize: MPI_Count,
    position: InOut<MPI_Count>,
) -> Outcome {
    check(datarep)?;
    let data = inbuf.buffer()?;
    let at = position.get("position")?;
    let bytes = datatype::external_bytes(data.datatype(), inbuf.count());
    let (start, len) = packed_range(outsize, at, bytes)?;
    let packed = outbuf.part(start, len).bytes("outbuf")?;
    data.pack_external(packed);
    position.set(at + bytes, "position")
}

pub fn MPI_Unpack_external_c(
    datarep: Text,
    inbuf: InArray<u8>,
    insize: MPI_Count,
    position: InOut<MPI_Count>,
    outbuf: RecvMem,
) -> Outcome {
    check(datarep)?;
    let mut data = outbuf.buffer()?;
    let at = position.get("position")?;
    let bytes = datatype::external_bytes(data.datatype(), outbuf.count());
    let (start, len) = packed_range(insize, at, bytes)?;
    let packed = inbuf.part(start, len).bytes("inbuf")?;
    data.unpack_external(packed);
    position.set(at + bytes, "position")
}

pub fn MPI_Pack_external_size_c(
    datarep: Text,
    incount: MPI_Count,
    datatype: MPI_Datatype,
    size: Out<MPI_Count>,
) -> Outcome {
    let datatype = state::datatype(datatype)?;
    if incount < 0 {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("incount is {incount}, which is negative"),
        ));
    }
    check(datarep)?;
    size.set(datatype::external_bytes(&datatype, incount), "size")
}

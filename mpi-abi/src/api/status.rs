//! Status accessors (sections 3.2.5, 5.1.11, 13.3 and 19.3.5).

use super::args::{In, InOut, Out};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::state;
use std::ffi::c_int;

pub fn MPI_Get_count_c(
    status: In<MPI_Status>,
    datatype: MPI_Datatype,
    count: Out<MPI_Count>,
) -> Outcome {
    let bytes = status.get("status")?.bytes();
    let whole = state::datatype(datatype)?.counts().whole(bytes);
    count.set(whole.unwrap_or(MPI_UNDEFINED.into()), "count")
}

pub fn MPI_Get_elements_c(
    status: In<MPI_Status>,
    datatype: MPI_Datatype,
    count: Out<MPI_Count>,
) -> Outcome {
    let bytes = status.get("status")?.bytes();
    let basic = state::datatype(datatype)?.counts().basic(bytes);
    count.set(basic.unwrap_or(MPI_UNDEFINED.into()), "count")
}

pub fn MPI_Get_elements_x(
    status: In<MPI_Status>,
    datatype: MPI_Datatype,
    count: Out<MPI_Count>,
) -> Outcome {
    MPI_Get_elements_c(status, datatype, count)
}

/// Applies `edit` to a status of the caller.
fn change(status: InOut<MPI_Status>, edit: impl FnOnce(&mut MPI_Status)) -> Outcome {
    let mut changed = status.get("status")?;
    edit(&mut changed);
    status.set(changed, "status")
}

pub fn MPI_Status_set_elements_c(
    status: InOut<MPI_Status>,
    datatype: MPI_Datatype,
    count: MPI_Count,
) -> Outcome {
    let datatype = state::datatype(datatype)?;
    if count < 0 {
        return Err(Failure::new(
            MPI_ERR_COUNT,
            format!("count is {count}, which is negative"),
        ));
    }
    // The count is in basic elements, and `each` is the number of basic elements in the datatype.
    let each = i64::try_from(datatype.signature().elements)
        .unwrap_or(i64::MAX)
        .max(1);
    let whole = datatype.bytes(count / each);
    let rest = match count % each {
        0 => 0,
        rest => (0..=datatype.size())
            .find(|&b| datatype.counts().basic(b) == Some(rest))
            .unwrap_or(0),
    };
    change(status, |s| s.set_bytes(whole + rest))
}

pub fn MPI_Status_set_elements_x(
    status: InOut<MPI_Status>,
    datatype: MPI_Datatype,
    count: MPI_Count,
) -> Outcome {
    MPI_Status_set_elements_c(status, datatype, count)
}

pub fn MPI_Status_set_cancelled(status: InOut<MPI_Status>, flag: c_int) -> Outcome {
    change(status, |s| s.set_cancelled(flag != 0))
}

pub fn MPI_Test_cancelled(status: In<MPI_Status>, flag: Out<c_int>) -> Outcome {
    flag.set(status.get("status")?.cancelled().into(), "flag")
}

pub fn MPI_Status_get_source(status: In<MPI_Status>, source: Out<c_int>) -> Outcome {
    source.set(status.get("status")?.MPI_SOURCE, "source")
}

pub fn MPI_Status_set_source(status: InOut<MPI_Status>, source: c_int) -> Outcome {
    change(status, |s| s.MPI_SOURCE = source)
}

pub fn MPI_Status_get_tag(status: In<MPI_Status>, tag: Out<c_int>) -> Outcome {
    tag.set(status.get("status")?.MPI_TAG, "tag")
}

pub fn MPI_Status_set_tag(status: InOut<MPI_Status>, tag: c_int) -> Outcome {
    change(status, |s| s.MPI_TAG = tag)
}

pub fn MPI_Status_get_error(status: In<MPI_Status>, error: Out<c_int>) -> Outcome {
    error.set(status.get("status")?.MPI_ERROR, "error")
}

pub fn MPI_Status_set_error(status: InOut<MPI_Status>, error: c_int) -> Outcome {
    change(status, |s| s.MPI_ERROR = error)
}

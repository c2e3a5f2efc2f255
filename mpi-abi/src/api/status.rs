//! Access to statuses (sections 3.2.5, 5.1.11, 13.3 and 19.3.5).

use super::args::{out, read};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::state;
use std::ffi::c_int;

pub unsafe fn MPI_Get_count_c(
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: *mut MPI_Count,
) -> Outcome {
    // SAFETY: `status` is null or readable: the C binding of MPI_Get_count_c requires it of the caller.
    let bytes = unsafe { read(status, "status")? }.bytes();
    let whole = state::datatype(datatype)?.count_in(bytes);
    // SAFETY: `count` is null or writable: the C binding of MPI_Get_count_c requires it of the caller.
    unsafe { out(count, whole.unwrap_or(MPI_UNDEFINED.into()), "count") }
}

pub unsafe fn MPI_Get_elements_c(
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: *mut MPI_Count,
) -> Outcome {
    // SAFETY: `status` is null or readable: the C binding of MPI_Get_elements_c requires it of the caller.
    let bytes = unsafe { read(status, "status")? }.bytes();
    let basic = state::datatype(datatype)?.elements(bytes);
    // SAFETY: `count` is null or writable: the C binding of MPI_Get_elements_c requires it of the caller.
    unsafe { out(count, basic.unwrap_or(MPI_UNDEFINED.into()), "count") }
}

pub unsafe fn MPI_Get_elements_x(
    status: *const MPI_Status,
    datatype: MPI_Datatype,
    count: *mut MPI_Count,
) -> Outcome {
    // SAFETY: `status` and `count` are valid as the C binding of MPI_Get_elements_x requires of its caller.
    unsafe { MPI_Get_elements_c(status, datatype, count) }
}

/// Changes a status of the caller.
///
/// # Safety
/// `status` is an input/output argument of the caller.
unsafe fn change(status: *mut MPI_Status, edit: impl FnOnce(&mut MPI_Status)) -> Outcome {
    // SAFETY: `status` is valid by the `# Safety` contract of this function.
    unsafe {
        let mut changed = read(status, "status")?;
        edit(&mut changed);
        out(status, changed, "status")
    }
}

pub unsafe fn MPI_Status_set_elements_c(
    status: *mut MPI_Status,
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
    // The count is one of basic elements; the datatype has this many.
    let each = i64::try_from(datatype.signature().elements)
        .unwrap_or(i64::MAX)
        .max(1);
    let whole = datatype.bytes(count / each);
    let rest = match count % each {
        0 => 0,
        rest => (0..=datatype.size())
            .find(|&b| datatype.elements(b) == Some(rest))
            .unwrap_or(0),
    };
    // SAFETY: `status` is valid as the C binding of MPI_Status_set_elements_c requires of its caller.
    unsafe { change(status, |s| s.set_bytes(whole + rest)) }
}

pub unsafe fn MPI_Status_set_elements_x(
    status: *mut MPI_Status,
    datatype: MPI_Datatype,
    count: MPI_Count,
) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_Status_set_elements_x requires of its caller.
    unsafe { MPI_Status_set_elements_c(status, datatype, count) }
}

pub unsafe fn MPI_Status_set_cancelled(status: *mut MPI_Status, flag: c_int) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_Status_set_cancelled requires of its caller.
    unsafe { change(status, |s| s.set_cancelled(flag != 0)) }
}

pub unsafe fn MPI_Test_cancelled(status: *const MPI_Status, flag: *mut c_int) -> Outcome {
    // SAFETY: `status` and `flag` are valid as the C binding of MPI_Test_cancelled requires of its caller.
    unsafe { out(flag, read(status, "status")?.cancelled().into(), "flag") }
}

pub unsafe fn MPI_Status_get_source(status: *const MPI_Status, source: *mut c_int) -> Outcome {
    // SAFETY: `status` and `source` are valid as the C binding of MPI_Status_get_source requires of its caller.
    unsafe { out(source, read(status, "status")?.MPI_SOURCE, "source") }
}

pub unsafe fn MPI_Status_set_source(status: *mut MPI_Status, source: c_int) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_Status_set_source requires of its caller.
    unsafe { change(status, |s| s.MPI_SOURCE = source) }
}

pub unsafe fn MPI_Status_get_tag(status: *const MPI_Status, tag: *mut c_int) -> Outcome {
    // SAFETY: `status` and `tag` are valid as the C binding of MPI_Status_get_tag requires of its caller.
    unsafe { out(tag, read(status, "status")?.MPI_TAG, "tag") }
}

pub unsafe fn MPI_Status_set_tag(status: *mut MPI_Status, tag: c_int) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_Status_set_tag requires of its caller.
    unsafe { change(status, |s| s.MPI_TAG = tag) }
}

pub unsafe fn MPI_Status_get_error(status: *const MPI_Status, error: *mut c_int) -> Outcome {
    // SAFETY: `status` and `error` are valid as the C binding of MPI_Status_get_error requires of its caller.
    unsafe { out(error, read(status, "status")?.MPI_ERROR, "error") }
}

pub unsafe fn MPI_Status_set_error(status: *mut MPI_Status, error: c_int) -> Outcome {
    // SAFETY: `status` is valid as the C binding of MPI_Status_set_error requires of its caller.
    unsafe { change(status, |s| s.MPI_ERROR = error) }
}

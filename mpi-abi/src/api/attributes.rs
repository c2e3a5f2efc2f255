//! Attributes and keyvals (section 7.7, and 16.1 for the names of MPI-1).

use super::args::{out, read};
use crate::abi::*;
use crate::error::Outcome;
use crate::object::attribute::{Carrier, Copy, CopyFunction, DeleteFunction};
use crate::object::datatype::object as type_object;
use crate::state::state;
use std::ffi::{c_int, c_void};

/// A copy function of any kind of object, from its address.
///
/// # Safety
/// Unless it is one of the two special values, the address is that of a copy function.
unsafe fn copy_function(address: usize) -> Copy {
    match address {
        MPI_COMM_NULL_COPY_FN => Copy::Never,
        MPI_COMM_DUP_FN => Copy::Always,
        // SAFETY: a function by the caller's promise; a handle is a number as wide as a pointer, so functions of
        // communicators, datatypes and windows are called alike.
        other => Copy::Ask(unsafe { std::mem::transmute::<usize, CopyFunction>(other) }),
    }
}

/// Makes a keyval.
///
/// # Safety
/// The addresses are those of functions of the program or special values; `keyval` is an output argument of the caller.
unsafe fn create(
    carrier: Carrier,
    copy: usize,
    delete: usize,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Outcome {
    // SAFETY: as for copy functions.
    let delete = (delete != MPI_COMM_NULL_DELETE_FN)
        .then(|| unsafe { std::mem::transmute::<usize, DeleteFunction>(delete) });
    // SAFETY: passed on.
    unsafe {
        let made = state()
            .keyvals
            .create(carrier, copy_function(copy), delete, extra_state)?;
        out(keyval, made, "keyval")
    }
}

/// Frees a keyval.
///
/// # Safety
/// `keyval` is an argument of the caller that is read and written.
unsafe fn free(carrier: Carrier, keyval: *mut c_int) -> Outcome {
    // SAFETY: passed on.
    unsafe {
        state().keyvals.free(carrier, read(keyval, "keyval")?)?;
        out(keyval, MPI_KEYVAL_INVALID, "keyval")
    }
}

/// Stores what a get call found.
///
/// # Safety
/// `value` is the address of a pointer of the caller, `flag` an output argument.
unsafe fn found(result: Option<*mut c_void>, value: *mut c_void, flag: *mut c_int) -> Outcome {
    // SAFETY: passed on.
    unsafe {
        if let Some(found) = result {
            out(value.cast(), found, "attribute_val")?;
        }
        out(flag, result.is_some().into(), "flag")
    }
}

pub unsafe fn MPI_Comm_create_keyval(
    copy: Option<MPI_Comm_copy_attr_function>,
    delete: Option<MPI_Comm_delete_attr_function>,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Outcome {
    let (copy, delete) = (
        copy.map_or(0, |f| f as usize),
        delete.map_or(0, |f| f as usize),
    );
    // SAFETY: functions and an output argument of the caller.
    unsafe { create(Carrier::Comm, copy, delete, keyval, extra_state) }
}

pub unsafe fn MPI_Comm_free_keyval(keyval: *mut c_int) -> Outcome {
    // SAFETY: passed on.
    unsafe { free(Carrier::Comm, keyval) }
}

pub unsafe fn MPI_Type_create_keyval(
    copy: Option<MPI_Type_copy_attr_function>,
    delete: Option<MPI_Type_delete_attr_function>,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Outcome {
    let (copy, delete) = (
        copy.map_or(0, |f| f as usize),
        delete.map_or(0, |f| f as usize),
    );
    // SAFETY: functions and an output argument of the caller.
    unsafe { create(Carrier::Type, copy, delete, keyval, extra_state) }
}

pub unsafe fn MPI_Type_free_keyval(keyval: *mut c_int) -> Outcome {
    // SAFETY: passed on.
    unsafe { free(Carrier::Type, keyval) }
}

pub unsafe fn MPI_Win_create_keyval(
    copy: Option<MPI_Win_copy_attr_function>,
    delete: Option<MPI_Win_delete_attr_function>,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Outcome {
    let (copy, delete) = (
        copy.map_or(0, |f| f as usize),
        delete.map_or(0, |f| f as usize),
    );
    // SAFETY: functions and an output argument of the caller.
    unsafe { create(Carrier::Win, copy, delete, keyval, extra_state) }
}

pub unsafe fn MPI_Win_free_keyval(keyval: *mut c_int) -> Outcome {
    // SAFETY: passed on.
    unsafe { free(Carrier::Win, keyval) }
}

pub unsafe fn MPI_Type_set_attr(
    datatype: MPI_Datatype,
    keyval: c_int,
    attribute_val: *mut c_void,
) -> Outcome {
    type_object(datatype)?
        .owner(datatype)
        .set(keyval, attribute_val)
}

pub unsafe fn MPI_Type_get_attr(
    datatype: MPI_Datatype,
    keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Outcome {
    let value = type_object(datatype)?.owner(datatype).get(keyval)?;
    // SAFETY: passed on.
    unsafe { found(value, attribute_val, flag) }
}

pub unsafe fn MPI_Type_delete_attr(datatype: MPI_Datatype, keyval: c_int) -> Outcome {
    type_object(datatype)?.owner(datatype).delete(keyval)
}

pub unsafe fn MPI_Keyval_create(
    copy: Option<MPI_Copy_function>,
    delete: Option<MPI_Delete_function>,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Outcome {
    // SAFETY: passed on; the two functions have the types of today's.
    unsafe { MPI_Comm_create_keyval(copy, delete, keyval, extra_state) }
}

pub unsafe fn MPI_Keyval_free(keyval: *mut c_int) -> Outcome {
    // SAFETY: passed on.
    unsafe { MPI_Comm_free_keyval(keyval) }
}

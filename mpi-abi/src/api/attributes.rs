//! Attributes and keyvals (section 7.7, and 16.1 for the names of MPI-1).

use super::args::{out, read};
use crate::abi::*;
use crate::error::{Failure, Outcome, codes};
use crate::object::attribute::{Carrier, Copy, CopyFunction, DeleteFunction};
use crate::phase;
use crate::registry::datatype::object as type_object;
use crate::state::{self, state};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Converts an address into a copy function.
///
/// # Safety
/// The address is one of the two special values or that of a copy function.
unsafe fn copy_function(address: usize) -> Copy {
    match address {
        MPI_COMM_NULL_COPY_FN => Copy::Never,
        MPI_COMM_DUP_FN => Copy::Always,
        // SAFETY: the address of a copy function by the `# Safety` contract of this function; a handle is a number as wide as a pointer, so
        // functions of communicators, datatypes and windows are called alike.
        other => Copy::Ask(unsafe { std::mem::transmute::<usize, CopyFunction>(other) }),
    }
}

/// Creates a keyval.
///
/// # Safety
/// The addresses are special values or those of functions of the program; `keyval` is an output argument of the caller.
unsafe fn create(
    carrier: Carrier,
    copy: usize,
    delete: usize,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Outcome {
    // SAFETY: `delete` is a delete function by the `# Safety` contract of this function, and handles are pointer-sized numbers.
    let delete = (delete != MPI_COMM_NULL_DELETE_FN)
        .then(|| unsafe { std::mem::transmute::<usize, DeleteFunction>(delete) });
    // SAFETY: `keyval` and `extra_state` are valid by the `# Safety` contract of this function.
    unsafe {
        let made = state().program().keyvals().create(
            carrier,
            copy_function(copy),
            delete,
            extra_state,
        )?;
        out(keyval, made, "keyval")
    }
}

/// Frees a keyval.
///
/// # Safety
/// `keyval` is an input/output argument of the caller.
unsafe fn free(carrier: Carrier, keyval: *mut c_int) -> Outcome {
    // SAFETY: `keyval` is valid by the `# Safety` contract of this function.
    unsafe {
        state()
            .program()
            .keyvals()
            .free(carrier, read(keyval, "keyval")?)?;
        out(keyval, MPI_KEYVAL_INVALID, "keyval")
    }
}

/// Stores the result of a get call.
///
/// # Safety
/// `value` is the address of a pointer of the caller, `flag` an output argument.
unsafe fn found(result: Option<*mut c_void>, value: *mut c_void, flag: *mut c_int) -> Outcome {
    // SAFETY: `value` and `flag` are null or writable: `# Safety` of this function.
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
    // SAFETY: `copy`, `delete`, `keyval` and `extra_state` are valid as the C binding of MPI_Comm_create_keyval requires of its caller.
    unsafe { create(Carrier::Comm, copy, delete, keyval, extra_state) }
}

pub unsafe fn MPI_Comm_free_keyval(keyval: *mut c_int) -> Outcome {
    // SAFETY: `keyval` is valid as the C binding of MPI_Comm_free_keyval requires of its caller.
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
    // SAFETY: `copy`, `delete`, `keyval` and `extra_state` are valid as the C binding of MPI_Type_create_keyval requires of its caller.
    unsafe { create(Carrier::Type, copy, delete, keyval, extra_state) }
}

pub unsafe fn MPI_Type_free_keyval(keyval: *mut c_int) -> Outcome {
    // SAFETY: `keyval` is valid as the C binding of MPI_Type_free_keyval requires of its caller.
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
    // SAFETY: `copy`, `delete`, `keyval` and `extra_state` are valid as the C binding of MPI_Win_create_keyval requires of its caller.
    unsafe { create(Carrier::Win, copy, delete, keyval, extra_state) }
}

pub unsafe fn MPI_Win_free_keyval(keyval: *mut c_int) -> Outcome {
    // SAFETY: `keyval` is valid as the C binding of MPI_Win_free_keyval requires of its caller.
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
    // SAFETY: `attribute_val` and `flag` are valid as the C binding of MPI_Type_get_attr requires of its caller.
    unsafe { found(value, attribute_val, flag) }
}

pub unsafe fn MPI_Type_delete_attr(datatype: MPI_Datatype, keyval: c_int) -> Outcome {
    type_object(datatype)?.owner(datatype).delete(keyval)
}

/// Returns true for a predefined window attribute, which programs can only read.
fn is_of_windows(keyval: c_int) -> bool {
    (MPI_WIN_BASE..=MPI_WIN_MODEL).contains(&keyval)
}

pub unsafe fn MPI_Win_set_attr(
    win: MPI_Win,
    win_keyval: c_int,
    attribute_val: *mut c_void,
) -> Outcome {
    if is_of_windows(win_keyval) {
        return Err(read_only(win_keyval));
    }
    state::win(win)?.owner().set(win_keyval, attribute_val)
}

pub unsafe fn MPI_Win_get_attr(
    win: MPI_Win,
    win_keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Outcome {
    let object = state::win(win)?;
    let value = match object.predefined(win_keyval) {
        None => object.owner().get(win_keyval)?,
        some => some,
    };
    // SAFETY: `attribute_val` and `flag` are valid as the C binding of MPI_Win_get_attr requires of its caller.
    unsafe { found(value, attribute_val, flag) }
}

pub unsafe fn MPI_Win_delete_attr(win: MPI_Win, win_keyval: c_int) -> Outcome {
    if is_of_windows(win_keyval) {
        return Err(read_only(win_keyval));
    }
    state::win(win)?.owner().delete(win_keyval)
}

pub unsafe fn MPI_Keyval_create(
    copy: Option<MPI_Copy_function>,
    delete: Option<MPI_Delete_function>,
    keyval: *mut c_int,
    extra_state: *mut c_void,
) -> Outcome {
    // SAFETY: `keyval` is null or writable: the C binding of MPI_Keyval_create requires it of the caller; the MPI-1 functions have the types of MPI_Comm_create_keyval's.
    unsafe { MPI_Comm_create_keyval(copy, delete, keyval, extra_state) }
}

pub unsafe fn MPI_Keyval_free(keyval: *mut c_int) -> Outcome {
    // SAFETY: `keyval` is valid as the C binding of MPI_Keyval_free requires of its caller.
    unsafe { MPI_Comm_free_keyval(keyval) }
}

/// Returns the value of a predefined communicator attribute (section 9.1.2): an int that lives as long as the process.
fn predefined(keyval: c_int) -> Result<Option<&'static c_int>, Failure> {
    static TAG_UB: c_int = c_int::MAX;
    static NO_HOST: c_int = MPI_PROC_NULL;
    // Every process can do language-standard input and output.
    static ANY_IO: c_int = MPI_ANY_SOURCE;
    // The clocks of different machines are not synchronized.
    static NOT_GLOBAL: c_int = 0;
    // Whether the job continues when a rank dies.
    static SURVIVES: [c_int; 2] = [0, 1];
    static JOB: OnceLock<(Option<c_int>, Option<c_int>)> = OnceLock::new();
    static LAST_USED: AtomicI32 = AtomicI32::new(MPI_ERR_LASTCODE);
    let engine = state::engine()?;
    let (appnum, universe) = JOB.get_or_init(|| {
        let identity = phase::launcher().map(|l| l.identity());
        let number = |n: Option<u32>| n.and_then(|n| c_int::try_from(n).ok());
        (
            number(identity.and_then(|i| i.appnum)),
            number(identity.and_then(|i| i.universe_size)),
        )
    });
    Ok(match keyval {
        MPI_TAG_UB => Some(&TAG_UB),
        MPI_HOST => Some(&NO_HOST),
        MPI_IO => Some(&ANY_IO),
        MPI_WTIME_IS_GLOBAL => Some(&NOT_GLOBAL),
        MPIX_FT => Some(&SURVIVES[usize::from(engine.is_fault_tolerant())]),
        MPI_APPNUM => appnum.as_ref(),
        MPI_UNIVERSE_SIZE => universe.as_ref(),
        MPI_LASTUSEDCODE => {
            LAST_USED.store(codes::last_used(), Relaxed);
            // SAFETY: an atomic has the layout of its integer, and only this function stores to it, in one thread at a time; the program
            // only reads it.
            Some(unsafe { &*LAST_USED.as_ptr() })
        }
        _ => None,
    })
}

/// Open MPI's attribute of fault tolerance (`mpi-ext.h`); between the standard's of communicators and those of windows.
const MPIX_FT: c_int = 575;

/// Returns true for a predefined communicator attribute, which programs can only read.
fn is_predefined(keyval: c_int) -> bool {
    (MPI_TAG_UB..=MPI_UNIVERSE_SIZE).contains(&keyval) || keyval == MPIX_FT
}

fn read_only(keyval: c_int) -> Failure {
    Failure::new(
        MPI_ERR_KEYVAL,
        format!("keyval {keyval} is predefined and can only be read"),
    )
}

pub unsafe fn MPI_Comm_set_attr(
    comm: MPI_Comm,
    keyval: c_int,
    attribute_val: *mut c_void,
) -> Outcome {
    if is_predefined(keyval) {
        return Err(read_only(keyval));
    }
    state::comm(comm)?.owner().set(keyval, attribute_val)
}

pub unsafe fn MPI_Comm_get_attr(
    comm: MPI_Comm,
    keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Outcome {
    let object = state::comm(comm)?;
    let value = if is_predefined(keyval) {
        predefined(keyval)?.map(|v| std::ptr::from_ref(v).cast_mut().cast())
    } else {
        object.owner().get(keyval)?
    };
    // SAFETY: `attribute_val` and `flag` are valid as the C binding of MPI_Comm_get_attr requires of its caller.
    unsafe { found(value, attribute_val, flag) }
}

pub unsafe fn MPI_Comm_delete_attr(comm: MPI_Comm, keyval: c_int) -> Outcome {
    if is_predefined(keyval) {
        return Err(read_only(keyval));
    }
    state::comm(comm)?.owner().delete(keyval)
}

pub unsafe fn MPI_Attr_put(comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void) -> Outcome {
    // SAFETY: `attribute_val` is valid as the C binding of MPI_Attr_put requires of its caller.
    unsafe { MPI_Comm_set_attr(comm, keyval, attribute_val) }
}

pub unsafe fn MPI_Attr_get(
    comm: MPI_Comm,
    keyval: c_int,
    attribute_val: *mut c_void,
    flag: *mut c_int,
) -> Outcome {
    // SAFETY: `attribute_val` and `flag` are valid as the C binding of MPI_Attr_get requires of its caller.
    unsafe { MPI_Comm_get_attr(comm, keyval, attribute_val, flag) }
}

pub unsafe fn MPI_Attr_delete(comm: MPI_Comm, keyval: c_int) -> Outcome {
    // SAFETY: no pointer is passed; the contract of MPI_Attr_delete is that of MPI_Comm_delete_attr.
    unsafe { MPI_Comm_delete_attr(comm, keyval) }
}

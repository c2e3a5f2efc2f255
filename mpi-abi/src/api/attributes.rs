//! Attributes and keyvals (section 7.7, and 16.1 for the names of MPI-1).
#![allow(unsafe_code)]

use super::args::{InOut, Out};
use crate::abi::*;
use crate::error::{Failure, Outcome, codes};
use crate::object::attribute::{Carrier, Copy, CopyFunction, DeleteFunction};
use crate::phase;
use crate::registry::datatype::object as type_object;
use crate::state::{self, state};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Converts an address into a copy callback.
///
/// # Safety
/// The address is a copy callback, `MPI_COMM_NULL_COPY_FN` or `MPI_COMM_DUP_FN`.
unsafe fn copy_function(address: usize) -> Copy {
    match address {
        MPI_COMM_NULL_COPY_FN => Copy::Never,
        MPI_COMM_DUP_FN => Copy::Always,
        // SAFETY: the address is a copy callback by the `# Safety` contract of this function.
        // Every handle has the size of a pointer, so callbacks of all object kinds have one ABI.
        other => Copy::Ask(unsafe { std::mem::transmute::<usize, CopyFunction>(other) }),
    }
}

/// Converts two addresses into a copy and a delete callback.
///
/// # Safety
/// Each address is a predefined constant or a callback of the program with this signature.
unsafe fn functions(copy: usize, delete: usize) -> (Copy, Option<DeleteFunction>) {
    // SAFETY: `delete` is a delete callback by the `# Safety` contract of this function.
    // Every handle has the size of a pointer, so callbacks of all object kinds have one ABI.
    let delete = (delete != MPI_COMM_NULL_DELETE_FN)
        .then(|| unsafe { std::mem::transmute::<usize, DeleteFunction>(delete) });
    // SAFETY: `copy` is a copy callback by the `# Safety` contract of this function.
    (unsafe { copy_function(copy) }, delete)
}

/// Creates a keyval for objects of the kind `carrier`, and stores it in `keyval`.
fn create(
    carrier: Carrier,
    (copy, delete): (Copy, Option<DeleteFunction>),
    keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Outcome {
    let made = state()
        .program()
        .keyvals()
        .create(carrier, copy, delete, extra_state)?;
    keyval.set(made, "keyval")
}

/// Frees a keyval, and sets the caller's variable to `MPI_KEYVAL_INVALID`.
fn free(carrier: Carrier, keyval: InOut<c_int>) -> Outcome {
    state()
        .program()
        .keyvals()
        .free(carrier, keyval.get("keyval")?)?;
    keyval.set(MPI_KEYVAL_INVALID, "keyval")
}

/// Stores the outputs of a `get_attr` call: the attribute's value, and a flag that is true if set.
fn found(result: Option<*mut c_void>, value: Out<*mut c_void>, flag: Out<c_int>) -> Outcome {
    if let Some(found) = result {
        value.set(found, "attribute_val")?;
    }
    flag.set(result.is_some().into(), "flag")
}

pub fn MPI_Comm_create_keyval(
    copy: Option<MPI_Comm_copy_attr_function>,
    delete: Option<MPI_Comm_delete_attr_function>,
    keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Outcome {
    let (copy, delete) = (
        copy.map_or(0, |f| f as usize),
        delete.map_or(0, |f| f as usize),
    );
    // SAFETY: the caller passed callbacks of this signature or predefined constants.
    let functions = unsafe { functions(copy, delete) };
    create(Carrier::Comm, functions, keyval, extra_state)
}

pub fn MPI_Comm_free_keyval(keyval: InOut<c_int>) -> Outcome {
    free(Carrier::Comm, keyval)
}

pub fn MPI_Type_create_keyval(
    copy: Option<MPI_Type_copy_attr_function>,
    delete: Option<MPI_Type_delete_attr_function>,
    keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Outcome {
    let (copy, delete) = (
        copy.map_or(0, |f| f as usize),
        delete.map_or(0, |f| f as usize),
    );
    // SAFETY: the caller passed callbacks of this signature or predefined constants.
    let functions = unsafe { functions(copy, delete) };
    create(Carrier::Type, functions, keyval, extra_state)
}

pub fn MPI_Type_free_keyval(keyval: InOut<c_int>) -> Outcome {
    free(Carrier::Type, keyval)
}

pub fn MPI_Win_create_keyval(
    copy: Option<MPI_Win_copy_attr_function>,
    delete: Option<MPI_Win_delete_attr_function>,
    keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Outcome {
    let (copy, delete) = (
        copy.map_or(0, |f| f as usize),
        delete.map_or(0, |f| f as usize),
    );
    // SAFETY: the caller passed callbacks of this signature or predefined constants.
    let functions = unsafe { functions(copy, delete) };
    create(Carrier::Win, functions, keyval, extra_state)
}

pub fn MPI_Win_free_keyval(keyval: InOut<c_int>) -> Outcome {
    free(Carrier::Win, keyval)
}

pub fn MPI_Type_set_attr(
    datatype: MPI_Datatype,
    keyval: c_int,
    attribute_val: *mut c_void,
) -> Outcome {
    type_object(datatype)?
        .owner(datatype)
        .set(keyval, attribute_val)
}

pub fn MPI_Type_get_attr(
    datatype: MPI_Datatype,
    keyval: c_int,
    attribute_val: Out<*mut c_void>,
    flag: Out<c_int>,
) -> Outcome {
    let value = type_object(datatype)?.owner(datatype).get(keyval)?;
    found(value, attribute_val, flag)
}

pub fn MPI_Type_delete_attr(datatype: MPI_Datatype, keyval: c_int) -> Outcome {
    type_object(datatype)?.owner(datatype).delete(keyval)
}

/// Returns true for a predefined window attribute, which is read-only for the program.
fn is_of_windows(keyval: c_int) -> bool {
    (MPI_WIN_BASE..=MPI_WIN_MODEL).contains(&keyval)
}

pub fn MPI_Win_set_attr(win: MPI_Win, win_keyval: c_int, attribute_val: *mut c_void) -> Outcome {
    if is_of_windows(win_keyval) {
        return Err(read_only(win_keyval));
    }
    state::win(win)?.owner().set(win_keyval, attribute_val)
}

pub fn MPI_Win_get_attr(
    win: MPI_Win,
    win_keyval: c_int,
    attribute_val: Out<*mut c_void>,
    flag: Out<c_int>,
) -> Outcome {
    let object = state::win(win)?;
    let value = match object.predefined(win_keyval) {
        None => object.owner().get(win_keyval)?,
        some => some,
    };
    found(value, attribute_val, flag)
}

pub fn MPI_Win_delete_attr(win: MPI_Win, win_keyval: c_int) -> Outcome {
    if is_of_windows(win_keyval) {
        return Err(read_only(win_keyval));
    }
    state::win(win)?.owner().delete(win_keyval)
}

pub fn MPI_Keyval_create(
    copy: Option<MPI_Copy_function>,
    delete: Option<MPI_Delete_function>,
    keyval: Out<c_int>,
    extra_state: *mut c_void,
) -> Outcome {
    MPI_Comm_create_keyval(copy, delete, keyval, extra_state)
}

pub fn MPI_Keyval_free(keyval: InOut<c_int>) -> Outcome {
    MPI_Comm_free_keyval(keyval)
}

/// Returns the value of a predefined communicator attribute (section 9.1.2), a static int.
fn predefined(keyval: c_int) -> Result<Option<&'static c_int>, Failure> {
    static TAG_UB: c_int = c_int::MAX;
    static NO_HOST: c_int = MPI_PROC_NULL;
    // `MPI_IO`: every process can do language-standard input and output.
    static ANY_IO: c_int = MPI_ANY_SOURCE;
    // `MPI_WTIME_IS_GLOBAL` is false: the clocks of different machines are not synchronized.
    static NOT_GLOBAL: c_int = 0;
    // The values of `MPIX_FT`; the index is 1 if the job continues after the death of a rank.
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
            // SAFETY: an `AtomicI32` has the layout of an `i32`, and the program only reads it.
            // Only this function stores to the atomic, in one thread at a time.
            Some(unsafe { &*LAST_USED.as_ptr() })
        }
        _ => None,
    })
}

/// Open MPI's keyval for fault tolerance (`mpi-ext.h`), the attribute `MPIX_FT`.
/// Its value lies between the predefined keyvals of communicators and those of windows.
const MPIX_FT: c_int = 575;

/// Returns true for a predefined communicator attribute, which is read-only for the program.
fn is_predefined(keyval: c_int) -> bool {
    (MPI_TAG_UB..=MPI_UNIVERSE_SIZE).contains(&keyval) || keyval == MPIX_FT
}

fn read_only(keyval: c_int) -> Failure {
    Failure::new(
        MPI_ERR_KEYVAL,
        format!("keyval {keyval} is predefined and can only be read"),
    )
}

pub fn MPI_Comm_set_attr(comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void) -> Outcome {
    if is_predefined(keyval) {
        return Err(read_only(keyval));
    }
    state::comm(comm)?.owner().set(keyval, attribute_val)
}

pub fn MPI_Comm_get_attr(
    comm: MPI_Comm,
    keyval: c_int,
    attribute_val: Out<*mut c_void>,
    flag: Out<c_int>,
) -> Outcome {
    let object = state::comm(comm)?;
    let value = if is_predefined(keyval) {
        predefined(keyval)?.map(|v| std::ptr::from_ref(v).cast_mut().cast())
    } else {
        object.owner().get(keyval)?
    };
    found(value, attribute_val, flag)
}

pub fn MPI_Comm_delete_attr(comm: MPI_Comm, keyval: c_int) -> Outcome {
    if is_predefined(keyval) {
        return Err(read_only(keyval));
    }
    state::comm(comm)?.owner().delete(keyval)
}

pub fn MPI_Attr_put(comm: MPI_Comm, keyval: c_int, attribute_val: *mut c_void) -> Outcome {
    MPI_Comm_set_attr(comm, keyval, attribute_val)
}

pub fn MPI_Attr_get(
    comm: MPI_Comm,
    keyval: c_int,
    attribute_val: Out<*mut c_void>,
    flag: Out<c_int>,
) -> Outcome {
    MPI_Comm_get_attr(comm, keyval, attribute_val, flag)
}

pub fn MPI_Attr_delete(comm: MPI_Comm, keyval: c_int) -> Outcome {
    MPI_Comm_delete_attr(comm, keyval)
}

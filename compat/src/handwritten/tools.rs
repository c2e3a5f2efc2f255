//! Tool variables and events that are bound to an MPI object. The program passes the address of
//! the object's handle, which is converted.
#![allow(unsafe_code)]

use crate::backend;
use crate::convert::code_out;
use crate::family::{Family, Kind, Word};
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The handle types in the order of `MPI_T_BIND_*`, from 2 on: 1 is `MPI_T_BIND_NO_OBJECT`.
const BOUND: [Kind; 11] = [
    Kind::Comm,
    Kind::Datatype,
    Kind::Errhandler,
    Kind::File,
    Kind::Group,
    Kind::Op,
    Kind::Request,
    Kind::Win,
    Kind::Message,
    Kind::Info,
    Kind::Session,
];

/// The handle of an object, converted to the backend's ABI.
enum Object<F: Family> {
    File(usize),
    Other(F::Below),
}

/// Converts the handle at `pointer`, of the type that the standard's constant of `bind` names.
/// Returns `None` if `bind` names no type or `pointer` is null.
unsafe fn object<F: Family>(bind: c_int, pointer: *mut c_void) -> Option<Object<F>> {
    let bind = F::standard(Word::Bind, bind);
    let kind = *BOUND.get(usize::try_from(bind - 2).ok()?)?;
    if pointer.is_null() {
        return None;
    }
    Some(match kind {
        // SAFETY: the MPI standard requires that the program passes valid arguments.
        Kind::File => Object::File(F::file_in(unsafe {
            pointer.cast::<usize>().read_unaligned()
        })),
        // SAFETY: the MPI standard requires that the program passes valid arguments.
        kind => Object::Other(F::handle_in(kind, unsafe {
            pointer.cast::<F::Handle>().read_unaligned()
        })),
    })
}

/// Allocates a handle of a tool variable or event.
/// `get_bind` stores the backend's constant for the type of object to which the variable is bound.
/// `allocate` receives the address of the converted handle, or `given` if there is no object.
///
/// # Safety
/// `given` points to a handle of the type to which the variable is bound.
unsafe fn bound<F: Family>(
    given: *mut c_void,
    get_bind: impl FnOnce(&mut c_int),
    allocate: impl FnOnce(*mut c_void) -> c_int,
) -> c_int {
    let mut bind = 0;
    get_bind(&mut bind);
    // SAFETY: `given` points to a handle of that kind, by contract.
    let code = match unsafe { object::<F>(bind, given) } {
        Some(Object::File(mut file)) => allocate((&raw mut file).cast()),
        Some(Object::Other(mut handle)) => allocate((&raw mut handle).cast()),
        None => allocate(given),
    };
    code_out::<F>(code)
}

pub unsafe fn MPI_T_cvar_handle_alloc<F: Family>(
    index: c_int,
    given: *mut c_void,
    handle: *mut usize,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        bound::<F>(
            given,
            |bind| {
                (backend::MPI_T_cvar_get_info::<F>())(
                    index,
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    bind,
                    null_mut(),
                );
            },
            |pointer| (backend::MPI_T_cvar_handle_alloc::<F>())(index, pointer, handle, count),
        )
    }
}

pub unsafe fn MPI_T_pvar_handle_alloc<F: Family>(
    session: usize,
    index: c_int,
    given: *mut c_void,
    handle: *mut usize,
    count: *mut c_int,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        bound::<F>(
            given,
            |bind| {
                (backend::MPI_T_pvar_get_info::<F>())(
                    index,
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    bind,
                    null_mut(),
                    null_mut(),
                    null_mut(),
                );
            },
            |pointer| {
                (backend::MPI_T_pvar_handle_alloc::<F>())(session, index, pointer, handle, count)
            },
        )
    }
}

pub unsafe fn MPI_T_event_handle_alloc<F: Family>(
    index: c_int,
    given: *mut c_void,
    info: F::Handle,
    registration: *mut usize,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        bound::<F>(
            given,
            |bind| {
                (backend::MPI_T_event_get_info::<F>())(
                    index,
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    null_mut(),
                    bind,
                );
            },
            |pointer| {
                (backend::MPI_T_event_handle_alloc::<F>())(
                    index,
                    pointer,
                    F::handle_in(Kind::Info, info),
                    registration,
                )
            },
        )
    }
}

pub unsafe fn MPI_T_event_get_info<F: Family>(
    index: c_int,
    name: *mut std::ffi::c_char,
    name_len: *mut c_int,
    verbosity: *mut c_int,
    datatypes: *mut F::Handle,
    displacements: *mut isize,
    elements: *mut c_int,
    enumeration: *mut usize,
    info: *mut F::Handle,
    desc: *mut std::ffi::c_char,
    desc_len: *mut c_int,
    bind: *mut c_int,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let space = if elements.is_null() || datatypes.is_null() {
            0
        } else {
            usize::try_from(elements.read()).unwrap_or(0)
        };
        let mut list = vec![F::null(Kind::Datatype); space.max(1)];
        let mut made = F::null(Kind::Info);
        let code = (backend::MPI_T_event_get_info::<F>())(
            index,
            name,
            name_len,
            verbosity,
            if datatypes.is_null() {
                null_mut()
            } else {
                list.as_mut_ptr()
            },
            displacements,
            elements,
            enumeration,
            if info.is_null() {
                null_mut()
            } else {
                &raw mut made
            },
            desc,
            desc_len,
            bind,
        );
        if code == 0 {
            let known = if elements.is_null() {
                0
            } else {
                usize::try_from(elements.read()).unwrap_or(0)
            };
            for (i, datatype) in list.iter().take(known.min(space)).enumerate() {
                datatypes
                    .add(i)
                    .write(F::handle_out(Kind::Datatype, *datatype));
            }
            if !info.is_null() {
                info.write(F::handle_out(Kind::Info, made));
            }
            for (place, word) in [(verbosity, Word::Verbosity), (bind, Word::Bind)] {
                if !place.is_null() {
                    place.write(F::word_out(word, place.read()));
                }
            }
        }
        code_out::<F>(code)
    }
}

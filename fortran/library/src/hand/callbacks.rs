//! Callbacks of generalized requests and data representations.
//! The extra state for C is a pointer to a box with the Fortran functions.
#![allow(unsafe_code)]

use super::predefined;
use crate::bodies::{Calls, Ptr};
use crate::convert;
use crate::handle::{self, number, output};
use crate::text;
use std::ptr::null_mut;

/// The functions of a generalized request, with the interfaces of MPI 5.0, section 13.2.
struct Request {
    query: usize,
    free: usize,
    cancel: usize,
    extra: i64,
}

type Query = unsafe extern "C" fn(*mut i64, *mut i32, *mut i32);
type Free = unsafe extern "C" fn(*mut i64, *mut i32);
type Cancel = unsafe extern "C" fn(*mut i64, *mut i32, *mut i32);

unsafe extern "C" fn query(state: *mut Request, status: *mut i32) -> i32 {
    // SAFETY: C passes the extra state of `grequest_start`, which is not freed yet, and a status.
    // A status in Fortran is an array of INTEGERs with the same layout.
    unsafe {
        let (function, mut outcome) = (std::mem::transmute::<usize, Query>((*state).query), 0_i32);
        function(&raw mut (*state).extra, status, &raw mut outcome);
        outcome
    }
}

/// Frees the request's state; the C library calls this last.
unsafe extern "C" fn free(state: *mut Request) -> i32 {
    // SAFETY: the C library passes the leaked box of `grequest_start`, once, after all other calls.
    unsafe {
        let (function, mut outcome) = (std::mem::transmute::<usize, Free>((*state).free), 0_i32);
        function(&raw mut (*state).extra, &raw mut outcome);
        drop(Box::from_raw(state));
        outcome
    }
}

unsafe extern "C" fn cancel(state: *mut Request, complete: i32) -> i32 {
    // SAFETY: the C library passes the extra state of `grequest_start`, which is not freed yet.
    unsafe {
        let (function, mut outcome) =
            (std::mem::transmute::<usize, Cancel>((*state).cancel), 0_i32);
        let mut complete = convert::of_logical(complete != 0);
        function(&raw mut (*state).extra, &raw mut complete, &raw mut outcome);
        outcome
    }
}

pub unsafe fn grequest_start<C: Calls>(
    query_fn: Ptr,
    free_fn: Ptr,
    cancel_fn: Ptr,
    extra_state: *mut i64,
    request: *mut i32,
) -> i32 {
    // SAFETY: the arguments have the types of Fortran's interface. On success, the C library passes
    // `state` to the functions above. After a failure it does not, so the box is freed here.
    unsafe {
        let state = Box::into_raw(Box::new(Request {
            query: query_fn as usize,
            free: free_fn as usize,
            cancel: cancel_fn as usize,
            extra: *extra_state,
        }));
        let mut made: Ptr = null_mut();
        let outcome = C::MPI_Grequest_start(
            query as *const () as Ptr,
            free as *const () as Ptr,
            cancel as *const () as Ptr,
            state as usize as i64,
            (&raw mut made).cast(),
        );
        if outcome != 0 {
            drop(Box::from_raw(state));
        }
        output::<handle::Request>(request, made);
        outcome
    }
}

/// The Fortran functions of a data representation; this structure is never freed.
struct Representation {
    read: usize,
    write: usize,
    extent: usize,
    extra: i64,
}

type Conversion<L> = unsafe extern "C" fn(Ptr, *mut i32, *mut L, Ptr, *mut i64, *mut i64, *mut i32);
type Extent = unsafe extern "C" fn(*mut i32, *mut i64, *mut i64, *mut i32);

/// Calls a conversion function of the program.
///
/// # Safety
/// `function` is a conversion function with counts of type `L`, from the representation of `state`.
/// The other arguments come unchanged from the C library.
unsafe fn converted<L>(
    function: usize,
    userbuf: Ptr,
    datatype: Ptr,
    mut count: L,
    filebuf: Ptr,
    mut position: i64,
    state: *mut Representation,
) -> i32 {
    // SAFETY: the arguments satisfy this function's contract; results are local variables.
    unsafe {
        let (function, mut outcome) =
            (std::mem::transmute::<usize, Conversion<L>>(function), 0_i32);
        let mut datatype = number::<handle::Datatype>(datatype);
        function(
            userbuf,
            &raw mut datatype,
            &raw mut count,
            filebuf,
            &raw mut position,
            &raw mut (*state).extra,
            &raw mut outcome,
        );
        outcome
    }
}

unsafe extern "C" fn read<L>(
    userbuf: Ptr,
    datatype: Ptr,
    count: L,
    filebuf: Ptr,
    position: i64,
    state: *mut Representation,
) -> i32 {
    // SAFETY: the C library passes the registered extra state, which is never freed.
    unsafe {
        converted(
            (*state).read,
            userbuf,
            datatype,
            count,
            filebuf,
            position,
            state,
        )
    }
}

unsafe extern "C" fn write<L>(
    userbuf: Ptr,
    datatype: Ptr,
    count: L,
    filebuf: Ptr,
    position: i64,
    state: *mut Representation,
) -> i32 {
    // SAFETY: the C library passes the registered extra state, which is never freed.
    unsafe {
        converted(
            (*state).write,
            userbuf,
            datatype,
            count,
            filebuf,
            position,
            state,
        )
    }
}

unsafe extern "C" fn extent(datatype: Ptr, extent: *mut i64, state: *mut Representation) -> i32 {
    // SAFETY: C passes the registered extra state, which is never freed, and a result variable.
    unsafe {
        let (function, mut outcome) =
            (std::mem::transmute::<usize, Extent>((*state).extent), 0_i32);
        let mut datatype = number::<handle::Datatype>(datatype);
        function(
            &raw mut datatype,
            extent,
            &raw mut (*state).extra,
            &raw mut outcome,
        );
        outcome
    }
}

macro_rules! representations {
    ($($name:ident $c:ident $length:ty;)*) => {
        $(
            pub unsafe fn $name<C: Calls>(
                datarep: *mut u8,
                read_conversion_fn: Ptr,
                write_conversion_fn: Ptr,
                dtype_file_extent_fn: Ptr,
                extra_state: *mut i64,
                datarep_len: usize,
            ) -> i32 {
                // SAFETY: `datarep` has `datarep_len` characters; `extra_state` is an INTEGER.
                // On success, the C library passes `state` to the functions above.
                unsafe {
                    let state = Box::into_raw(Box::new(Representation {
                        read: read_conversion_fn as usize,
                        write: write_conversion_fn as usize,
                        extent: dtype_file_extent_fn as usize,
                        extra: *extra_state,
                    }));
                    let reads = read::<$length> as *const () as Ptr;
                    let writes = write::<$length> as *const () as Ptr;
                    let name = text::input(datarep, datarep_len);
                    let outcome = C::$c(
                        name.as_ptr() as Ptr,
                        predefined::constant(read_conversion_fn).unwrap_or(reads),
                        predefined::constant(write_conversion_fn).unwrap_or(writes),
                        extent as *const () as Ptr,
                        state as usize as i64,
                    );
                    if outcome != 0 {
                        drop(Box::from_raw(state));
                    }
                    outcome
                }
            }
        )*
    };
}

representations! {
    register_datarep MPI_Register_datarep i32;
    register_datarep_c MPI_Register_datarep_c i64;
}

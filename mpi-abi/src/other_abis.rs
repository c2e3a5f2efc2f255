//! Extensions for the libraries of other MPI ABIs (`compat/`), beyond the standard's functions.
//!
//! The callbacks of operators and error handlers have a context argument.
//! With the context, the callbacks convert their arguments to the program's ABI.
//! A nonblocking duplication passes the new handle to a callback.
//!
//! Both libraries must belong to one installation: another installation may lack these symbols.
//! The library for another ABI then reports the missing symbols.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::api::args::{Out, null};
use crate::api::comm;
use crate::api::op::{register, with_handle};
use crate::call::call;
use crate::error::{Context, Contextual, Failure, Release, Target, handler};
use crate::functions::id_of;
use crate::info::Hints;
use crate::thrown::{guarded, pass_on};
use mpi_core::datatype::Datatype;
use mpi_core::op::Op;
use std::ffi::{c_int, c_void};
use std::sync::Arc;

/// The function of an operator. Arguments: context, input,
/// in-out operand, number of elements, datatype.
type Combine =
    unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut c_void, i64, MPI_Datatype);
/// Creates an operator. `combine` is called for at most `most` elements at a time.
///
/// # Safety
/// `combine` may be called with the context until `release` is called.
/// `op` is an output argument.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn portcullis_make_operator(
    combine: Combine,
    most: i64,
    context: *mut c_void,
    release: Release,
    commute: c_int,
    op: *mut MPI_Op,
) -> c_int {
    let has_function = !context.is_null();
    let context = Context {
        value: context,
        release,
    };
    pass_on(call(id_of("MPI_Op_create"), Target::None, move || {
        if !has_function {
            return Err(Failure::new(MPI_ERR_ARG, "user_fn is a null pointer"));
        }
        let most = most.max(1);
        let apply = move |input: *const u8, inout: *mut u8, len: i64, datatype: &Datatype| {
            // The closure owns the context, so that it is released with the operator.
            let context = &context;
            with_handle(datatype, |handle| {
                let mut at = 0;
                while at < len {
                    let part = (len - at).min(most);
                    let offset = (at * datatype.extent()) as isize;
                    let context = context.value;
                    let input = input.cast_mut().wrapping_offset(offset).cast();
                    let inout = inout.wrapping_offset(offset).cast();
                    // SAFETY: the engine's buffers hold `part` elements.
                    // By the `# Safety` contract of this function,
                    // `combine` may be called with the context.
                    guarded((), move || unsafe {
                        combine(context, input, inout, part, handle)
                    });
                    at += part;
                }
            });
        };
        // SAFETY: `op` is valid by the `# Safety` contract of this function.
        register(Op::user(apply, commute != 0), unsafe { Out::new(op) })
    }))
}

/// The object kinds of error handlers, indexed by the argument `kind`.
const SERVED: [handler::Serves; 4] = [
    handler::Serves::Comm,
    handler::Serves::Win,
    handler::Serves::File,
    handler::Serves::Session,
];

/// Creates an error handler for an object kind: 0 communicators, 1 windows, 2 files, 3 sessions.
///
/// # Safety
/// `function` may be called with the context until `release` is called.
/// `errhandler` is an output argument.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn portcullis_make_error_handler(
    kind: c_int,
    function: unsafe extern "C-unwind" fn(*mut c_void, usize, *mut c_int),
    context: *mut c_void,
    release: Release,
    errhandler: *mut MPI_Errhandler,
) -> c_int {
    let has_function = !context.is_null();
    let context = Arc::new(Context {
        value: context,
        release,
    });
    pass_on(call(
        id_of("MPI_Comm_create_errhandler"),
        Target::None,
        move || {
            let serves = usize::try_from(kind).ok().and_then(|k| SERVED.get(k));
            let (Some(serves), true) = (serves, has_function) else {
                return Err(Failure::new(
                    MPI_ERR_ARG,
                    "the function of the error handler is a null pointer",
                ));
            };
            let made = handler::create(handler::UserHandler::Contextual(
                *serves,
                Contextual { function, context },
            ))?;
            // SAFETY: `errhandler` is an output argument, by the `# Safety` contract.
            unsafe { Out::new(errhandler) }.set(made, "errhandler")
        },
    ))
}

/// Starts a duplication of a communicator, as `MPI_Comm_idup_with_info` does.
/// `deliver` receives the handle at completion.
///
/// # Safety
/// `deliver` may be called with `place` until the request completes.
/// `request` is an output argument.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn portcullis_comm_idup(
    comm: MPI_Comm,
    info: MPI_Info,
    deliver: unsafe extern "C" fn(*mut c_void, MPI_Comm),
    place: *mut c_void,
    request: *mut MPI_Request,
) -> c_int {
    let name = match info {
        MPI_INFO_NULL => "MPI_Comm_idup",
        _ => "MPI_Comm_idup_with_info",
    };
    pass_on(call(id_of(name), Target::Comm(comm), move || {
        let hints = match info {
            MPI_INFO_NULL => Hints::new(),
            info => crate::info::hints(info)?,
        };
        // SAFETY: `deliver`, `place` and `request` are valid by the `# Safety` contract.
        unsafe {
            let sink = comm::HandleSink::Contextual(deliver, place);
            crate::state::comm(comm)?;
            if place.is_null() {
                return Err(null("newcomm"));
            }
            sink.write(MPI_COMM_NULL);
            comm::idup(comm, &hints, sink, Out::new(request))
        }
    }))
}

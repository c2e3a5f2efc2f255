//! Reduction operators of the program, on a backend that passes no context argument.
//!
//! The program's functions need converted datatype handles.
//! So each operator has a trampoline ([`crate::trampoline`]), which passes the program's function.

use super::Foreign;
use crate::backend;
use crate::convert::{HandleOut, code_out, of};
use crate::family::Kind;
use crate::trampoline;
use std::ffi::{c_int, c_void};

/// `MPI_ERR_NO_MEM` of the standard.
pub(super) const NO_MEMORY: c_int = 39;

type Function<C> = unsafe extern "C-unwind" fn(*mut c_void, *mut c_void, *mut C, *mut usize);

/// Converts the datatype handle and calls the program's function. Called by the trampoline.
unsafe extern "C-unwind" fn operate<F: Foreign, C>(
    input: *mut c_void,
    inout: *mut c_void,
    count: *mut C,
    datatype: *mut F::Below,
    function: *mut c_void,
) {
    // SAFETY: the backend passes valid arguments.
    // The context is a function of the program with this signature.
    unsafe {
        let mut datatype = F::handle_out(Kind::Datatype, datatype.read());
        let function: Function<C> = std::mem::transmute(function);
        F::program(|| function(input, inout, count, &raw mut datatype));
    }
}

/// Returns a function for the backend that calls the program's function.
/// Returns 0 if there is no memory for a trampoline.
pub(super) fn function<F: Foreign, C>(of_program: usize) -> usize {
    let target: unsafe extern "C-unwind" fn(
        *mut c_void,
        *mut c_void,
        *mut C,
        *mut F::Below,
        *mut c_void,
    ) = operate::<F, C>;
    trampoline::make(target as usize, of_program).unwrap_or(0)
}

macro_rules! creator {
    ($name:ident<F: Foreign>, $count:ty) => {
        pub unsafe fn $name<F: Foreign>(
            of_program: usize,
            commute: c_int,
            op: *mut usize,
        ) -> c_int {
            let given = match of_program {
                0 => 0,
                known => match function::<F, $count>(known) {
                    0 => return NO_MEMORY,
                    made => made,
                },
            };
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            unsafe {
                let mut made = HandleOut::<F, of::Op>::new(op);
                let code = (backend::$name::<F>())(given, commute, made.argument());
                code_out::<F>(code)
            }
        }
    };
}

creator!(MPI_Op_create<F: Foreign>, c_int);
creator!(MPI_Op_create_c<F: Foreign>, i64);

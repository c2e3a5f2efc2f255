//! Error handlers of the program. The backend calls them through a [`crate::trampoline`].

use super::Foreign;
use super::operators::NO_MEMORY;
use crate::backend;
use crate::convert::{HandleOut, code_out, of};
use crate::family::{Kind, Word};
use crate::trampoline;
use std::cell::Cell;
use std::ffi::{c_int, c_void};

const COMM: u8 = 0;
const WIN: u8 = 1;
const FILE: u8 = 2;
const SESSION: u8 = 3;

thread_local! {
    /// The handle that error handlers receive instead of the backend's; 0 for no replacement.
    static SUBJECT: Cell<usize> = const { Cell::new(0) };
    /// The error class that handlers receive instead of the backend's code; 0 for no replacement.
    static CLASS: Cell<c_int> = const { Cell::new(0) };
}

/// The previous values of [`SUBJECT`] and [`CLASS`] during a call, which are restored on drop.
/// The drop also runs when an exception unwinds through the call.
struct Passed {
    subject: usize,
    class: c_int,
}

impl Passed {
    fn set(subject: usize, class: c_int) -> Self {
        Passed {
            subject: SUBJECT.replace(subject),
            class: CLASS.replace(class),
        }
    }
}

impl Drop for Passed {
    fn drop(&mut self) {
        SUBJECT.set(self.subject);
        CLASS.set(self.class);
    }
}

/// Runs a backend call. Error handlers called during the call receive the handle `subject`.
pub(super) fn with_subject<R>(subject: usize, call: impl FnOnce() -> R) -> R {
    let _passed = Passed::set(subject, CLASS.get());
    call()
}

/// Runs a backend call. Error handlers called during the call receive the error class `class`,
/// which the backend does not have.
pub(super) fn with_code<R>(class: c_int, call: impl FnOnce() -> R) -> R {
    let _passed = Passed::set(SUBJECT.get(), class);
    call()
}

type Handler = unsafe extern "C-unwind" fn(*mut usize, *mut c_int, ...);

/// Converts the arguments and calls the program's handler `function`. Called by the trampoline.
/// Further (variadic) arguments of the backend are not read.
unsafe extern "C-unwind" fn handle<F: Foreign, const OF: u8>(
    object: *mut F::Below,
    code: *mut c_int,
    _: *mut c_void,
    _: *mut c_void,
    function: *mut c_void,
) {
    // SAFETY: the backend passes pointers to a handle and a code.
    // The context is a function of the program with this signature.
    unsafe {
        let mut object = match OF {
            _ if SUBJECT.get() != 0 => SUBJECT.get(),
            FILE => F::file_out(object.cast::<usize>().read()),
            COMM => F::handle_out(Kind::Comm, object.read()),
            WIN => F::handle_out(Kind::Win, object.read()),
            _ => F::handle_out(Kind::Session, object.read()),
        };
        let mut here = match CLASS.get() {
            0 => F::word_out(Word::Error, code.read()),
            class => class,
        };
        let before = here;
        let function: Handler = std::mem::transmute(function);
        // MPI calls of the handler may call error handlers too, with their own handles and codes.
        let _passed = Passed::set(0, 0);
        F::program(|| function(&raw mut object, &raw mut here));
        if here != before {
            code.write(F::word_in(Word::Error, here));
        }
    }
}

macro_rules! creator {
    ($name:ident<F: Foreign>, $of:ident) => {
        pub unsafe fn $name<F: Foreign>(of_program: usize, handler: *mut usize) -> c_int {
            let target: unsafe extern "C-unwind" fn(
                *mut F::Below,
                *mut c_int,
                *mut c_void,
                *mut c_void,
                *mut c_void,
            ) = handle::<F, $of>;
            let given = match of_program {
                0 => 0,
                known => match trampoline::make(target as usize, known) {
                    Ok(made) => made,
                    Err(_) => return NO_MEMORY,
                },
            };
            // SAFETY: the MPI standard requires that the program passes valid arguments.
            unsafe {
                let mut made = HandleOut::<F, of::Errhandler>::new(handler);
                let code = (backend::$name::<F>())(given, made.argument());
                code_out::<F>(code)
            }
        }
    };
}

creator!(MPI_Comm_create_errhandler<F: Foreign>, COMM);
creator!(MPI_Win_create_errhandler<F: Foreign>, WIN);
creator!(MPI_File_create_errhandler<F: Foreign>, FILE);
creator!(MPI_Session_create_errhandler<F: Foreign>, SESSION);

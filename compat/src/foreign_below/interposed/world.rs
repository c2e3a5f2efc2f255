//! Emulated World Model (`MPI_Init`, `MPI_Finalize`) on a backend without sessions.
//!
//! This library initializes the backend at the first session, or at the first info or error handler
//! that the program creates before it initializes MPI.
//! From then on, this library finalizes the backend only at process exit,
//! because sessions may follow `MPI_Finalize` and a backend can be initialized only once.
//! `MPI_Initialized` etc. are then answered from the program's own calls.

use super::{original, put_in_front};
use crate::backend;
use crate::family::Word;
use crate::foreign_below::Foreign;
use crate::lock::lock;
use crate::reentrancy;
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard};

/// `MPI_THREAD_MULTIPLE` of the standard.
const THREAD_MULTIPLE: c_int = 4096;

/// The state of the World Model after the program's calls so far.
struct State {
    /// True if the backend stays initialized until this library finalizes it at process exit.
    is_held: bool,
    world_begun: bool,
    world_ended: bool,
    provided: c_int,
}

static STATE: Mutex<State> = Mutex::new(State {
    is_held: false,
    world_begun: false,
    world_ended: false,
    provided: 0,
});

fn state() -> MutexGuard<'static, State> {
    lock(&STATE)
}

/// Returns true if the backend stays initialized until process exit.
pub fn is_held() -> bool {
    state().is_held
}

/// Returns true if the program has initialized the World Model and has not finalized it.
pub fn is_running<F: Foreign>() -> bool {
    let (mut begun, mut ended) = (0, 0);
    // SAFETY: both functions are allowed at any time, and the outputs are local variables.
    unsafe {
        (backend::MPI_Initialized::<F>())(&raw mut begun);
        (backend::MPI_Finalized::<F>())(&raw mut ended);
    }
    begun != 0 && ended == 0
}

/// Initializes the backend if necessary, and keeps it initialized until process exit.
/// Returns false if the backend is finalized or its initialization fails.
///
/// # Safety
/// None: the function is allowed at any time.
pub unsafe fn hold<F: Foreign>() -> bool {
    let mut state = state();
    if state.is_held {
        return true;
    }
    // SAFETY: the first two functions are allowed at any time.
    // `state` is locked, so `MPI_Init_thread` is called at most once.
    unsafe {
        let (mut begun, mut ended, mut provided) = (0, 0, 0);
        original!(MPI_Initialized)(&raw mut begun);
        original!(MPI_Finalized)(&raw mut ended);
        if ended != 0 {
            return false;
        }
        if begun == 0 {
            let level = F::word_in(Word::Thread, THREAD_MULTIPLE);
            if original!(MPI_Init_thread)(null_mut(), null_mut(), level, &raw mut provided) != 0 {
                return false;
            }
            state.provided = provided;
        } else {
            original!(MPI_Query_thread)(&raw mut state.provided);
        }
        state.is_held = true;
        libc::atexit(let_go::<F>);
    }
    true
}

/// Finalizes the backend at process exit.
extern "C" fn let_go<F: Foreign>() {
    let (mut ended, is_held) = (0, state().is_held);
    // SAFETY: `MPI_Finalized` is allowed at any time.
    // `MPI_Finalize` is called once, from `atexit`, as the last call of the backend.
    unsafe {
        original!(MPI_Finalized)(&raw mut ended);
        if is_held && ended == 0 {
            let _inside = reentrancy::Inside::enter();
            original!(MPI_Finalize)();
        }
    }
}

// SAFETY of all functions below: the exported functions call them, not the backend's functions.
// The arguments are the program's, which the standard requires to be valid.

unsafe extern "C-unwind" fn MPI_Init_thread<F: Foreign>(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    let (is_held, level) = {
        let state = state();
        (state.is_held && !state.world_begun, state.provided)
    };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let code = if is_held {
            if !provided.is_null() {
                provided.write(level);
            }
            0
        } else {
            original!(MPI_Init_thread)(argc, argv, required, provided)
        };
        state().world_begun |= code == 0;
        code
    }
}

unsafe extern "C-unwind" fn MPI_Init<F: Foreign>(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
) -> c_int {
    let is_held = {
        let state = state();
        state.is_held && !state.world_begun
    };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    let code = if is_held {
        0
    } else {
        // SAFETY: the MPI standard requires that the program passes valid arguments.
        unsafe { original!(MPI_Init)(argc, argv) }
    };
    state().world_begun |= code == 0;
    code
}

unsafe extern "C-unwind" fn MPI_Finalize<F: Foreign>() -> c_int {
    let is_held = {
        let state = state();
        state.is_held && !state.world_ended
    };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    let code = if is_held {
        0
    } else {
        // SAFETY: the MPI standard requires that the program passes valid arguments.
        unsafe { original!(MPI_Finalize)() }
    };
    state().world_ended |= code == 0;
    code
}

unsafe extern "C-unwind" fn MPI_Initialized<F: Foreign>(flag: *mut c_int) -> c_int {
    let (is_held, begun) = {
        let state = state();
        (state.is_held, state.world_begun)
    };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if is_held {
            flag.write(begun.into());
            return 0;
        }
        original!(MPI_Initialized)(flag)
    }
}

unsafe extern "C-unwind" fn MPI_Finalized<F: Foreign>(flag: *mut c_int) -> c_int {
    let (is_held, ended) = {
        let state = state();
        (state.is_held, state.world_ended)
    };
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if is_held {
            flag.write(ended.into());
            return 0;
        }
        original!(MPI_Finalized)(flag)
    }
}

unsafe extern "C-unwind" fn MPI_Info_create<F: Foreign>(info: *mut F::Below) -> c_int {
    let (mut begun, mut ended) = (0, 0);
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        original!(MPI_Initialized)(&raw mut begun);
        original!(MPI_Finalized)(&raw mut ended);
        if begun == 0 || ended != 0 {
            hold::<F>();
        }
        original!(MPI_Info_create)(info)
    }
}

unsafe extern "C-unwind" fn MPI_Comm_create_errhandler<F: Foreign>(
    function: usize,
    handler: *mut F::Below,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let mut begun = 0;
        original!(MPI_Initialized)(&raw mut begun);
        if begun == 0 {
            hold::<F>();
        }
        original!(MPI_Comm_create_errhandler)(function, handler)
    }
}

/// Interposes the functions of this module, on a backend without sessions.
/// Runs before all MPI calls.
pub fn prepare<F: Foreign>() {
    put_in_front! {
        MPI_Init MPI_Init_thread MPI_Finalize MPI_Initialized MPI_Finalized MPI_Info_create
        MPI_Comm_create_errhandler
    }
}

//! The world of the program, on a library that has no sessions.
//!
//! The library below is initialised when the first session needs it, or the first object that a program may make before it
//! initialises anything, and finalised at the end of the process: it can be initialised once only, and sessions may come after the
//! program's `MPI_Finalize`. What the program asks about the world is answered from what it has called itself.

use super::{original, put_in_front};
use crate::below;
use crate::family::Word;
use crate::foreign_below::Foreign;
use crate::inside;
use crate::lock::lock;
use std::ffi::{c_char, c_int};
use std::ptr::null_mut;
use std::sync::{Mutex, MutexGuard};

/// `MPI_THREAD_MULTIPLE` of the standard.
const THREAD_MULTIPLE: c_int = 4096;

/// What has been called.
struct State {
    /// This library has initialised the one below, which is finalised at the end of the process.
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

/// Whether this library has initialised the one below.
pub fn is_held() -> bool {
    state().is_held
}

/// Whether the program is between init and finalize.
pub fn is_running<F: Foreign>() -> bool {
    let (mut begun, mut ended) = (0, 0);
    // SAFETY: questions that may be asked at any time.
    unsafe {
        (below::MPI_Initialized::<F>())(&raw mut begun);
        (below::MPI_Finalized::<F>())(&raw mut ended);
    }
    begun != 0 && ended == 0
}

/// Initialises the library below unless that was done; whether it is there.
///
/// # Safety
/// None: it may be asked at any time.
pub unsafe fn hold<F: Foreign>() -> bool {
    let mut state = state();
    if state.is_held {
        return true;
    }
    // SAFETY: questions that may be asked at any time, then the first call of the library below.
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

/// Finalises the library below at the end of the process.
extern "C" fn let_go<F: Foreign>() {
    let (mut ended, is_held) = (0, state().is_held);
    // SAFETY: a question that may be asked at any time, then the last call of the library below.
    unsafe {
        original!(MPI_Finalized)(&raw mut ended);
        if is_held && ended == 0 {
            inside::enter();
            original!(MPI_Finalize)();
            inside::leave();
        }
    }
}

// SAFETY of all functions below: they are called as those of the library below, with arguments that the standard asks for.

unsafe extern "C" fn MPI_Init_thread<F: Foreign>(
    argc: *mut c_int,
    argv: *mut *mut *mut c_char,
    required: c_int,
    provided: *mut c_int,
) -> c_int {
    let (is_held, level) = {
        let state = state();
        (state.is_held && !state.world_begun, state.provided)
    };
    // SAFETY: as above.
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

unsafe extern "C" fn MPI_Init<F: Foreign>(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    let is_held = {
        let state = state();
        state.is_held && !state.world_begun
    };
    // SAFETY: as above.
    let code = if is_held {
        0
    } else {
        // SAFETY: as above.
        unsafe { original!(MPI_Init)(argc, argv) }
    };
    state().world_begun |= code == 0;
    code
}

unsafe extern "C" fn MPI_Finalize<F: Foreign>() -> c_int {
    let is_held = {
        let state = state();
        state.is_held && !state.world_ended
    };
    // SAFETY: as above.
    let code = if is_held {
        0
    } else {
        // SAFETY: as above.
        unsafe { original!(MPI_Finalize)() }
    };
    state().world_ended |= code == 0;
    code
}

unsafe extern "C" fn MPI_Initialized<F: Foreign>(flag: *mut c_int) -> c_int {
    let (is_held, begun) = {
        let state = state();
        (state.is_held, state.world_begun)
    };
    // SAFETY: as above.
    unsafe {
        if is_held {
            flag.write(begun.into());
            return 0;
        }
        original!(MPI_Initialized)(flag)
    }
}

unsafe extern "C" fn MPI_Finalized<F: Foreign>(flag: *mut c_int) -> c_int {
    let (is_held, ended) = {
        let state = state();
        (state.is_held, state.world_ended)
    };
    // SAFETY: as above.
    unsafe {
        if is_held {
            flag.write(ended.into());
            return 0;
        }
        original!(MPI_Finalized)(flag)
    }
}

unsafe extern "C" fn MPI_Info_create<F: Foreign>(info: *mut F::Below) -> c_int {
    let (mut begun, mut ended) = (0, 0);
    // SAFETY: as above.
    unsafe {
        original!(MPI_Initialized)(&raw mut begun);
        original!(MPI_Finalized)(&raw mut ended);
        if begun == 0 || ended != 0 {
            hold::<F>();
        }
        original!(MPI_Info_create)(info)
    }
}

unsafe extern "C" fn MPI_Comm_create_errhandler<F: Foreign>(
    function: usize,
    handler: *mut F::Below,
) -> c_int {
    // SAFETY: as above.
    unsafe {
        let mut begun = 0;
        original!(MPI_Initialized)(&raw mut begun);
        if begun == 0 {
            hold::<F>();
        }
        original!(MPI_Comm_create_errhandler)(function, handler)
    }
}

/// For a library that has no sessions, before the program calls anything.
pub fn prepare<F: Foreign>() {
    put_in_front! {
        MPI_Init MPI_Init_thread MPI_Finalize MPI_Initialized MPI_Finalized MPI_Info_create
        MPI_Comm_create_errhandler
    }
}

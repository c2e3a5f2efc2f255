//! Callbacks of the program for tool events. They receive the program's callback safety levels.
//!
//! A callback's listener (the backend's user data) is not freed when the callback is replaced,
//! because the callback may be running at that time.
#![allow(unsafe_code)]

use super::dropped::listens;
use crate::backend;
use crate::convert::code_out;
use crate::family::{Family, Kind, Word};
use std::ffi::{c_int, c_void};

/// The program's callback and user data. The backend has a listener as user data.
struct Listener {
    function: usize,
    data: *mut c_void,
}

type OnEvent = unsafe extern "C-unwind" fn(usize, usize, c_int, *mut c_void);
type OnFree = unsafe extern "C-unwind" fn(usize, c_int, *mut c_void);

fn listener(function: usize, data: *mut c_void) -> *mut c_void {
    Box::into_raw(Box::new(Listener { function, data })).cast()
}

/// Frees the listener if the registration failed, because the backend then does not use it.
unsafe fn unless_taken(code: c_int, listener: *mut c_void) {
    if code != 0 {
        // SAFETY: `listener` made the pointer, and the failed call does not keep it.
        drop(unsafe { Box::from_raw(listener.cast::<Listener>()) });
    }
}

unsafe extern "C-unwind" fn on_event<F: Family>(
    instance: usize,
    registration: usize,
    safety: c_int,
    listener: *mut c_void,
) {
    // SAFETY: the user data are a listener, which is not freed while registered.
    unsafe {
        let listener = &*listener.cast::<Listener>();
        let function: OnEvent = std::mem::transmute(listener.function);
        let safety = F::word_out(Word::CallbackSafety, safety);
        F::program(|| function(instance, registration, safety, listener.data));
    }
}

unsafe extern "C-unwind" fn on_free<F: Family>(
    registration: usize,
    safety: c_int,
    listener: *mut c_void,
) {
    // SAFETY: the user data are a listener of this module.
    // The backend calls this function once, after the last event.
    unsafe {
        let listener = Box::from_raw(listener.cast::<Listener>());
        let function: OnFree = std::mem::transmute(listener.function);
        let safety = F::word_out(Word::CallbackSafety, safety);
        F::program(|| function(registration, safety, listener.data));
    }
}

pub unsafe fn MPI_T_event_register_callback<F: Family>(
    registration: usize,
    safety: c_int,
    info: F::Handle,
    data: *mut c_void,
    function: usize,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        let safety = F::word_in(Word::CallbackSafety, safety);
        let info = F::handle_in(Kind::Info, info);
        if function == 0 {
            let code = (backend::MPI_T_event_register_callback::<F>())(
                registration,
                safety,
                info,
                data,
                0,
            );
            return code_out::<F>(code);
        }
        let ours: OnEvent = on_event::<F>;
        let listener = listener(function, data);
        let code = (backend::MPI_T_event_register_callback::<F>())(
            registration,
            safety,
            info,
            listener,
            ours as usize,
        );
        if code == 0 {
            listens(listener, data);
        }
        unless_taken(code, listener);
        code_out::<F>(code)
    }
}

pub unsafe fn MPI_T_event_handle_free<F: Family>(
    registration: usize,
    data: *mut c_void,
    function: usize,
) -> c_int {
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    unsafe {
        if function == 0 {
            let code = (backend::MPI_T_event_handle_free::<F>())(registration, data, 0);
            return code_out::<F>(code);
        }
        let ours: OnFree = on_free::<F>;
        let listener = listener(function, data);
        let code = (backend::MPI_T_event_handle_free::<F>())(registration, listener, ours as usize);
        unless_taken(code, listener);
        code_out::<F>(code)
    }
}

//! The wires of a process that ends without closing them.
//!
//! # The hazard
//!
//! A node that dies in a barrier leaves its wire in an arrival. The next job's [`open`](crate::ToggleBarrier::open) overwrites it,
//! but until then it counts: for the others of this job, and for a channel that it keeps from being given back.
//!
//! # The promise
//!
//! Wires that are [`watch`]ed are put back to idle when the process ends by
//!
//! * `exit`, and `quick_exit`, by which a library leaves that must not wait for others, as in `MPI_Abort`;
//! * a signal that ends processes, unless the program has a handler of its own for it, which is never replaced;
//!   the process then ends by that signal as it would have.
//!
//! Nothing can be done in a process that ends by `SIGKILL` or `_exit`, or whose machine ends: the next `open` finds that level.
//!
//! # The protocol
//!
//! A signal handler can interrupt anything. [`Resting`] takes no lock and no memory, and the places are atomic pointers:
//! the handler first counts itself in, then looks at them.
//! A thread that stops watching first empties its place, then looks at the count: at zero, no handler has seen the pointer and none will.
//! Otherwise the memory is left to the process, which is ending.
//! A child of fork ends without touching the wires, which are its parent's.
#![allow(unsafe_code)]

use crate::ports::Resting;
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::Once;

/// How many ports a process can have watched.
const PLACES: usize = 8;

static WATCHED: [AtomicPtr<Resting>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];
/// How many threads are looking at the places because the process ends.
static ENDING: AtomicUsize = AtomicUsize::new(0);
/// Whose wires they are.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// Signals that by default end the process.
const SIGNALS: [c_int; 11] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGILL,
    libc::SIGABRT,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGSEGV,
    libc::SIGPIPE,
    libc::SIGTERM,
    libc::SIGXCPU,
];

unsafe extern "C" {
    fn at_quick_exit(call: extern "C" fn()) -> c_int;
}

/// These wires are put back at the end of the process, until this is dropped.
#[derive(Debug)]
pub struct Watch {
    place: usize,
}

/// Has these wires put back if the process ends; `None` if too many ports are watched already.
pub fn watch(resting: Resting) -> Option<Watch> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(install);
    let resting = Box::into_raw(Box::new(resting));
    let free = WATCHED.iter().position(|place| {
        let taken = place.compare_exchange(ptr::null_mut(), resting, SeqCst, SeqCst);
        taken.is_ok()
    });
    if free.is_none() {
        // SAFETY: it was made above and no other code has seen it.
        drop(unsafe { Box::from_raw(resting) });
    }
    free.map(|place| Watch { place })
}

impl Drop for Watch {
    fn drop(&mut self) {
        let resting = WATCHED[self.place].swap(ptr::null_mut(), SeqCst);
        if !resting.is_null() && ENDING.load(SeqCst) == 0 {
            // SAFETY: it was made by `watch`, and no handler has it: see the protocol above.
            drop(unsafe { Box::from_raw(resting) });
        }
    }
}

/// Puts all watched wires back; no caller is left to hear what a port refuses.
extern "C" fn rest_all() {
    // SAFETY: asks for a number.
    if unsafe { libc::getpid() } != OWNER.load(SeqCst) {
        return;
    }
    // Never counted out again: the process ends.
    ENDING.fetch_add(1, SeqCst);
    for place in &WATCHED {
        // SAFETY: either null or a box that is not freed while we are counted in.
        if let Some(resting) = unsafe { place.load(SeqCst).as_ref() } {
            let _ = resting.rest();
        }
    }
}

fn install() {
    // SAFETY: asks for a number, and hands over functions that live as long as the process.
    unsafe {
        OWNER.store(libc::getpid(), SeqCst);
        libc::atexit(rest_all);
        at_quick_exit(rest_all);
    }
    for signal in SIGNALS {
        // SAFETY: all-zero is a valid `sigaction`, and both pointers are to locals.
        // The handler calls what POSIX lets a handler call: `Resting` is made of ioctls, port instructions and device memory.
        unsafe {
            let mut before: libc::sigaction = core::mem::zeroed();
            let known = libc::sigaction(signal, ptr::null(), &mut before) == 0;
            if known && before.sa_sigaction == libc::SIG_DFL {
                let mut new: libc::sigaction = core::mem::zeroed();
                new.sa_sigaction = on_signal as extern "C" fn(c_int) as usize;
                new.sa_flags = libc::SA_ONSTACK;
                libc::sigaction(signal, &new, ptr::null_mut());
            }
        }
    }
}

extern "C" fn on_signal(signal: c_int) {
    rest_all();
    // SAFETY: both are allowed in a handler. The signal is blocked until we return, and then ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

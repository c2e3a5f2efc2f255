//! Exit and signal handlers that restore the wires when a process ends without closing them.
//!
//! # The hazard
//!
//! If a node dies in a barrier, its wire keeps the level of an arrival. The next job's
//! [`open`](crate::ToggleBarrier::open) overwrites the level,
//! but until then the arrival counts in the barriers of the present job,
//! and prevents its channel from being freed.
//!
//! # The guarantee
//!
//! Wires registered with [`watch`] are restored to idle when the process ends by
//!
//! * `exit`, and `quick_exit`, which a library uses to end without waiting for other processes, as in `MPI_Abort`;
//! * a signal that ends the process, unless the program has its own handler for that signal, which is never replaced;
//!   afterwards the process still ends by this signal.
//!
//! A process that ends by `SIGKILL` or `_exit`, or whose machine fails, runs no handler:
//! the next `open` overwrites the level that it left.
//!
//! # The protocol
//!
//! A signal handler can interrupt any code. [`Resting`] takes no lock and allocates no memory.
//! Each registered port is in a slot, which is an atomic pointer.
//! A counter has the number of threads that have started to restore the wires.
//! The handler first increments the counter, then reads the slots.
//! A thread that unregisters a port first clears the slot, then reads the counter:
//! if the counter is zero, no handler has read the pointer and none will.
//! If it is not zero, the thread leaks the memory, because the process is ending.
//! A forked child process does not restore the wires at its end, because they belong to its parent.
#![allow(unsafe_code)]

use crate::ports::Resting;
use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicUsize, Ordering::SeqCst};
use std::sync::Once;

/// Maximum number of registered ports of a process, which is the number of slots.
const PLACES: usize = 8;

static WATCHED: [AtomicPtr<Resting>; PLACES] = [const { AtomicPtr::new(ptr::null_mut()) }; PLACES];
/// Number of threads that have started to restore the wires because the process is ending.
static ENDING: AtomicUsize = AtomicUsize::new(0);
/// Process ID of the process that registered the wires.
static OWNER: AtomicI32 = AtomicI32::new(0);

/// Signals whose default action ends the process.
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

/// A registration of wires, which are restored at the end of the process,
/// until this value is dropped.
#[derive(Debug)]
pub struct Watch {
    place: usize,
}

/// Registers wires to be restored if the process ends;
/// `None` if too many ports are registered.
pub fn watch(resting: Resting) -> Option<Watch> {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(install);
    let resting = Box::into_raw(Box::new(resting));
    let free = WATCHED.iter().position(|place| {
        let taken = place.compare_exchange(ptr::null_mut(), resting, SeqCst, SeqCst);
        taken.is_ok()
    });
    if free.is_none() {
        // SAFETY: `Box::into_raw` above made the pointer, which was not stored in a slot,
        // so no other code has it.
        drop(unsafe { Box::from_raw(resting) });
    }
    free.map(|place| Watch { place })
}

impl Drop for Watch {
    fn drop(&mut self) {
        let resting = WATCHED[self.place].swap(ptr::null_mut(), SeqCst);
        if !resting.is_null() && ENDING.load(SeqCst) == 0 {
            // SAFETY: `Box::into_raw` in `watch` made the pointer.
            // The slot is empty and the counter zero, so by the protocol in the module
            // documentation no handler has or will get the pointer.
            drop(unsafe { Box::from_raw(resting) });
        }
    }
}

/// Restores all registered wires. Errors of a port are ignored, because no caller could receive them.
extern "C" fn rest_all() {
    // SAFETY: `getpid` has no arguments and accesses no memory.
    if unsafe { libc::getpid() } != OWNER.load(SeqCst) {
        return;
    }
    // The counter is never decremented, because the process is ending.
    ENDING.fetch_add(1, SeqCst);
    for place in &WATCHED {
        // SAFETY: the pointer is null or a box, which is not freed while the counter is above zero.
        if let Some(resting) = unsafe { place.load(SeqCst).as_ref() } {
            let _ = resting.rest();
        }
    }
}

fn install() {
    // SAFETY: getpid has no arguments, and the functions registered live as long as the process.
    unsafe {
        OWNER.store(libc::getpid(), SeqCst);
        libc::atexit(rest_all);
        at_quick_exit(rest_all);
    }
    for signal in SIGNALS {
        // SAFETY: all-zero is a valid `sigaction`, and both pointers are to locals.
        // The handler uses only operations that POSIX allows in a handler: `Resting` uses ioctls, port instructions and device memory.
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
    // SAFETY: both calls are allowed in a handler. The signal is blocked until this function returns, and then ends the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

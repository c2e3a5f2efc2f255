//! Reentrancy flag: true while the calling thread is inside the backend.
//!
//! MPI calls then come from the backend itself.
//! A library with components in separate files calls MPI functions by name.
//! The loader resolves these names to the program's library, which is this one.
//! A call of the backend has the backend's argument types, and is forwarded unconverted.
//! Every call reads the flag, so it is in the thread's static TLS block ("initial-exec" model).
//! The compiler offers this model only for executables.
#![allow(unsafe_code)]

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod place {
    use std::arch::{asm, global_asm};

    global_asm!(
        ".section .tbss.portcullis_inside, \"awT\", @nobits",
        ".globl portcullis_inside",
        ".hidden portcullis_inside",
        ".type portcullis_inside, @object",
        ".size portcullis_inside, 1",
        "portcullis_inside:",
        ".zero 1",
        ".text",
    );

    /// Returns the address of the calling thread's flag.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn place() -> *mut bool {
        let place: *mut bool;
        // SAFETY: this reads the thread pointer and an offset filled in by the loader.
        unsafe {
            asm!(
                "mov {place}, qword ptr fs:[0]",
                "add {place}, qword ptr [rip + portcullis_inside@GOTTPOFF]",
                place = out(reg) place,
                options(pure, nomem, nostack)
            );
        }
        place
    }

    /// Returns the address of the calling thread's flag.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub fn place() -> *mut bool {
        let place: *mut bool;
        // SAFETY: this reads the thread pointer and an offset filled in by the loader.
        unsafe {
            asm!(
                "mrs {place}, tpidr_el0",
                "adrp {offset}, :gottprel:portcullis_inside",
                "ldr {offset}, [{offset}, #:gottprel_lo12:portcullis_inside]",
                "add {place}, {place}, {offset}",
                place = out(reg) place,
                offset = out(reg) _,
                options(pure, nomem, nostack)
            );
        }
        place
    }
}

#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod place {
    use std::cell::Cell;

    thread_local!(static INSIDE: Cell<bool> = const { Cell::new(false) });

    pub fn place() -> *mut bool {
        INSIDE.with(Cell::as_ptr)
    }
}

use place::place;

#[inline(always)]
pub fn is_set() -> bool {
    // SAFETY: the address is that of the calling thread's flag, which only this module accesses.
    let set = unsafe { place().read() };
    if set {
        seldom();
    }
    set
}

/// Marks a branch as unlikely: nearly every call comes from the program, which does not take it.
#[cold]
#[inline]
fn seldom() {}

#[inline(always)]
fn set(inside: bool) {
    // SAFETY: the address is that of the calling thread's flag, which only this module accesses.
    unsafe { place().write(inside) }
}

/// An active call of the backend, which ends on drop, also when an exception unwinds the call.
#[derive(Debug)]
pub struct Inside(());

impl Inside {
    #[inline(always)]
    pub fn enter() -> Self {
        set(true);
        Inside(())
    }
}

impl Drop for Inside {
    #[inline(always)]
    fn drop(&mut self) {
        set(false);
    }
}

/// An active callback of the program. On drop, the previous value of the flag is restored.
struct Outside {
    before: bool,
}

impl Drop for Outside {
    #[inline]
    fn drop(&mut self) {
        set(self.before);
    }
}

/// Runs a callback of the program, called by the backend. MPI calls in it are the program's.
#[inline]
pub fn outside<R>(call: impl FnOnce() -> R) -> R {
    let _outside = Outside { before: is_set() };
    set(false);
    call()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_a_word_of_its_own_and_functions_of_the_program_are_outside() {
        assert!(!is_set());
        let inside = Inside::enter();
        assert!(is_set());
        assert!(!std::thread::spawn(is_set).join().unwrap());
        assert!(!outside(is_set));
        assert!(is_set());
        drop(inside);
        assert!(!is_set());
        outside(|| ());
        assert!(!is_set());
    }
}

//! Whether the calling thread is inside the library below: what arrives then was called by that library itself.
//!
//! A library with components in files of their own calls MPI functions by name, and the loader finds the program's library
//! first, which is this one. Such a call has the arguments of the library below and goes on as it is.
//! The word is read in every call, so it lies in the thread's block at a place that the loader knows at the start (the
//! "initial-exec" model), which the compiler offers only for programs.
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

    /// The calling thread's word.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn place() -> *mut bool {
        let place: *mut bool;
        // SAFETY: reads the thread's own base and a constant that the loader has filled in.
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

    /// The calling thread's word.
    #[cfg(target_arch = "aarch64")]
    #[inline(always)]
    pub fn place() -> *mut bool {
        let place: *mut bool;
        // SAFETY: reads the thread's own base and a constant that the loader has filled in.
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
    // SAFETY: the calling thread's own word, which only this module writes.
    let set = unsafe { place().read() };
    if set {
        seldom();
    }
    set
}

/// Tells the compiler that this is not the usual way: nearly every call is the program's own, which then needs no jump.
#[cold]
#[inline]
fn seldom() {}

#[inline(always)]
pub fn enter() {
    // SAFETY: as above.
    unsafe { place().write(true) }
}

#[inline(always)]
pub fn leave() {
    // SAFETY: as above.
    unsafe { place().write(false) }
}

/// Runs a function of the program, whose calls are its own, from inside the library below.
#[inline]
pub fn outside<R>(call: impl FnOnce() -> R) -> R {
    let before = is_set();
    leave();
    let result = call();
    if before {
        enter();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_a_word_of_its_own_and_functions_of_the_program_are_outside() {
        assert!(!is_set());
        enter();
        assert!(is_set());
        assert!(!std::thread::spawn(is_set).join().unwrap());
        assert!(!outside(is_set));
        assert!(is_set());
        leave();
        assert!(!is_set());
        outside(|| ());
        assert!(!is_set());
    }
}

//! Reentrancy flag: true while the calling thread executes a function of the backend.
//!
//! An MPI call that arrives while the flag is set comes from the backend itself.
//! A backend with components in separate files calls exported MPI functions.
//! The loader resolves their names to this library, with which the program is linked.
//! Such a call has arguments of the backend's ABI, and goes to the backend without conversion.
//! Every MPI call reads the flag, so it is in the thread's static TLS block ("initial-exec" model).
//! Rust offers this TLS model only for executables, so the flag is defined in assembly.
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

/// Marks a branch as unlikely: a call by the backend, while nearly all calls are the program's.
#[cold]
#[inline]
fn seldom() {}

#[inline(always)]
fn set(inside: bool) {
    // SAFETY: the address is that of the calling thread's flag, which only this module accesses.
    unsafe { place().write(inside) }
}

/// Sets the flag until drop, for a call of the backend. The drop also runs on unwinding.
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

/// Restores the previous value of the flag on drop, after a callback of the program.
struct Outside {
    before: bool,
}

impl Drop for Outside {
    #[inline]
    fn drop(&mut self) {
        set(self.before);
    }
}

/// Runs a callback of the program, called by the backend. MPI calls in it are converted.
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

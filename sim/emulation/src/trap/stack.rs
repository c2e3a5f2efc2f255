//! Stacks for the emulator's signal handlers, large enough for signal frames of every processor.
//!
//! # The hazard
//!
//! For each signal the kernel pushes a frame with all registers of the processor:
//! 1 kB with SSE, 3.4 kB with AVX-512, 11 kB with AMX (`AT_MINSIGSTKSZ` in the auxiliary vector).
//! If a program's own signal handler accesses its port, the access raises a second signal,
//! and both frames are on the stack of that handler.
//! Alternate signal stacks of programs and of Rust's runtime have 8 KiB.
//! With a real port this suffices, because an access to the port raises no signal.
//!
//! # The solution
//!
//! 1. [`apart`] runs the emulation of an access on a separate stack, so an access needs only the
//!    kernel's frame on the interrupted stack.
//! 2. [`enlarge`] replaces an alternate stack that is too small for the program's handler and a
//!    second frame.
//!    `install` calls it, and so does each access outside of a handler on the alternate stack:
//!    `sigreturn` then makes the stack in the signal's context the thread's alternate stack.
//!
//! `sigaltstack` then reports the larger stack. The program's own stack is restored when the thread
//! ends.
//! A thread whose first access is in a handler on a small alternate stack still ends by SIGSEGV.

use core::cell::RefCell;
use core::ptr;
use corosensei::stack::{DefaultStack, Stack as _};

/// Maximum stack use of the emulation of an access in bytes, with a margin: about 10 kB without
/// optimisation.
const WORK: usize = 64 << 10;
/// Stack use of the emulator's handlers below the kernel's frame in bytes, with a margin.
const ENTRY: usize = 8 << 10;
/// Minimum number of bytes of an alternate stack, in addition to two frames.
const AMPLE: usize = 64 << 10;
/// The page size of x86-64.
const PAGE: usize = 4096;

thread_local! {
    static APART: RefCell<Option<DefaultStack>> = const { RefCell::new(None) };
    static LARGER: RefCell<Option<Larger>> = const { RefCell::new(None) };
}

/// An alternate stack that has replaced the program's own.
struct Larger {
    memory: DefaultStack,
    /// Length of the stack in bytes without the guard page.
    length: usize,
    replaced: libc::stack_t,
}

impl Larger {
    fn lowest(&self) -> usize {
        self.memory.base().get() - self.length
    }
}

impl Drop for Larger {
    fn drop(&mut self) {
        if current().is_some_and(|stack| stack.ss_sp as usize == self.lowest()) {
            // SAFETY: this is the program's own alternate stack, as it was passed to the kernel.
            // This thread-local destructor does not run in a handler.
            unsafe { libc::sigaltstack(&self.replaced, ptr::null_mut()) };
        }
    }
}

/// Returns the size in bytes of a signal frame on this processor.
fn frame() -> usize {
    const AT_MINSIGSTKSZ: libc::c_ulong = 51;
    // SAFETY: `getauxval` only reads a number, and returns 0 if the kernel provides none.
    let told = unsafe { libc::getauxval(AT_MINSIGSTKSZ) };
    usize::try_from(told).unwrap_or(0).max(libc::MINSIGSTKSZ)
}

/// Returns this thread's alternate stack; `None` if it has none.
fn current() -> Option<libc::stack_t> {
    // SAFETY: all-zero is a valid `stack_t`, and the out pointer is a live local.
    unsafe {
        let mut stack: libc::stack_t = core::mem::zeroed();
        (libc::sigaltstack(ptr::null(), &mut stack) == 0).then_some(stack)
    }
}

/// Runs `work` on this thread's separate stack.
/// If this stack cannot be allocated, or the thread is ending, `work` runs on the current stack.
///
/// All signals must be blocked: while `work` runs, the frame of the caller's signal may be on the
/// alternate stack, but the kernel would consider that stack unused and overwrite it.
pub(super) fn apart<R>(work: impl FnOnce() -> R) -> R {
    let mut work = Some(work);
    let mut run = || work.take().map(|work| work());
    let done = APART.try_with(|stack| {
        let mut stack = stack.try_borrow_mut().ok()?;
        if stack.is_none() {
            *stack = DefaultStack::new(WORK).ok();
        }
        corosensei::on_stack(stack.as_mut()?, &mut run)
    });
    match done.ok().flatten().or_else(run) {
        Some(result) => result,
        // One of the two calls has executed `work`.
        None => unreachable!("the work has a result"),
    }
}

/// Enlarges the alternate stack of the calling thread,
/// unless the thread currently runs on that stack.
pub(super) fn enlarge_now() {
    if let Some(mut stack) = current()
        && stack.ss_flags & libc::SS_ONSTACK == 0
        && enlarge(&mut stack)
    {
        // SAFETY: the stack is memory of this thread that lives until the thread ends,
        // when `Larger` restores the previous stack.
        unsafe { libc::sigaltstack(&stack, ptr::null_mut()) };
    }
}

/// Enlarges the alternate stack of the interrupted thread with stack pointer `pointer`.
/// The new stack takes effect when the handler returns.
pub(super) fn enlarge_after(pointer: usize, stack: &mut libc::stack_t) {
    let lowest = stack.ss_sp as usize;
    // The kernel does not change an alternate stack on which the thread is running.
    if !(lowest..lowest + stack.ss_size).contains(&pointer) {
        enlarge(stack);
    }
}

/// Replaces an alternate stack that is too small for a second frame; returns true if it did.
fn enlarge(stack: &mut libc::stack_t) -> bool {
    if stack.ss_flags & libc::SS_DISABLE != 0 || stack.ss_size == 0 {
        return false;
    }
    if stack.ss_size >= AMPLE + 2 * frame() {
        return false;
    }
    let replace = |larger: &RefCell<Option<Larger>>| {
        let mut larger = larger.try_borrow_mut().ok()?;
        if larger
            .as_ref()
            .is_some_and(|l| l.lowest() == stack.ss_sp as usize)
        {
            return None;
        }
        let replaced = *stack;
        match larger.as_mut() {
            Some(larger) => larger.replaced = replaced,
            None => {
                // All replacement stacks have the same length,
                // so a thread's next replacement needs no new memory.
                let length = (AMPLE + 3 * frame() + ENTRY).next_multiple_of(PAGE);
                let memory = DefaultStack::new(length).ok()?;
                *larger = Some(Larger {
                    memory,
                    length,
                    replaced,
                });
            }
        }
        let larger = larger.as_ref()?;
        Some((larger.lowest(), larger.length))
    };
    match LARGER.try_with(replace).ok().flatten() {
        Some((lowest, length)) => {
            stack.ss_sp = lowest as *mut libc::c_void;
            stack.ss_size = length;
            true
        }
        None => false,
    }
}

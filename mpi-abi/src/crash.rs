//! Backtrace of a rank that dies by SIGSEGV, SIGBUS, SIGILL or SIGFPE, on standard error.
//!
//! Initialization installs a handler for each of these signals that has the default action.
//! The handlers of a program, a language runtime or a sanitizer are kept.
//! The handler prints and returns, and the faulting instruction runs again.
//! The process then dies by the same signal, with the same core file as without the handler.
//!
//! The handler may interrupt any function, including the allocator and the dynamic loader.
//! The handler makes only system calls.
//! The handler reads only memory that is probably mapped ([`modules`]).
//! The handler unwinds with `_Unwind_Backtrace` if the C library has `_dl_find_object`.
//! The unwinder then takes no lock. Otherwise, only the faulting instruction is printed.
#![allow(unsafe_code)]

mod line;
mod modules;
mod overflow;

use crate::state::this_rank;
use crate::unwind::{self, FRAMES};
use line::Line;
use modules::Modules;
use mpi_base::param::{Level, Param, Params};
use std::ffi::{CStr, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::OnceLock;

/// Enables the signal handlers of this module.
pub static BACKTRACE: Param<bool> = Param::new(
    "mpi",
    "base",
    "backtrace",
    "true",
    Level::USER,
    "Whether a rank that dies by SIGSEGV, SIGBUS, SIGILL or SIGFPE prints its stack, unless the program handles these signals itself",
);

const SIGNALS: [(c_int, &str); 4] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGFPE, "SIGFPE"),
];

/// Size in bytes of the alternate signal stack, used because the thread's own may be full.
const STACK: usize = 64 << 10;

/// Data that the crash handler needs and must not compute itself.
struct Prepared {
    /// The rank and host, such as "rank 2 on n1".
    rank: String,
    /// True if the unwinder takes no lock.
    unwinds: bool,
    /// The highest address of the main thread's stack, if it is known.
    stack_top: Option<usize>,
}

static PREPARED: OnceLock<Prepared> = OnceLock::new();

/// Installs the handlers once. The rank must be known.
pub fn install(params: &Params) {
    if !params.get(&BACKTRACE).unwrap_or(true) || PREPARED.get().is_some() {
        return;
    }
    let prepared = Prepared {
        rank: this_rank(),
        unwinds: has_symbol(c"_dl_find_object"),
        stack_top: overflow::stack_top(),
    };
    // The unwinder's first call resolves symbols and allocates, which is not allowed in a handler.
    let _ = collect(&prepared);
    if PREPARED.set(prepared).is_err() {
        return;
    }
    give_stack();
    for (signal, _) in SIGNALS {
        handle(signal);
    }
}

fn has_symbol(name: &CStr) -> bool {
    // SAFETY: `name` is a C string.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) }.is_null()
}

/// Sets an alternate signal stack for the calling thread, unless it has one.
fn give_stack() {
    // SAFETY: both structures are local variables, and the mapped stack is never unmapped.
    unsafe {
        let mut had = MaybeUninit::<libc::stack_t>::zeroed().assume_init();
        if libc::sigaltstack(null(), &raw mut had) != 0 || had.ss_flags & libc::SS_DISABLE == 0 {
            return;
        }
        let (access, kind) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        let memory = libc::mmap(null_mut(), STACK, access, kind, -1, 0);
        if memory != libc::MAP_FAILED {
            let stack = libc::stack_t {
                ss_sp: memory,
                ss_flags: 0,
                ss_size: STACK,
            };
            libc::sigaltstack(&raw const stack, null_mut());
        }
    }
}

/// Installs the handler of a signal, unless the program has a handler for it.
fn handle(signal: c_int) {
    // SAFETY: both structures are local variables, and the handler has the type for SA_SIGINFO.
    unsafe {
        let mut had = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        if libc::sigaction(signal, null(), &raw mut had) != 0 || had.sa_sigaction != libc::SIG_DFL {
            return;
        }
        let mut ours = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        ours.sa_sigaction = on_crash as *const () as usize;
        // SA_RESETHAND restores the default action, so a fault in the handler ends the process.
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESETHAND;
        libc::sigaction(signal, &raw const ours, null_mut());
    }
}

unsafe extern "C" fn on_crash(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(prepared) = PREPARED.get() else {
        return;
    };
    // SAFETY: the kernel passes valid pointers to a handler with SA_SIGINFO.
    let (address, sent_by_a_process, [fault, stack]) = unsafe {
        (
            (*info).si_addr() as usize,
            (*info).si_code <= 0,
            registers(context),
        )
    };
    let name = SIGNALS.iter().find(|(known, _)| *known == signal);
    let mut line = Line::new();
    line.text(&prepared.rank)
        .text(" (pid ")
        .number(std::process::id().into());
    line.text(") got signal ").number(signal as u64).text(" (");
    line.text(name.map_or("", |(_, name)| name)).text(")");
    match sent_by_a_process {
        true => line.text(", sent by a process"),
        false => line.text(" at address ").hexadecimal(address as u64),
    };
    let limit = prepared
        .stack_top
        .filter(|_| signal == libc::SIGSEGV && !sent_by_a_process)
        .and_then(|top| overflow::exceeded_limit(top, stack, address));
    if let Some(limit) = limit {
        line.text(", a stack overflow (ulimit -s is ")
            .number(limit >> 10)
            .text(" KiB)");
    }
    line.text("; its stack, the fault first:").end();
    let (frames, count) = collect(prepared);
    let frames = &frames[..count];
    // The first frames are those of the handler, and are skipped.
    let at = frames.iter().position(|frame| *frame == fault);
    let only = [fault];
    let shown = at.map_or(&only[..], |at| &frames[at..]);
    let mut modules = Modules::new();
    for (number, frame) in shown.iter().enumerate() {
        // A return address follows the call instruction, so 1 is subtracted.
        let is_return = number > 0;
        modules.describe(number, frame - usize::from(is_return), &mut line);
    }
    if sent_by_a_process {
        // A signal sent by a process is raised again, since no instruction faults after the return.
        // SAFETY: `raise` is async-signal-safe. The signal is blocked until this handler returns.
        unsafe { libc::raise(signal) };
    }
}

/// Returns the address of the interrupted instruction, and the stack pointer.
unsafe fn registers(context: *mut c_void) -> [usize; 2] {
    let context = context.cast::<libc::ucontext_t>();
    // SAFETY: the caller passes the context that the kernel gave to the handler.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        let registers = &(*context).uc_mcontext.gregs;
        [libc::REG_RIP, libc::REG_RSP].map(|number| registers[number as usize] as usize)
    }
    // SAFETY: the caller passes the context that the kernel gave to the handler.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        let machine = &(*context).uc_mcontext;
        [machine.pc as usize, machine.sp as usize]
    }
}

/// Returns the addresses of the stack frames of this thread, the innermost first, and their number.
/// Returns no frame if the unwinder may take a lock.
fn collect(prepared: &Prepared) -> ([usize; FRAMES], usize) {
    match prepared.unwinds {
        true => unwind::frames(),
        false => ([0; FRAMES], 0),
    }
}

/// Describes a code address, such as "main+0x1c in ./prog +0x1139".
/// Allocates memory, so it must not be called in a signal handler.
pub fn describe(address: usize) -> String {
    let mut line = Line::new();
    Modules::new().place(address, &mut line);
    String::from_utf8_lossy(line.so_far()).into_owned()
}

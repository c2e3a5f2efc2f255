//! Answers the port instructions of this process, and `ioperm`, as a machine with parallel ports would.
//!
//! # The protocol
//!
//! 1. [`install`] puts a seccomp filter on the calling thread, inherited by the threads and processes it makes,
//!    so that `ioperm` raises SIGSYS instead of entering the kernel. No thread ever gets the processor's permission.
//! 2. The SIGSYS handler answers `ioperm` from [`Rights`] and notes, for the thread, which ports it may use.
//! 3. `in` and `out` without the processor's permission raise a general protection fault, which Linux delivers as SIGSEGV
//!    with `si_code` SI_KERNEL and trap number 13.
//!    If the thread's note permits the port, the handler reads or writes the register of the [`ParallelPort`] that was
//!    [`plug`]ged in there and steps over the instruction; an address without a port reads as 0xff, as on the ISA bus.
//! 4. Any other SIGSEGV, also that of a thread which has not asked for the right, goes to the handler that was there before.
//!
//! So the driver's mistakes remain mistakes: an access without the right still kills the process.
//! The note is not inherited by new threads, which is stricter than the kernel.
//!
//! # Why the handlers may lock and call
//!
//! Both signals are raised by an instruction of the thread itself, a port access or a system call of the driver,
//! at which point the thread holds no lock of this module and is in no allocator. To the handler it is a function call.
#![allow(unsafe_code)]

use super::parallel::{ParallelPort, Register};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use rustix::io::Errno;
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, OnceLock, PoisonError, RwLock};

/// What `ioperm` answers on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// Success.
    Granted,
    /// This error, as a kernel without support or a process without the right gets it.
    Refused(Errno),
}

/// Plugged in until dropped.
#[derive(Debug)]
pub struct Plugged {
    base: u16,
}

impl Drop for Plugged {
    fn drop(&mut self) {
        ports_mut(|ports| ports.remove(&self.base));
    }
}

/// The registers at a base address.
type Shared = Arc<Mutex<ParallelPort>>;

static PORTS: LazyLock<RwLock<HashMap<u16, Shared>>> = LazyLock::new(RwLock::default);
/// What handled SIGSEGV before.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

thread_local! {
    /// The error that `ioperm` answers on this thread; 0 is success.
    static ANSWER: Cell<i32> = const { Cell::new(0) };
    /// The ports that this thread may use: the first, and how many.
    static PERMITTED: Cell<(u16, u16)> = const { Cell::new((0, 0)) };
}

/// Plugs a port in at the I/O address `base`, or replaces the one there.
pub fn plug(base: u16, port: ParallelPort) -> Plugged {
    let port = Arc::new(Mutex::new(port));
    ports_mut(|ports| ports.insert(base, port));
    Plugged { base }
}

/// Has the port accesses of this thread, and of threads and processes that it makes from now on, answered here.
///
/// The kernel cannot take the filter away again, and `rights` may be changed by another call.
pub fn install(rights: Rights) -> Result<(), std::io::Error> {
    static HANDLERS: Once = Once::new();
    thread_local! {
        static FILTERED: Cell<bool> = const { Cell::new(false) };
    }
    // Made here and not in the handler.
    LazyLock::force(&PORTS);
    HANDLERS.call_once(|| {
        let segv = handle(libc::SIGSEGV, on_fault);
        let _ = BEFORE.set(segv);
        handle(libc::SIGSYS, on_ioperm);
    });
    ANSWER.set(match rights {
        Rights::Granted => 0,
        Rights::Refused(errno) => errno.raw_os_error(),
    });
    if !FILTERED.get() {
        filter()?;
        FILTERED.set(true);
    }
    Ok(())
}

fn ports_mut<T>(change: impl FnOnce(&mut HashMap<u16, Shared>) -> T) -> T {
    change(&mut PORTS.write().unwrap_or_else(PoisonError::into_inner))
}

type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Installs a handler and returns what was there before.
fn handle(signal: c_int, handler: Handler) -> libc::sigaction {
    // SAFETY: all-zero is a valid `sigaction`; both pointers are to locals. The handler has the signature that SA_SIGINFO
    // asks for, and the alternate stack, where a thread has one, leaves Rust's own stack overflow detection working.
    unsafe {
        let mut before: libc::sigaction = core::mem::zeroed();
        let mut new: libc::sigaction = core::mem::zeroed();
        new.sa_sigaction = handler as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
        libc::sigaction(signal, &new, &mut before);
        before
    }
}

/// `ioperm` raises SIGSYS on this thread from now on.
fn filter() -> Result<(), std::io::Error> {
    const AUDIT_ARCH_X86_64: u32 = 0xc000_003e;
    /// Offsets in `struct seccomp_data`.
    const NUMBER: u32 = 0;
    const ARCH: u32 = 4;
    let load = |offset| libc::sock_filter {
        code: (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16,
        jt: 0,
        jf: 0,
        k: offset,
    };
    // Goes on if equal, else skips to the last instruction.
    let equal = |k, jf| libc::sock_filter {
        code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16,
        jt: 0,
        jf,
        k,
    };
    let answer = |k| libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k,
    };
    let mut program = [
        load(ARCH),
        equal(AUDIT_ARCH_X86_64, 3),
        load(NUMBER),
        equal(libc::SYS_ioperm as u32, 1),
        answer(libc::SECCOMP_RET_TRAP),
        answer(libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    let (yes, unused): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: the program outlives the calls, which copy it; the kernel checks it. The other arguments are of the width it reads.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, unused, unused, unused) != 0
            || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &program) != 0
    };
    if refused {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}

/// Answers a trapped `ioperm(from, count, on)`.
unsafe extern "C" fn on_ioperm(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives SA_SIGINFO handlers a context that is theirs to change until they return.
    let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
    let argument = |name: c_int| registers[name as usize];
    let (from, count, on) = (
        argument(libc::REG_RDI),
        argument(libc::REG_RSI),
        argument(libc::REG_RDX),
    );
    let answer = match (ANSWER.get(), u16::try_from(from), u16::try_from(count)) {
        (0, Ok(from), Ok(count)) if from.checked_add(count).is_some() => {
            PERMITTED.set(if on != 0 { (from, count) } else { (0, 0) });
            0
        }
        (0, _, _) => libc::EINVAL,
        (refusal, _, _) => refusal,
    };
    registers[libc::REG_RAX as usize] = -i64::from(answer);
}

/// Executes a trapped port instruction, or leaves the fault to whoever handled it before.
unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    const SI_KERNEL: c_int = 128;
    const GENERAL_PROTECTION: i64 = 13;
    // SAFETY: the kernel gives SA_SIGINFO handlers both structures, the context being theirs to change until they return.
    let (code, registers) = unsafe {
        (
            (*info).si_code,
            &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs,
        )
    };
    let [rip, rax, rdx, trap] = [
        libc::REG_RIP,
        libc::REG_RAX,
        libc::REG_RDX,
        libc::REG_TRAPNO,
    ]
    .map(|name| name as usize);
    if code == SI_KERNEL && registers[trap] == GENERAL_PROTECTION {
        // SAFETY: a general protection fault is raised by an instruction that was fetched, so its first byte can be read.
        let opcode = unsafe { *(registers[rip] as *const u8) };
        let port = registers[rdx] as u16;
        // The two instructions of the driver: one byte each, the port in DX, the value in AL.
        let done = match opcode {
            0xec if permits(port) => {
                registers[rax] = registers[rax] & !0xff | i64::from(input(port));
                true
            }
            0xee if permits(port) => {
                output(port, registers[rax] as u8);
                true
            }
            _ => false,
        };
        if done {
            registers[rip] += 1;
            return;
        }
    }
    // Back in place the earlier handler gets the same fault again, for the instruction is executed again.
    if let Some(before) = BEFORE.get() {
        // SAFETY: `before` is what sigaction has filled.
        unsafe { libc::sigaction(signal, before, core::ptr::null_mut()) };
    }
}

fn permits(port: u16) -> bool {
    let (first, count) = PERMITTED.get();
    port.checked_sub(first)
        .is_some_and(|distance| distance < count)
}

fn input(port: u16) -> u8 {
    const NOBODY: u8 = 0xff;
    at(port, |device, register| device.read(register)).unwrap_or(NOBODY)
}

fn output(port: u16, value: u8) {
    at(port, |device, register| device.write(register, value));
}

/// Does something with the register at a port, if there is one.
fn at<T>(port: u16, access: impl FnOnce(&mut ParallelPort, Register) -> T) -> Option<T> {
    let (device, register) = {
        let ports = PORTS.read().unwrap_or_else(PoisonError::into_inner);
        (0..).zip(Register::ALL).find_map(|(distance, register)| {
            let device = ports.get(&port.checked_sub(distance)?)?;
            Some((device.clone(), register))
        })?
    };
    let mut device: MutexGuard<'_, _> = device.lock().unwrap_or_else(PoisonError::into_inner);
    Some(access(&mut device, register))
}

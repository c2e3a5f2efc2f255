//! Emulation of this process's hardware accesses:
//! parallel ports and GPIO lines that the machine does not have.
//!
//! # The protocol
//!
//! 1. [`install`] puts a seccomp filter on the calling thread and on threads and processes that it
//!    creates later, so that `ioperm` and the ioctls of GPIO chips raise SIGSYS instead of
//!    entering the kernel.
//!    No thread gets the processor's permission to access ports.
//! 2. The SIGSYS handler answers `ioperm` from [`Rights`] and records per thread the permitted
//!    ports; it answers the ioctls from the chip that is [installed](plug_chip).
//! 3. `in` and `out` without the processor's permission raise a general protection fault, which Linux delivers as SIGSEGV
//!    with `si_code` SI_KERNEL and trap number 13.
//!    If the thread's record permits the port, the handler reads or writes the register of the
//!    [`ParallelPort`](super::parallel::ParallelPort) that was [`plug`]ged in there and skips the instruction;
//!    an address without a port reads as 0xff, as on the ISA bus.
//! 4. An access to the mapping of a file `gpiomem`, which has no pages, raises SIGBUS.
//!    If `decode` knows the instruction, the handler reads or writes the chip's register and skips
//!    the instruction.
//! 5. Any other SIGSEGV or SIGBUS, also one of a thread that
//!    has not called `ioperm`, goes to the previous handler.
//!
//! So errors of the driver remain visible: an access without permission ends the process.
//! A new thread does not inherit the recorded permission, while in the kernel it would.
//!
//! # Why the handlers may lock and allocate
//!
//! All three signals are raised synchronously by an instruction of the thread:
//! an access or a system call of the driver.
//! At that instruction the thread holds no lock of this module and runs no allocator code,
//! so the handler may do what a function call may do.
//! The handlers block all other signals, so a program's own handler,
//! which may access a port, does not interrupt them.
//!
//! Module `stack` provides the stacks that nested handlers require.
#![allow(unsafe_code)]

mod decode;
mod filter;
mod gpio;
mod ports;
mod stack;

pub use gpio::{PluggedChip, plug_chip, with_chip};
pub use ports::{Plugged, plug};

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use decode::Access;
use rustix::io::Errno;
use std::sync::{Once, OnceLock};

/// The result of `ioperm` on a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rights {
    /// `ioperm` succeeds.
    Granted,
    /// `ioperm` fails with this error,
    /// for example because the kernel or the process lacks the permission.
    Refused(Errno),
}

/// The previous handlers of SIGSEGV and SIGBUS.
static BEFORE: [OnceLock<libc::sigaction>; 2] = [const { OnceLock::new() }; 2];

/// Emulates the accesses of this thread, and of threads and processes that it creates afterwards.
///
/// The filter cannot be removed; a later call may change `rights`.
pub fn install(rights: Rights) -> Result<(), std::io::Error> {
    static HANDLERS: Once = Once::new();
    thread_local! {
        static FILTERED: Cell<bool> = const { Cell::new(false) };
    }
    ports::answer(rights);
    stack::enlarge_now();
    HANDLERS.call_once(|| {
        // Rust's runtime reports a stack overflow in a SIGSEGV handler,
        // which needs the alternate stack;
        // the handlers of the other two signals do not need it.
        let faults = [
            (libc::SIGSEGV, on_port as Handler, libc::SA_ONSTACK),
            (libc::SIGBUS, on_page, 0),
        ];
        for (signal, handler, flags) in faults {
            let _ = before(signal).set(handle(signal, handler, flags));
        }
        handle(libc::SIGSYS, on_call, 0);
    });
    if !FILTERED.get() {
        filter::install()?;
        FILTERED.set(true);
    }
    Ok(())
}

fn before(signal: c_int) -> &'static OnceLock<libc::sigaction> {
    &BEFORE[usize::from(signal == libc::SIGBUS)]
}

type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

/// Installs a signal handler; returns the previous one.
fn handle(signal: c_int, handler: Handler, flags: c_int) -> libc::sigaction {
    // SAFETY: all-zero is a valid `sigaction`, and all pointers are to locals.
    // The handler has the signature that SA_SIGINFO requires.
    unsafe {
        let mut before: libc::sigaction = core::mem::zeroed();
        let mut new: libc::sigaction = core::mem::zeroed();
        new.sa_sigaction = handler as *const () as usize;
        new.sa_flags = libc::SA_SIGINFO | flags;
        libc::sigfillset(&mut new.sa_mask);
        libc::sigaction(signal, &new, &mut before);
        before
    }
}

/// The saved registers of the interrupted thread, which the handler may change until it returns.
type Registers = [i64; 23];

const EFLAGS: usize = libc::REG_EFL as usize;
const RIP: usize = libc::REG_RIP as usize;
const RSP: usize = libc::REG_RSP as usize;
const RAX: usize = libc::REG_RAX as usize;
const RDX: usize = libc::REG_RDX as usize;
const RSI: usize = libc::REG_RSI as usize;
const RDI: usize = libc::REG_RDI as usize;

/// The general registers, indexed by their numbers in instructions.
const GENERAL: [c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// Returns the saved registers, after ensuring that the thread has a stack for its next signal.
///
/// # Safety
///
/// `context` is the argument that the kernel passed to a handler that has not returned.
unsafe fn registers<'a>(context: *mut c_void) -> &'a mut Registers {
    // SAFETY: by this function's contract, `context` is a handler's argument;
    // with SA_SIGINFO it is a `ucontext_t`.
    let context = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let registers = &mut context.uc_mcontext.gregs;
    stack::enlarge_after(registers[RSP] as usize, &mut context.uc_stack);
    registers
}

/// Answers a trapped system call: `ioperm(from, count, on)` or `ioctl(file, code, argument)`.
unsafe extern "C" fn on_call(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: this function is the handler, and `context` is its own argument.
    stack::apart(|| answer_call(unsafe { registers(context) }));
}

fn answer_call(registers: &mut Registers) {
    let [first, second, third] = [RDI, RSI, RDX].map(|name| registers[name]);
    // Before it raised SIGSYS, the kernel restored the system call's number in RAX.
    let answer = if registers[RAX] == libc::SYS_ioperm {
        ports::ioperm(first, second, third)
    } else {
        // SAFETY: this is the program's own system call,
        // whose arguments had to be valid for the kernel, too.
        unsafe { gpio::ioctl(first as c_int, second as u32, third) }
    };
    registers[RAX] = -i64::from(answer);
}

/// Executes a trapped port instruction.
unsafe extern "C" fn on_port(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    const SI_KERNEL: c_int = 128;
    // SAFETY: this function is the handler, and both structures are its own arguments.
    let (code, executed) = unsafe {
        let code = (*info).si_code;
        (code, || execute_port_instruction(registers(context)))
    };
    if code != SI_KERNEL || !stack::apart(executed) {
        give_up(signal);
    }
}

/// Executes the port instruction if this thread may use the port; returns true if so.
fn execute_port_instruction(registers: &mut Registers) -> bool {
    const GENERAL_PROTECTION: i64 = 13;
    if registers[libc::REG_TRAPNO as usize] != GENERAL_PROTECTION {
        return false;
    }
    // SAFETY: the faulting instruction was fetched, so its first byte is readable.
    let opcode = unsafe { *(registers[RIP] as *const u8) };
    let Some(rax) = ports::execute(opcode, registers[RDX] as u16, registers[RAX]) else {
        return false;
    };
    registers[RAX] = rax;
    registers[RIP] += 1;
    true
}

/// Executes a trapped access to a register of the GPIO chip.
unsafe extern "C" fn on_page(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    /// The code of a SIGBUS whose address has no page.
    const BUS_ADRERR: c_int = 2;
    // SAFETY: this function is the handler, and both structures are its own arguments.
    // A SIGBUS with this code has an address.
    let (code, executed) = unsafe {
        let address = (*info).si_addr() as usize;
        let executed = move || execute_access(address, registers(context));
        ((*info).si_code, executed)
    };
    if code != BUS_ADRERR || !stack::apart(executed) {
        give_up(signal);
    }
}

/// Executes the instruction if it accesses a register of the chip and `decode` knows the
/// instruction; returns true if so.
fn execute_access(address: usize, registers: &mut Registers) -> bool {
    let Some(offset) = gpio::register_at(address) else {
        return false;
    };
    // SAFETY: the instruction was fetched. The longest form that `decode` knows has 12 bytes,
    // and the code of a program does not end in the last bytes of its last page.
    let instruction =
        unsafe { core::slice::from_raw_parts(registers[RIP] as *const u8, decode::LONGEST) };
    let Some((access, length)) = decode::decode(instruction) else {
        return false;
    };
    let general = |number: u8| GENERAL[usize::from(number)] as usize;
    match access {
        // A load of 32 bits clears the upper half of the register.
        Access::Load(to) => registers[general(to)] = i64::from(gpio::read(offset)),
        Access::Store(from) => gpio::write(offset, registers[general(from)] as u32),
        Access::StoreNumber(number) => gpio::write(offset, number),
        Access::Combine(operation, with, keeps_result) => {
            let (register, read) = (general(with), gpio::read(offset));
            let (result, flags) = operation.of(registers[register] as u32, read, registers[EFLAGS]);
            registers[EFLAGS] = flags;
            if keeps_result {
                registers[register] = i64::from(result);
            }
        }
    }
    registers[RIP] += length as i64;
    true
}

/// Restores the previous handler.
/// The instruction is then executed again and raises the signal again.
fn give_up(signal: c_int) {
    if let Some(before) = before(signal).get() {
        // SAFETY: `sigaction` has filled `before` with a valid action.
        unsafe { libc::sigaction(signal, before, core::ptr::null_mut()) };
    }
}

//! Tests of programs whose signal handler accesses the port, on an alternate stack that is little
//! larger than one signal frame.
//!
//! With a real port such a stack suffices, because an access to the port raises no signal.
//! As in `processes`, this test program starts itself again, as the tested program.

use crate::processes::{BOARD, PORT, plug_if_told};
use crate::rigs::{board_in, free_base};
use barrier_board::live::{Board, Memory};
use barrier_driver::ToggleBarrier;
use barrier_driver::ports::{self, Resting};
use std::ffi::{c_int, c_ulong, c_void};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Environment variable that is set for the programs that these tests start.
const HANDLES: &str = "EMULATED_HANDLES";
/// Stack use in bytes of the program's handler, below the signal frame.
const HANDLER: usize = 4 << 10;
/// The wires of the program, which its handler uses.
static WIRES: OnceLock<Resting> = OnceLock::new();

extern "C" fn rest(_: c_int) {
    if let Some(wires) = WIRES.get() {
        wires.rest();
    }
}

/// Gives this thread an alternate stack of one frame and [`HANDLER`] bytes, with no memory below.
fn small_stack() {
    const PAGE: usize = 4096;
    const AT_MINSIGSTKSZ: c_ulong = 51;
    // SAFETY: `getauxval` takes and returns a number, and accesses no memory of this program.
    let told = unsafe { libc::getauxval(AT_MINSIGSTKSZ) };
    let frame = usize::try_from(told)
        .expect("a length")
        .max(libc::MINSIGSTKSZ);
    let length = (frame + HANDLER).next_multiple_of(PAGE);
    let (all, private) = (PAGE + length, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: the stack is new memory without its first page, and the memory is never unmapped.
    unsafe {
        let memory = libc::mmap(std::ptr::null_mut(), all, libc::PROT_NONE, private, -1, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        let ss_sp = memory.cast::<u8>().add(PAGE).cast::<c_void>();
        let access = libc::PROT_READ | libc::PROT_WRITE;
        assert_eq!(libc::mprotect(ss_sp, length, access), 0);
        let stack = libc::stack_t {
            ss_sp,
            ss_flags: 0,
            ss_size: length,
        };
        assert_eq!(libc::sigaltstack(&stack, std::ptr::null_mut()), 0);
    }
}

/// The program whose handler withdraws its arrival; does nothing if it runs as a test.
#[test]
fn handling_program() {
    let (Ok(text), true) = (std::env::var(PORT), std::env::var_os(HANDLES).is_some()) else {
        return;
    };
    let _plugged = plug_if_told(0, &text);
    let wires = ports::open(&text).expect("an emulated port");
    assert!(WIRES.set(wires.resting).is_ok(), "set once");
    let open = ToggleBarrier::open(wires.out, wires.input, || Ok::<_, io::Error>(()));
    let mut barrier = open.expect("all wires are idle");
    small_stack();
    // SAFETY: all-zero is a valid `sigaction`, and the handler has the signature for no SA_SIGINFO.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = rest as extern "C" fn(c_int) as usize;
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaction(libc::SIGUSR1, &action, std::ptr::null_mut());
    }
    barrier.enter().expect("out of the barrier");
    for _ in 0..3 {
        // SAFETY: the handler for SIGUSR1 was installed above, so the signal runs it on this thread.
        unsafe { libc::raise(libc::SIGUSR1) };
    }
    // `exit` runs no destructor, so only the handler can have set the wire back.
    std::process::exit(0);
}

/// Runs the program over this port; fails unless it succeeds and leaves its wire idle.
fn handles(text: &str) -> Result<(), String> {
    let memory = Memory::create(Board::layout_size(2, 0)).expect("memory");
    let board = board_in(&memory, 2);
    let ended = Command::new(std::env::current_exe().expect("this test program"))
        .args(["--exact", "stacks::handling_program", "--nocapture"])
        .env(PORT, text)
        .env(HANDLES, "1")
        .env(BOARD, memory.as_fd().as_raw_fd().to_string())
        .stdin(Stdio::null())
        .output()
        .expect("this test program starts again");
    match (ended.status.success(), board.snapshot().arrived()) {
        (true, 0) => Ok(()),
        (_, arrived) => Err(format!(
            "{text}: {}, arrived {arrived:b}\n{}",
            ended.status,
            String::from_utf8_lossy(&ended.stderr)
        )),
    }
}

#[test]
fn a_handler_on_a_small_alternate_stack_accesses_port_instructions() {
    let text = format!("parport:{:#x},out=D0,in=nACK", free_base());
    assert_eq!(handles(&text), Ok(()));
}

#[test]
fn a_handler_on_a_small_alternate_stack_accesses_gpio_lines_both_ways() {
    if crate::pi::on_a_pi() {
        for text in ["rppal:out=17,in=27", "gpio:/dev/gpiochip0,out=17,in=27"] {
            assert_eq!(handles(text), Ok(()));
        }
    }
}

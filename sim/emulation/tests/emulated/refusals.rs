//! Tests of the errors of `ports::open` without permission, without a device, or with another user.

use crate::rigs::{board, free_base, mounted, port, usual};
use barrier_driver::ports;
use barrier_emulation::trap::{self, Rights};
use embedded_hal::digital::OutputPin;
use rustix::io::Errno;
use std::thread;

/// Returns the error message of `open` for a port that it cannot open.
fn said(text: &str) -> String {
    match ports::open(text) {
        Ok(wires) => panic!("{text} was opened: {wires:?}"),
        Err(e) => e.to_string(),
    }
}

fn parport(base: u16) -> String {
    format!("parport:{base:#x},out=D0,in=nACK")
}

#[test]
fn a_process_without_the_right_gets_the_name_of_the_right_it_needs() {
    trap::install(Rights::Refused(Errno::PERM)).expect("seccomp filters are allowed");
    let base = free_base();
    let said = said(&parport(base));
    let place = format!("I/O addresses {base:#x} to {:#x}", base + 2);
    assert!(
        said.starts_with(&format!(
            "this process has no right to use the parallel port at {place}: it needs CAP_SYS_RAWIO"
        )),
        "{said}"
    );
}

#[test]
fn a_kernel_without_ioperm_is_named() {
    trap::install(Rights::Refused(Errno::NOSYS)).expect("seccomp filters are allowed");
    let said = said(&parport(free_base()));
    assert!(
        said.ends_with("it lacks the system call ioperm (CONFIG_X86_IOPL_IOPERM)"),
        "{said}"
    );
}

#[test]
fn an_address_where_nothing_answers_is_refused() {
    trap::install(Rights::Granted).expect("seccomp filters are allowed");
    let said = said(&parport(free_base()));
    assert!(
        said.starts_with("nothing answers at the parallel port"),
        "{said}"
    );
    assert!(said.ends_with("all its registers read 0xff"), "{said}");
}

#[test]
fn a_port_by_instructions_has_one_user_and_is_free_again_after_it() {
    trap::install(Rights::Granted).expect("seccomp filters are allowed");
    let base = free_base();
    let _plugged = trap::plug(base, port(&board(1), 0, usual()));
    let first = ports::open(&parport(base)).expect("an emulated port");
    assert!(said(&parport(base)).ends_with("is in use by another process that makes barriers"));
    drop(first);
    ports::open(&parport(base)).expect("it has been given back");
}

/// A child process holds all open files of its parent between fork and `execve`.
#[test]
fn a_port_by_instructions_is_free_again_although_a_process_was_started_while_it_was_in_use() {
    trap::install(Rights::Granted).expect("seccomp filters are allowed");
    let base = free_base();
    let _plugged = trap::plug(base, port(&board(1), 0, usual()));
    let first = ports::open(&parport(base)).expect("an emulated port");
    // SAFETY: the child only sleeps and exits, with two functions that are async-signal-safe.
    let child = unsafe {
        let child = libc::fork();
        if child == 0 {
            let half_a_second = libc::timespec {
                tv_sec: 0,
                tv_nsec: 500_000_000,
            };
            libc::nanosleep(&half_a_second, std::ptr::null_mut());
            libc::_exit(0);
        }
        child
    };
    assert!(child > 0, "a child");
    drop(first);
    ports::open(&parport(base)).expect("it has been given back");
    // SAFETY: the child was created above; the status is not needed, and its pointer may be null.
    unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
}

/// Without the driver's record of permissions per thread,
/// the access would end the process by SIGSEGV.
#[test]
fn pins_work_on_a_thread_that_never_asked_for_the_right() {
    trap::install(Rights::Granted).expect("seccomp filters are allowed");
    let base = free_base();
    let board = board(1);
    let _plugged = trap::plug(base, port(&board, 0, usual()));
    let mut wires = ports::open(&parport(base)).expect("an emulated port");
    thread::scope(|scope| {
        scope.spawn(|| {
            wires
                .out
                .set_high()
                .expect("this thread asks for the right")
        });
    });
    assert_eq!(board.snapshot().inputs, 1);
}

/// The kernel manages the claim,
/// so it also excludes other drivers of the port, such as a printer's.
#[test]
fn a_port_by_ppdev_has_one_user_and_says_who_it_may_be() {
    let Some(files) = mounted(vec![port(&board(1), 0, usual())]) else {
        return;
    };
    let text = format!("ppdev:{},out=D0,in=nACK", files.path(0).display());
    let _first = ports::open(&text).expect("an emulated port");
    assert_eq!(
        said(&text),
        format!(
            "the parallel port {} is in use by another driver or process, perhaps the printer's (rmmod lp)",
            files.path(0).display()
        )
    );
}

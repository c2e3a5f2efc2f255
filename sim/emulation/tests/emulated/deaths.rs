//! Tests of the level that a program leaves on its wire when it ends in a barrier,
//! for each kind of end and each kind of port.
//!
//! As in `processes`, this test program starts itself again, as the program that ends.

use crate::processes::{BOARD, PORT, plug_if_told};
use crate::rigs::{board_in, free_base, mounted, port, usual};
use barrier_board::live::{Board, Memory};
use barrier_driver::{ToggleBarrier, last_resort, ports};
use rustix::process::{Signal, getpid, kill_process};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Environment variable that selects how the program ends.
const END: &str = "EMULATED_END";

/// The program that enters a barrier and ends there; as a test it does nothing.
#[test]
fn dying_program() {
    let told = |what| std::env::var(what).ok();
    let (Some(text), Some(end)) = (told(PORT), told(END)) else {
        return;
    };
    let _plugged = plug_if_told(0, &text);
    let wires = ports::open(&text).expect("an emulated port");
    let _watch = last_resort::watch(wires.resting).expect("nothing else is watched");
    let open = ToggleBarrier::open(wires.out, wires.input, || Ok::<_, io::Error>(()));
    let mut barrier = open.expect("all wires are idle");
    barrier.enter().expect("out of the barrier");
    let arrived = barrier.wait(std::thread::yield_now, Duration::from_millis(5));
    assert!(arrived.is_err(), "no other node arrives");
    // No Rust value is dropped after this point.
    match end.as_str() {
        "exit" => std::process::exit(0),
        "abort" => std::process::abort(),
        "terminate" => kill_process(getpid(), Signal::TERM),
        "kill" => kill_process(getpid(), Signal::KILL),
        other => panic!("{other} is no end"),
    }
    .expect("a process may signal itself");
    std::thread::sleep(Duration::from_secs(60));
}

/// Runs a program that ends as `end` says, over the port `text`.
/// Returns the mask of arrived nodes, and how the program ended.
fn after(text: &str, end: &str, board: &Board<'_>, memory: Option<&Memory>) -> (u64, String) {
    let mut command = Command::new(std::env::current_exe().expect("this test program"));
    command
        .args(["--exact", "deaths::dying_program", "--nocapture"])
        .env(PORT, text)
        .env(END, end)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(memory) = memory {
        command.env(BOARD, memory.as_fd().as_raw_fd().to_string());
    }
    let status = command.status().expect("this test program starts again");
    let status = match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, code) => format!("status {code:?}"),
    };
    (board.snapshot().arrived(), status)
}

/// Returns memory for a board of two nodes, which the started program accesses itself.
fn shared() -> &'static Memory {
    let memory = Memory::create(Board::layout_size(2, 0)).expect("memory");
    Box::leak(Box::new(memory))
}

const EXIT: (&str, &str) = ("exit", "status Some(0)");
const ABORT: (&str, &str) = ("abort", "signal 6");
const TERMINATE: (&str, &str) = ("terminate", "signal 15");

#[test]
fn a_program_that_dies_in_the_barrier_puts_its_wire_back_and_ends_as_it_would_have() {
    for (end, status) in [EXIT, ABORT, TERMINATE] {
        let board = crate::rigs::board(2);
        let Some(files) = mounted(vec![port(&board, 0, usual())]) else {
            return;
        };
        let text = format!("ppdev:{},out=D0,in=nACK", files.path(0).display());
        let died = after(&text, end, &board, None);
        assert_eq!(died, (0, status.to_owned()), "{end}");
    }
}

/// The case TERMINATE is omitted: the kernel may run the handler of SIGTERM on a thread whose port
/// instructions are not emulated. On a real machine the port instructions of every thread work.
#[test]
fn the_same_by_port_instructions() {
    for (end, status) in [EXIT, ABORT] {
        let memory = shared();
        let board = board_in(memory, 2);
        let text = format!("parport:{:#x},out=D0,in=nACK", free_base());
        let died = after(&text, end, &board, Some(memory));
        assert_eq!(died, (0, status.to_owned()), "{end}");
    }
}

#[test]
fn the_same_by_both_ways_to_gpio_lines() {
    if !crate::pi::on_a_pi() {
        return;
    }
    for text in ["rppal:out=17,in=27", "gpio:/dev/gpiochip0,out=17,in=27"] {
        for (end, status) in [EXIT, ABORT] {
            let memory = shared();
            let board = board_in(memory, 2);
            let died = after(text, end, &board, Some(memory));
            assert_eq!(died, (0, status.to_owned()), "{text}: {end}");
        }
    }
}

/// A killed process runs no more code; the next job's `open` overwrites the level.
#[test]
fn a_killed_program_leaves_its_arrival_and_the_next_one_takes_it_back() {
    let board = crate::rigs::board(2);
    let Some(files) = mounted(vec![port(&board, 0, usual())]) else {
        return;
    };
    let text = format!("ppdev:{},out=D0,in=nACK", files.path(0).display());
    assert_eq!(
        after(&text, "kill", &board, None),
        (1, "signal 9".to_owned())
    );
    assert_eq!(after(&text, "exit", &board, None), (0, EXIT.1.to_owned()));
}

//! Tests of the lines whose edges wake a process that sleeps in the kernel.
//! That a release wakes a process is tested by the driver's suite.

use crate::pi::on_a_pi;
use crate::rigs::{board, can_mount, free_base, line, mounted, port};
use barrier_board::live::Wires;
use barrier_driver::InputEvents;
use barrier_driver::ports::{self, BoxedIn, parallel};
use barrier_emulation::gpio::GpioChip;
use barrier_emulation::parallel::Plug;
use barrier_emulation::trap::{self, Rights};
use embedded_hal::digital::{InputPin, OutputPin, PinState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit that only a broken driver reaches.
const LONG: Duration = Duration::from_secs(30);

fn opened(text: &str) -> ports::BoxedWires {
    ports::open(text).expect("an emulated port")
}

#[test]
fn of_a_parallel_port_only_nack_by_ppdev_wakes_sleepers() {
    if !can_mount() {
        return;
    }
    trap::install(Rights::Granted).expect("seccomp filters are allowed");
    for input in parallel::INPUTS {
        let board = board(1);
        let plug = Plug::straight(line(&parallel::OUTPUTS, "D0"), input);
        let files = mounted(vec![port(&board, 0, plug)]).expect("asked first");
        let path = files.path(0);
        let text = format!("ppdev:{},out=D0,in={}", path.display(), input.name);
        let wakes = opened(&text).input.wakes_sleepers();
        assert_eq!(wakes, input.name == "nACK", "{text}");
    }
    let board = board(1);
    let plug = crate::rigs::usual();
    let base = free_base();
    let _plugged = trap::plug(base, port(&board, 0, plug));
    let mut wires = opened(&format!("parport:{base:#x},out=D0,in=nACK"));
    assert!(!wires.input.wakes_sleepers());
}

/// Calls `change` while another thread sleeps until its input wire has the level `to`.
/// Fails if that does not wake the sleeper.
fn wakes(mut input: BoxedIn, to: PinState, change: impl FnOnce()) {
    input.arm().expect("armed");
    let (asleep, awake) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            asleep.store(true, Ordering::SeqCst);
            let slept = input.sleep_until_edge(to, 2 * LONG);
            slept.expect("a sleep");
            assert_eq!(input.is_high().map(PinState::from), Ok(to));
            awake.store(true, Ordering::SeqCst);
        });
        while !asleep.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        thread::sleep(Duration::from_millis(5));
        assert!(!awake.load(Ordering::SeqCst), "awake before the edge");
        change();
        let since = Instant::now();
        while !awake.load(Ordering::SeqCst) {
            assert!(since.elapsed() < LONG, "the edge has woken no sleeper");
            thread::yield_now();
        }
    });
}

#[test]
fn a_rise_of_nack_ends_a_sleep_and_one_before_arming_does_not() {
    if !can_mount() {
        return;
    }
    let board = board(1);
    let files = mounted(vec![port(&board, 0, crate::rigs::usual())]).expect("asked");
    let text = format!("ppdev:{},out=D0,in=nACK", files.path(0).display());
    let mut wires = opened(&text);
    for _ in 0..3 {
        // A board of one node releases the node immediately,
        // so the release wire follows the node's wire.
        wires.out.set_high().expect("a write");
        assert_eq!(wires.input.is_high(), Ok(true));
        wires.out.set_low().expect("a write");
        assert_eq!(wires.input.is_low(), Ok(true));
        let out = &mut wires.out;
        wakes(wires.input.clone(), PinState::High, || {
            out.set_high().expect("a write");
        });
    }
}

/// Returns a GPIO chip whose lines 0 and 1 are the wires of a board with one node.
fn chip() -> GpioChip {
    let board = board(1);
    let Wires { out, input, .. } = board.wires(0, |_| ()).expect("the wires are free");
    GpioChip::default().plug(0, 1, (out, input))
}

#[test]
fn both_edges_of_a_gpio_line_end_a_sleep() {
    if !on_a_pi() {
        return;
    }
    let _chip = trap::plug_chip(chip());
    let mut wires = opened("gpio:/dev/gpiochip0,out=0,in=1");
    assert!(wires.input.wakes_sleepers());
    for _ in 0..3 {
        for to in [PinState::Low, PinState::High] {
            let out = &mut wires.out;
            wakes(wires.input.clone(), to, || {
                out.set_state(to).expect("a write");
            });
        }
    }
}

#[test]
fn a_chip_without_interrupts_says_so_and_its_lines_are_read_as_before() {
    if !on_a_pi() {
        return;
    }
    let _chip = trap::plug_chip(chip().without_interrupts());
    let mut wires = opened("gpio:/dev/gpiochip0,out=0,in=1");
    assert!(!wires.input.wakes_sleepers());
    for high in [false, true] {
        wires.out.set_state(high.into()).expect("a write");
        assert_eq!(wires.input.is_high(), Ok(high));
    }
}

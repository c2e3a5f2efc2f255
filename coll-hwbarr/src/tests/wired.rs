//! Tests on real ports: an emulated parallel port of the kernel, connected to the simulator's board.

use super::*;
use barrier_board::live::{Board, Memory, Wires};
use barrier_driver::ports::parallel::{INPUTS, Line, OUTPUTS};
use barrier_emulation::cable::Cable;
use barrier_emulation::parallel::{ParallelPort, Plug};
use barrier_emulation::ppdev::Parports;
use barrier_emulation::registers::RegisterDevice;
use barrier_emulation::uio::Uios;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use barrier_emulation::{gpio::GpioChip, supervised};
use embedded_hal::digital::PinState;
use hdl::cache::Cache;
use hdl::register_device::Playing;
use hdl::tool::ToolError;
use std::thread;
use std::time::Duration;

/// Creates `nodes` ports of one board; the last has the cable `last` from the barrier.
/// Returns `None` if this process may not mount.
fn ports(nodes: usize, last: Cable) -> Option<(Board<'static>, Parports)> {
    let memory = Memory::create(Board::layout_size(nodes, 0)).expect("memory for a small board");
    let board = Box::leak(Box::new(memory)).init(nodes, 0).expect("a board");
    let line = |lines: &[Line], name| *lines.iter().find(|l| l.name == name).expect("a line");
    let ports = (0..nodes)
        .map(|node| {
            let Wires { out, input, .. } = board.wires(node, |_| ()).expect("free wires");
            let mut plug = Plug::straight(line(&OUTPUTS, "D0"), line(&INPUTS, "nACK"));
            if node + 1 == nodes {
                plug.in_cable = last;
            }
            ParallelPort::new(plug, 0, (out, input))
        })
        .collect();
    match Parports::mount(ports) {
        Ok(files) => Some((board, files)),
        Err(e) => {
            eprintln!("SKIPPED: ppdev is not tested, this process may not mount /dev/fuse: {e}");
            None
        }
    }
}

fn text_of(files: &Parports) -> String {
    format!(
        "ppdev:{}/parport{{rank}},out=D0,in=nACK",
        files.folder().display()
    )
}

#[test]
fn barriers_of_a_job_go_over_parallel_ports() {
    let Some((board, files)) = ports(4, Cable::Straight) else {
        return;
    };
    run(4, &[("port", &text_of(&files))], |engine| {
        let world = world(engine);
        assert_eq!(verdict(&world), Ok(()));
        for _ in 0..20 {
            blocking(&world);
        }
    });
    // The self-test has two releases per late node, and the end of the job is a barrier.
    assert!(board.releases() >= 20, "{} releases", board.releases());
}

#[test]
fn ranks_that_wait_for_a_late_one_sleep_in_the_kernel_if_they_are_told_to() {
    for (nap, sleeps) in [("1ms", true), ("0", false)] {
        let Some((board, files)) = ports(3, Cable::Straight) else {
            return;
        };
        run(3, &[("port", &text_of(&files)), ("sleep", nap)], |engine| {
            let world = world(engine);
            assert_eq!(verdict(&world), Ok(()));
            for round in 0..6 {
                if world.rank() == round % 3 {
                    thread::sleep(Duration::from_millis(10));
                }
                blocking(&world);
            }
        });
        assert!(board.releases() >= 6, "{} releases", board.releases());
        assert_eq!(files.sleeps() > 0, sleeps, "coll_hwbarr_sleep {nap}");
    }
}

#[test]
fn a_cable_that_is_not_plugged_is_found_before_a_barrier_hangs_for_it() {
    let Some((_board, files)) = ports(4, Cable::Open(PinState::High)) else {
        return;
    };
    let message = run(4, &[("port", &text_of(&files))], |engine| {
        verdict(&world(engine)).expect_err("it should have refused")
    });
    for message in message {
        assert!(
            message.contains("node 3 reads high and 3 others read low"),
            "{message}"
        );
    }
}

#[test]
fn one_port_is_not_shared_by_the_ranks_of_a_host() {
    let message = run(
        2,
        &[("port", "ppdev:/dev/parport0,out=D0,in=nACK")],
        |engine| verdict(&world(engine)).expect_err("it should have refused"),
    );
    assert!(
        message[0].contains("is one port, and 2 ranks run on the host of rank 0"),
        "{message:?}"
    );
}

#[test]
fn a_port_that_is_not_there_refuses_with_its_name() {
    let message = run(
        2,
        &[("port", "ppdev:/nowhere/parport{rank},out=D0,in=nACK")],
        |engine| verdict(&world(engine)).expect_err("it should have refused"),
    );
    assert!(message[1].contains("/nowhere/parport"), "{message:?}");
}

#[test]
fn barriers_of_a_job_go_over_mapped_registers() {
    let cache = Cache::at(on_rtl::cache());
    let device = match Playing::start(&[("N", 4)], &cache) {
        Ok(device) => device,
        Err(missing @ ToolError::Missing(_)) => {
            eprintln!("SKIPPED: mapped registers are not tested: {missing}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let port = format!("mem:{},node={{rank}},members=0-3", device.file().display());
    run(4, &[("port", &port)], |engine| {
        let world = world(engine);
        assert_eq!(verdict(&world), Ok(()));
        for _ in 0..20 {
            blocking(&world);
        }
    });
    assert!(device.releases() >= 20, "{} releases", device.releases());
}

#[test]
fn ranks_sleep_until_the_interrupts_of_mapped_registers() {
    let folder = tempfile::tempdir().expect("a folder");
    let registers = folder.path().join("registers");
    let device = RegisterDevice::create(&registers, 3, 1).expect("a device");
    let files = match Uios::mount(&device) {
        Ok(files) => files,
        Err(e) => {
            eprintln!("SKIPPED: uio is not tested, this process may not mount /dev/fuse: {e}");
            return;
        }
    };
    let port = format!(
        "uio:{}/uio{{rank}},node={{rank}},members=0-2,registers={}",
        files.folder().display(),
        registers.display()
    );
    run(3, &[("port", &port), ("sleep", "1ms")], |engine| {
        let world = world(engine);
        assert_eq!(verdict(&world), Ok(()));
        for round in 0..6 {
            if world.rank() == round % 3 {
                thread::sleep(Duration::from_millis(10));
            }
            blocking(&world);
        }
    });
    assert!(device.releases() >= 6, "{} releases", device.releases());
    assert!(files.sleeps() > 0);
}

/// The ranks are threads that inherit the emulated `/dev` and the supervision of their ioctls.
#[test]
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn barriers_of_a_job_go_over_gpio_chips() {
    let memory = Memory::create(Board::layout_size(3, 0)).expect("memory for a small board");
    let board = Box::leak(Box::new(memory)).init(3, 0).expect("a board");
    let chips = (0..3).map(|node| {
        let Wires { out, input, .. } = board.wires(node, |_| ()).expect("free wires");
        GpioChip::default().plug(17, 27, (out, input))
    });
    let port = "gpio:/dev/gpiochip{rank},out=17,in=27";
    let done = supervised::run(chips.collect(), || {
        run(3, &[("port", port), ("sleep", "1ms")], |engine| {
            let world = world(engine);
            assert_eq!(verdict(&world), Ok(()));
            for _ in 0..20 {
                blocking(&world);
            }
        });
    });
    match done {
        Ok(()) => assert!(board.releases() >= 20, "{} releases", board.releases()),
        Err(refused) => eprintln!("SKIPPED: GPIO chips are not tested: {refused}"),
    }
}

//! Tests of `hwbarr port` on parallel ports that a user-space file system emulates, with the
//! simulator's board or loopback plugs at their connectors.

use barrier_board::live::{Board, Memory, Wires};
use barrier_driver::ports::parallel::{INPUTS, Line, OUTPUTS};
use barrier_emulation::cable::{Cable, CableEnd};
use barrier_emulation::parallel::{ParallelPort, Plug};
use barrier_emulation::ppdev::Parports;
use embedded_hal::digital::PinState;
use std::process::Command;

fn hwbarr(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hwbarr"))
        .args(arguments)
        .env("COLUMNS", "100")
        .output()
        .expect("hwbarr starts");
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    format!("{out}{err}[exit {}]", output.status.code().unwrap_or(-1))
}

/// A loopback plug that connects both wires, with their present level.
struct Joined(bool);

impl CableEnd for Joined {
    fn drive(&mut self, high: bool) {
        self.0 = high;
    }

    fn level(&mut self) -> bool {
        self.0
    }
}

fn usual() -> Plug {
    let line = |lines: &[Line], name| *lines.iter().find(|l| l.name == name).expect("a line");
    Plug::straight(line(&OUTPUTS, "D0"), line(&INPUTS, "nACK"))
}

/// Mounts four ports: 0 and 1 are nodes of a board, 2 has a loopback plug, 3 a defective plug.
/// Returns `None` if mounting is not allowed.
fn mounted() -> Option<Parports> {
    let memory = Memory::create(Board::layout_size(2, 0)).expect("memory");
    let board = Box::leak(Box::new(memory)).init(2, 0).expect("a board");
    let mut ports: Vec<_> = (0..2)
        .map(|node| {
            let Wires { out, input, .. } = board.wires(node, |_| ()).expect("free wires");
            ParallelPort::new(usual(), 0, (out, input))
        })
        .collect();
    ports.push(ParallelPort::new(usual(), 0, Joined(false)));
    let broken = Plug {
        in_cable: Cable::Open(PinState::High),
        ..usual()
    };
    ports.push(ParallelPort::new(broken, 0, Joined(false)));
    match Parports::mount(ports) {
        Ok(files) => Some(files),
        Err(e) => {
            eprintln!("SKIPPED: ports are not tested, this process may not mount /dev/fuse: {e}");
            None
        }
    }
}

/// Returns the output with the folder's name and all times removed.
fn plain(text: &str, files: &Parports) -> String {
    let text = text.replace(&files.folder().display().to_string(), "/dev");
    let words = text.split(' ').map(|word| match word.parse::<f64>() {
        Ok(_) if word.contains('.') => "N",
        _ => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_port_is_brought_up_step_by_step() {
    let Some(files) = mounted() else {
        return;
    };
    let port = |number: usize| format!("ppdev:{},out=D0,in=nACK", files.path(number).display());
    let run = |arguments: &[&str]| {
        let mut all = vec!["port"];
        all.extend(arguments);
        plain(&hwbarr(&all), &files)
    };
    insta::assert_snapshot!("port_read", run(&["read", &port(0)]));
    insta::assert_snapshot!("port_write", run(&["write", &port(2), "high"]));
    assert!(run(&["read", &port(2)]).contains("is high"));
    insta::assert_snapshot!(
        "port_toggle",
        run(&["toggle", &port(2), "-k", "3", "--period", "1"])
    );
    insta::assert_snapshot!("port_loopback", run(&["loopback", &port(2), "-k", "50"]));
    insta::assert_snapshot!("port_loopback_broken", run(&["loopback", &port(3)]));
    insta::assert_snapshot!("port_measure", run(&["measure", &port(0), "-k", "50"]));
    insta::assert_snapshot!("port_pair", run(&["pair", &port(0), &port(1), "-k", "20"]));
    let wrong = run(&["pair", &port(0), &port(3), "-k", "20"]);
    assert!(wrong.contains("[exit 1]"), "{wrong}");
}

#[test]
fn missing_and_ambiguous_boards_are_reported() {
    insta::assert_snapshot!(
        "port_missing",
        hwbarr(&["port", "read", "ppdev:/nowhere/parport0,out=D0,in=nACK"])
    );
    insta::assert_snapshot!("port_unknown", hwbarr(&["port", "read", "lpt1"]));
    insta::assert_snapshot!("help_port", hwbarr(&["port", "--help"]));
    let list = hwbarr(&["port", "list"]);
    assert!(
        list.contains("ppdev:/dev/parport0,out=D0,in=nACK") && list.contains("[exit 0]"),
        "{list}"
    );
}

//! Tests of sixty processes, each of which is a node:
//! this test program starts itself again per node.
//!
//! For each fence a node writes one byte to the socket to its parent and waits for one byte.

use crate::rigs::{board_in, line, mounted, usual};
use barrier_board::live::{Board, Memory, Wires};
use barrier_driver::ports::{self, parallel};
use barrier_driver::{SelfTest, ToggleBarrier, self_test};
use barrier_emulation::gpio::GpioChip;
use barrier_emulation::parallel::ParallelPort;
use barrier_emulation::trap::{self, Rights};
use std::any::Any;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const NODES: usize = 60;
const BARRIERS: u64 = 100;
/// Number of barriers in the self-test: two for each of the two late nodes.
const TESTED: u64 = 4;
/// Time limit, far longer than a barrier takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The two lines of a node that has a GPIO chip.
const OUT: u32 = 17;
const IN: u32 = 27;

/// Environment variable with the node's number.
const NODE: &str = "EMULATED_NODE";
pub const PORT: &str = "EMULATED_PORT";
pub const BOARD: &str = "EMULATED_BOARD";
const SOCKET: &str = "EMULATED_SOCKET";

/// The program of a node process; does nothing if it runs as a test.
#[test]
fn node_program() {
    let told = |what| std::env::var(what).ok();
    let (Some(node), Some(text), Some(socket)) = (told(NODE), told(PORT), told(SOCKET)) else {
        return;
    };
    let node = node.parse().expect("a number");
    let mut parent = UnixStream::connect(socket).expect("the parent listens");
    let _plugged = plug_if_told(node, &text);
    let wires = ports::open(&text).expect("an emulated port");
    let mut fence = || -> io::Result<()> {
        parent.write_all(b".")?;
        parent.read_exact(&mut [0])
    };
    let mut barrier =
        ToggleBarrier::open(wires.out, wires.input, &mut fence).expect("all wires are idle");
    let test = SelfTest {
        me: node,
        hold: Duration::from_micros(50),
        limit: LIMIT,
    };
    let late = [0, NODES - 1];
    self_test(&mut barrier, test, late, &mut fence, std::thread::yield_now).expect("good wires");
    for _ in 0..BARRIERS {
        barrier.enter().expect("out of the barrier");
        barrier
            .wait(std::thread::yield_now, LIMIT)
            .expect("all nodes enter");
    }
    barrier.close().expect("the wire is still");
}

/// Installs a node's wires in this process if the port's accesses must be trapped.
/// The result must live as long as the wires are used.
pub fn plug_if_told(node: usize, text: &str) -> Option<Box<dyn Any>> {
    let fd = std::env::var(BOARD).ok()?;
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(format!("/proc/self/fd/{fd}"));
    let memory = Memory::map(file.expect("inherited").into()).expect("a board's memory");
    Some(plug(Box::leak(Box::new(memory)), node, text))
}

/// Installs this node's wires, which are removed when the result is dropped.
fn plug(memory: &'static Memory, node: usize, text: &str) -> Box<dyn Any> {
    trap::install(Rights::Granted).expect("seccomp filters are allowed");
    let board = memory.attach().expect("the parent has made it");
    let Wires { out, input, .. } = board
        .wires(node, |_| ())
        .expect("no other process has this node");
    let Some(place) = text.strip_prefix("parport:0x") else {
        assert!(crate::pi::on_a_pi(), "the parent could");
        let chip = GpioChip::default().plug(OUT, IN, (out, input));
        return Box::new(trap::plug_chip(chip));
    };
    let digits = place.split(',').next().unwrap_or(place);
    let base = u16::from_str_radix(digits, 16).expect("an address");
    Box::new(trap::plug(
        base,
        ParallelPort::new(usual(), 0, (out, input)),
    ))
}

/// The node processes of a test, which are killed if the test fails.
struct Nodes(Vec<Child>);

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Runs all nodes until they end; `prepare` passes a port to a node's command.
fn run(board: &Board<'_>, prepare: impl Fn(usize, &mut Command)) {
    let folder = tempfile::tempdir().expect("a folder");
    let socket = folder.path().join("fence");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let myself = std::env::current_exe().expect("this test program");
    let spawn = |node: usize| {
        let mut command = Command::new(&myself);
        command
            .args(["--exact", "processes::node_program", "--nocapture"])
            .env(NODE, node.to_string())
            .env(SOCKET, &socket)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        prepare(node, &mut command);
        command.spawn().expect("this test program starts again")
    };
    let mut nodes = Nodes((0..NODES).map(spawn).collect());
    let mut meeting: Vec<UnixStream> = (0..NODES)
        .map(|_| listener.accept().expect("a node").0)
        .collect();
    // The nodes need one fence to open the barrier, and two per barrier of the self-test.
    for _fence in 0..1 + 2 * TESTED {
        for node in &mut meeting {
            node.set_read_timeout(Some(LIMIT)).expect("a limit");
            node.read_exact(&mut [0])
                .expect("a node comes to the fence");
        }
        for node in &mut meeting {
            node.write_all(b".").expect("a node waits at the fence");
        }
    }
    for (node, child) in nodes.0.iter_mut().enumerate() {
        let ended = child.wait().expect("a child");
        assert!(ended.success(), "node {node}: {ended}");
    }
    assert_eq!(board.releases(), BARRIERS + TESTED);
}

#[test]
fn sixty_processes_with_port_instructions_pass_exactly_the_barriers_they_make() {
    let memory = Memory::create(Board::layout_size(NODES, 0)).expect("memory");
    let board = board_in(&memory, NODES);
    let fd = memory.as_fd().as_raw_fd().to_string();
    let bases: Vec<u16> = (0..NODES).map(|_| crate::rigs::free_base()).collect();
    run(&board, |node, command| {
        let text = format!("parport:{:#x},out=D0,in=nACK", bases[node]);
        command.env(PORT, text).env(BOARD, &fd);
    });
}

/// Runs sixty emulated Raspberry Pis; each is a process with its own chip and `/dev`.
fn sixty_pis(port: &str) {
    if !crate::pi::on_a_pi() {
        return;
    }
    let memory = Memory::create(Board::layout_size(NODES, 0)).expect("memory");
    let board = board_in(&memory, NODES);
    let fd = memory.as_fd().as_raw_fd().to_string();
    run(&board, |_, command| {
        let text = format!("{port}out={OUT},in={IN}");
        command.env(PORT, text).env(BOARD, &fd);
    });
}

#[test]
fn sixty_processes_with_rppal_pass_exactly_the_barriers_they_make() {
    sixty_pis("rppal:");
}

#[test]
fn sixty_processes_with_the_gpio_character_device_pass_exactly_the_barriers_they_make() {
    sixty_pis("gpio:/dev/gpiochip0,");
}

#[test]
fn sixty_processes_with_ppdev_pass_exactly_the_barriers_they_make() {
    let board = crate::rigs::board(NODES);
    let lines = (
        line(&parallel::OUTPUTS, "D7"),
        line(&parallel::INPUTS, "BUSY"),
    );
    let plug = barrier_emulation::parallel::Plug::straight(lines.0, lines.1);
    let ports = (0..NODES).map(|node| crate::rigs::port(&board, node, plug));
    let Some(files) = mounted(ports.collect()) else {
        return;
    };
    run(&board, |node, command| {
        let path = files.path(node);
        let text = format!("ppdev:{},out=D7,in=BUSY", path.display());
        command.env(PORT, text);
    });
}

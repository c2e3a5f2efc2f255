//! Test of two virtual machines (QEMU guests) whose parallel ports are emulated: the guests use the
//! kernel's parport driver and real port instructions.
//!
//! `cargo xtask nightly-qemu` fetches the required files and runs this test;
//! to run it by hand, pass the folder with these files:
//!
//! ```text
//! PORTCULLIS_GUESTS=target/guests cargo test -p barrier-emulation --test guests -- --ignored --nocapture
//! ```
//!
//! The command also sets QEMU_MODULE_DIR, which the emulators inherit: the folder of QEMU's modules.
//! By hand, set this variable to `/usr/lib/x86_64-linux-gnu/qemu` if this machine has QEMU installed.
//!
//! QEMU passes the guest's port accesses to the host's `/dev/parportN`,
//! here a file of [`Parports`].
//! The only connection between the guests is the barrier; each has a serial line to this test,
//! which serves their software fences.
#![cfg(target_os = "linux")]

use barrier_board::live::{Board, Memory, Wires};
use barrier_driver::ports::parallel::{INPUTS, Line, OUTPUTS};
use barrier_emulation::parallel::{ParallelPort, Plug};
use barrier_emulation::ppdev::Parports;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const NODES: usize = 2;
/// Number of barriers through ppdev, and also with port instructions;
/// must equal the number in `xtask/src/guests.rs`.
const BARRIERS: u64 = 300;
/// Number of barriers of the self-test: two per late node.
const TESTED: u64 = 2 * NODES as u64;
/// Time limit for a guest; with an emulated processor on a busy machine it boots in half a minute.
const LIMIT: Duration = Duration::from_secs(300);

/// A virtual machine that is switched off when the test ends.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn boot(guests: &Path, node: usize, port: &Path, fence: &Path, console: &Path) -> Machine {
    let root = guests.join("root");
    let libraries = [
        "usr/lib",
        "usr/lib/x86_64-linux-gnu",
        "lib/x86_64-linux-gnu",
    ];
    let libraries = libraries.map(|folder| root.join(folder).display().to_string());
    let mut command = Command::new(root.join("usr/bin/qemu-system-x86_64"));
    command
        .env("LD_LIBRARY_PATH", libraries.join(":"))
        .args(["-L".into(), root.join("usr/share/qemu")])
        .args(["-L".into(), root.join("usr/share/seabios")])
        .args(["-L", "/usr/share/qemu", "-L", "/usr/share/seabios"])
        .args(["-machine", "pc,accel=tcg", "-m", "256"])
        .args(["-nodefaults", "-display", "none", "-no-reboot"])
        .args(["-kernel".into(), guests.join("vmlinuz")])
        .args(["-initrd".into(), guests.join("initramfs")])
        .arg("-append")
        .arg(format!("console=ttyS0 panic=-1 node={node}"))
        .args([
            "-chardev",
            &format!("file,id=console,path={}", console.display()),
        ])
        .args(["-device", "isa-serial,chardev=console"])
        .args([
            "-chardev",
            &format!("socket,id=fence,path={}", fence.display()),
        ])
        .args(["-device", "isa-serial,chardev=fence"])
        .args([
            "-chardev",
            &format!("parallel,id=lpt,path={}", port.display()),
        ])
        .args(["-device", "isa-parallel,chardev=lpt,iobase=0x378,irq=7"])
        .stdin(Stdio::null());
    Machine(command.spawn().expect("qemu starts"))
}

/// Performs the software fences of all nodes until one node disconnects.
fn serve(mut lines: Vec<UnixStream>) {
    loop {
        for line in &mut lines {
            if line.read_exact(&mut [0]).is_err() {
                return;
            }
        }
        for line in &mut lines {
            if line.write_all(b".").is_err() {
                return;
            }
        }
    }
}

#[test]
#[ignore = "boots two virtual machines: cargo xtask nightly-qemu"]
fn two_kernels_synchronise_through_the_simulator() {
    let guests = std::env::var_os("PORTCULLIS_GUESTS").expect("PORTCULLIS_GUESTS is their folder");
    let guests = PathBuf::from(guests);
    let memory = Memory::create(Board::layout_size(NODES, 0)).expect("memory");
    let board = Box::leak(Box::new(memory)).init(NODES, 0).expect("a board");
    let line = |lines: &[Line], name| *lines.iter().find(|l| l.name == name).expect("a line");
    let plug = Plug::straight(line(&OUTPUTS, "D0"), line(&INPUTS, "nACK"));
    let ports = (0..NODES).map(|node| {
        let Wires { out, input, .. } = board.wires(node, |_| ()).expect("free wires");
        ParallelPort::new(plug, 0, (out, input))
    });
    let folder = tempfile::tempdir().expect("a folder");
    let files = Parports::mount(ports.collect()).expect("the right to mount /dev/fuse");
    let socket = folder.path().join("fence");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let console = |node: usize| folder.path().join(format!("console{node}"));
    let mut machines: Vec<_> = (0..NODES)
        .map(|node| boot(&guests, node, &files.path(node), &socket, &console(node)))
        .collect();
    listener.set_nonblocking(true).expect("a socket");
    let begin = Instant::now();
    let mut lines = Vec::new();
    while lines.len() < NODES {
        match listener.accept() {
            Ok((line, _)) => {
                line.set_nonblocking(false).expect("a socket");
                lines.push(line);
            }
            Err(_) => thread::sleep(Duration::from_millis(10)),
        }
        assert!(begin.elapsed() < LIMIT, "qemu has not come to its fence");
    }
    let fence = thread::spawn(move || serve(lines));
    for (node, machine) in machines.iter_mut().enumerate() {
        while machine.0.try_wait().expect("a child").is_none() {
            let told = || fs::read_to_string(console(node)).unwrap_or_default();
            assert!(begin.elapsed() < LIMIT, "guest {node} hangs:\n{}", told());
            thread::sleep(Duration::from_millis(50));
        }
    }
    fence.join().expect("no panic");
    for node in 0..NODES {
        let mut told = String::new();
        let file = File::open(console(node));
        let mut file = file.expect("a console");
        file.read_to_string(&mut told).expect("a console's text");
        let lines = told.lines().map(str::trim);
        for line in lines.filter(|line| line.contains("parport0:") || line.contains(" passed ")) {
            println!("guest {node}: {line}");
        }
        let passed = told
            .matches(&format!("node {node} passed {BARRIERS} barriers"))
            .count();
        assert_eq!(passed, 2, "guest {node}:\n{told}");
    }
    println!("{} releases counted by the machine", board.releases());
    assert_eq!(board.releases(), 2 * (BARRIERS + TESTED));
}

//! Test of the driver on emulated microcontrollers: several Cortex-M0 nodes pass barriers.
//!
//! The firmware of real boards is built by `cargo xtask firmware`, because its packages take a minute to compile.
//! Each node is a QEMU process that emulates a micro:bit; its serial line carries its pins and its ring, in the protocol of
//! `firmware/microbit/src/main.rs`. This program is the board: it runs the model of the barrier and serves all lines.

use fpga_model::ToggleMachine;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const TARGET: &str = "thumbv6m-none-eabi";
const NO_SKIPS: &str = "PORTCULLIS_TEST_NO_SKIPS";
const QEMU: &str = "qemu-system-arm";
/// Time limit of the test, far longer than any run: if it expires, something hangs.
const HANGS: Duration = Duration::from_secs(300);
/// Number of bytes that are lost at the start of each ring line, as if the node were still booting.
const LOST: usize = 3;

/// Prints the reason why the test was skipped; fails if skipping is not allowed.
fn skipped(why: &str) {
    assert!(std::env::var_os(NO_SKIPS).is_none(), "{why}");
    eprintln!("SKIPPED: firmware: {why}");
}

/// Builds the firmware for the emulated node; `None` if Rust's target is not installed.
fn firmware() -> Option<PathBuf> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let target = ["--print", "target-libdir", "--target", TARGET];
    let said = Command::new(rustc).args(target).output().expect("rustc");
    let library = String::from_utf8(said.stdout).expect("a path");
    if !Path::new(library.trim()).is_dir() {
        skipped("no library for the Cortex-M0; rustup target add thumbv6m-none-eabi brings it");
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("firmware");
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("firmware");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--quiet", "--locked", "--target", TARGET])
        .args(["--package", "microbit"])
        .arg("--target-dir")
        .arg(&made)
        .current_dir(folder)
        // The RUSTFLAGS of this machine do not apply to the target.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .status()
        .expect("cargo");
    assert!(status.success(), "it does not build for {TARGET}");
    Some(made.join(TARGET).join("debug/microbit"))
}

/// The state of the board.
struct Board {
    machine: ToggleMachine,
    wires: u64,
    /// For each node, the number of level changes of its wire, which equals the number of its entries.
    entered: Vec<u32>,
    passed: Vec<u32>,
    /// The node whose wire is cut and stays low, if any.
    cut: Option<usize>,
}

impl Board {
    fn set(&mut self, node: usize, high: bool) {
        let bit = 1 << node;
        if high != (self.wires & bit != 0) {
            self.entered[node] += 1;
        }
        if self.cut != Some(node) {
            self.wires = if high {
                self.wires | bit
            } else {
                self.wires & !bit
            };
        }
        self.run();
    }

    fn level(&mut self) -> bool {
        self.run();
        self.machine.outputs() != 0
    }

    /// Runs the barrier machine for the time in which a byte is transmitted, which is many edges.
    fn run(&mut self) {
        self.machine.fast_forward(self.wires, 100);
    }

    /// Called when a node has passed its next barrier; checks that all nodes have entered this barrier.
    fn passed(&mut self, node: usize) {
        self.passed[node] += 1;
        // The self-test has two barriers for every late node.
        let entered = 2 * self.entered.len() as u32 + self.passed[node];
        for (other, &times) in self.entered.iter().enumerate() {
            let barrier = self.passed[node];
            assert!(
                times >= entered,
                "node {node} left barrier {barrier} before {other} entered it"
            );
        }
    }
}

/// The result of a node's run.
#[derive(Debug, PartialEq)]
enum End {
    Done,
    Stopped(String),
}

/// QEMU processes; dropping the value kills them, so a failing test does too.
struct Nodes(Vec<Child>);

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            // An error means that the process has already ended.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Serves one node's line until the node ends; returns its result.
fn serve(me: usize, from: ChildStdout, to: &[Mutex<ChildStdin>], board: &Mutex<Board>) -> End {
    let say = |node: usize, byte: u8| {
        // Writing to a node that has ended fails; this is ignored.
        let _ = to[node].lock().expect("a line").write_all(&[byte]);
    };
    let mut from = BufReader::new(from);
    let mut ring = 0;
    loop {
        let mut byte = [0];
        if from.read_exact(&mut byte).is_err() {
            return End::Stopped("QEMU has ended".to_owned());
        }
        match byte[0] {
            high @ 0..=1 => board.lock().expect("a board").set(me, high == 1),
            2 => {
                let level = board.lock().expect("a board").level();
                say(me, 0x40 | u8::from(level));
            }
            3 => board.lock().expect("a board").passed(me),
            4 => return End::Done,
            5 => {
                let mut text = String::new();
                from.read_line(&mut text).expect("text");
                return End::Stopped(text);
            }
            byte @ 0x80.. => {
                ring += 1;
                if ring > LOST {
                    say((me + 1) % to.len(), byte);
                }
            }
            other => panic!("node {me} says {other:#x}"),
        }
    }
}

/// Runs `nodes` nodes; returns the board and each node's result.
fn run(
    firmware: &Path,
    nodes: u8,
    hundreds: u8,
    tenths: u8,
    cut: Option<usize>,
) -> (Board, Vec<End>) {
    let count = usize::from(nodes);
    let board = Mutex::new(Board {
        machine: ToggleMachine::new(count).expect("nodes"),
        wires: 0,
        entered: vec![0; count],
        passed: vec![0; count],
        cut,
    });
    let start = || {
        Command::new(QEMU)
            .args([
                "-machine", "microbit", "-display", "none", "-monitor", "none",
            ])
            .args(["-serial", "stdio", "-kernel"])
            .arg(firmware)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("QEMU")
    };
    let mut children = Nodes((0..count).map(|_| start()).collect());
    let lines = children
        .0
        .iter_mut()
        .map(|c| Mutex::new(c.stdin.take().expect("piped")));
    let to: Vec<_> = lines.collect();
    let from: Vec<_> = children
        .0
        .iter_mut()
        .map(|c| c.stdout.take().expect("piped"))
        .collect();
    for (me, line) in (0..).zip(&to) {
        line.lock()
            .expect("a line")
            .write_all(&[me, nodes, hundreds, tenths])
            .expect("QEMU");
    }
    let over = AtomicBool::new(false);
    let ends = thread::scope(|scope| {
        let served: Vec<_> = from
            .into_iter()
            .enumerate()
            .map(|(me, from)| {
                let (to, board) = (&to, &board);
                scope.spawn(move || serve(me, from, to, board))
            })
            .collect();
        // The threads that serve the nodes end when QEMU does, so killing QEMU turns a hang into a result without a report.
        let (over, children) = (&over, &mut children);
        scope.spawn(move || {
            let started = Instant::now();
            while !over.load(Ordering::Relaxed) && started.elapsed() < HANGS {
                thread::sleep(Duration::from_millis(20));
            }
            children.0.iter_mut().for_each(|child| drop(child.kill()));
        });
        let ends: Vec<_> = served.into_iter().map(|t| t.join()).collect();
        over.store(true, Ordering::Relaxed);
        ends
    });
    let ends = ends
        .into_iter()
        .map(|end| end.expect("a board that is content"))
        .collect();
    (board.into_inner().expect("a board"), ends)
}

/// Builds the firmware; prints a message and returns `None` if Rust's target or QEMU is not installed.
fn microbit() -> Option<PathBuf> {
    let microbit = firmware()?;
    let there = Command::new(QEMU)
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if there.is_err() {
        skipped("no qemu-system-arm; the Debian package of that name brings it");
        return None;
    }
    Some(microbit)
}

/// Runs jobs of these numbers of nodes; each node must pass `hundreds` times 100 barriers.
fn all_pass(microbit: &Path, sizes: &[u8], hundreds: u8) {
    let barriers = 100 * u32::from(hundreds);
    for &nodes in sizes {
        let (board, ends) = run(microbit, nodes, hundreds, 0, None);
        assert!(ends.iter().all(|end| *end == End::Done), "{ends:?}");
        assert!(
            board.passed.iter().all(|&times| times == barriers),
            "{:?}",
            board.passed
        );
        let entered = 2 * u32::from(nodes) + barriers;
        assert!(
            board.entered.iter().all(|&times| times == entered),
            "{:?}",
            board.entered
        );
        assert_eq!(
            board.wires, 0,
            "an even number of barriers brings all wires back"
        );
    }
}

#[test]
#[ignore = "long: cargo xtask test --long"]
fn emulated_microcontrollers_pass_more_barriers() {
    if let Some(microbit) = microbit() {
        all_pass(&microbit, &[1, 2, 4], 2);
    }
}

#[test]
fn emulated_microcontrollers_pass_barriers_and_none_leaves_early() {
    let Some(microbit) = microbit() else {
        return;
    };
    all_pass(&microbit, &[1, 3], 1);
    // Both nodes detect a cut wire before they pass a barrier.
    let (board, ends) = run(&microbit, 2, 2, 20, Some(1));
    assert_eq!(board.passed, [0, 0]);
    for end in ends {
        let End::Stopped(text) = end else {
            panic!("a node was content with a wire that is cut");
        };
        println!("{}", text.trim());
        assert!(text.contains("SelfTest") || text.contains("Late"), "{text}");
    }
}

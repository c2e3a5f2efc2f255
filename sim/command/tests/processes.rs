//! Tests of the live board between real processes, some of which are killed.

use barrier_board::event::What;
use barrier_board::live::{Board, Memory, Wires};
use barrier_driver::ToggleBarrier;
use std::convert::Infallible;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const HWBARR: &str = env!("CARGO_BIN_EXE_hwbarr");
const LIMIT: Duration = Duration::from_secs(30);

fn live(arguments: &[&str]) -> String {
    let output = Command::new(HWBARR)
        .arg("live")
        .args(arguments)
        .output()
        .expect("hwbarr starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn processes_pass_200_barriers_with_exactly_200_releases() {
    for nodes in ["2", "7", "60"] {
        let said = live(&["--nodes", nodes, "--barriers", "200"]);
        assert!(
            said.contains("200 releases counted by the machine, 0 of them"),
            "{said}"
        );
    }
}

#[test]
fn sixty_processes_pass_the_self_test_and_are_counted_in_the_waveform() {
    let folder = tempfile::tempdir().expect("a folder");
    let dump = folder.path().join("sixty.vcd");
    let said = live(&[
        "-n",
        "60",
        "-k",
        "20",
        "--self-test",
        "-o",
        dump.to_str().expect("UTF-8"),
    ]);
    assert!(
        said.contains("24 releases counted by the machine, 4 of them in the self-test"),
        "{said}"
    );
    // In each barrier each wire changes once, and there is one release. The self-test has no marks.
    assert!(
        said.contains(&format!("({} changes and marks)", 24 * 61 + 20 * 120)),
        "{said}"
    );
    assert!(dump.with_extension("gtkw").exists());
}

#[test]
fn all_processes_read_what_one_has_found_in_each_round() {
    for nodes in ["1", "2", "7", "60"] {
        let said = live(&["--nodes", nodes, "--barriers", "120", "--eureka"]);
        let heard = format!(
            "each time one process raised the eureka line and read that it was first, and all {nodes} read the line high\n"
        );
        assert!(
            said.contains("120 releases counted by the machine") && said.ends_with(&heard),
            "{said}"
        );
    }
}

/// A process that passes barriers until it is killed, by the test or at the end of the test.
struct Node(Child);

impl Node {
    fn spawn(memory: &Memory, node: usize) -> Self {
        let fd = memory.as_fd().as_raw_fd().to_string();
        let mut command = Command::new(HWBARR);
        command.args([
            "node",
            "--fd",
            &fd,
            "--nodes",
            "2",
            "--node",
            &node.to_string(),
            "--barriers",
            "1000000000",
        ]);
        Self(
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("hwbarr starts"),
        )
    }

    /// Waits until the process reports that it is in its fence.
    fn read_answer(&mut self) {
        self.0
            .stdout
            .as_mut()
            .expect("a pipe")
            .read_exact(&mut [0])
            .expect("the node is in its fence");
    }

    fn let_go(&mut self) {
        self.0
            .stdin
            .as_mut()
            .expect("a pipe")
            .write_all(b".")
            .expect("the node waits");
    }

    fn kill(&mut self) {
        self.0.kill().expect("SIGKILL");
        self.0.wait().expect("it is gone");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Passes barriers with both nodes in this process; the wires' earlier owners were killed.
fn pass_in_this_process(board: &Board<'_>, barriers: u64) {
    // The killed processes may have left a barrier in which all nodes have
    // entered but that no process has released. Reading both wires releases it.
    let mut nodes: Vec<_> = (0..2)
        .map(|node| {
            let Wires { out, input, .. } = board.wires(node, |_| ()).expect("the owner is dead");
            ToggleBarrier::open(out, input, || Ok::<_, Infallible>(()))
                .expect("no process drives a wire")
        })
        .collect();
    let before = board.releases();
    for _ in 0..barriers {
        nodes
            .iter_mut()
            .for_each(|node| node.enter().expect("out of the barrier"));
        nodes.iter_mut().for_each(|node| {
            node.wait(std::thread::yield_now, LIMIT)
                .expect("all have entered")
        });
    }
    assert_eq!(board.releases() - before, barriers);
}

#[test]
fn a_process_killed_at_any_instant_leaves_the_board_working_and_the_record_whole() {
    let memory = Memory::create(Board::layout_size(2, 2_000_000)).expect("memory");
    let board = memory.init(2, 2_000_000).expect("fits");
    for round in 0..25u64 {
        let mut nodes = [Node::spawn(&memory, 0), Node::spawn(&memory, 1)];
        for _fence in ["open", "start"] {
            nodes.iter_mut().for_each(Node::read_answer);
            nodes.iter_mut().for_each(Node::let_go);
        }
        // The process is killed after many commits, even if processes wait for cores;
        // the odd factor varies the time of the kill.
        let (before, enough) = (board.releases(), 50 + round * 7919 % 300);
        let deadline = Instant::now() + LIMIT;
        while board.releases() - before < enough {
            assert!(Instant::now() < deadline, "{:?}", board.snapshot());
            std::thread::sleep(Duration::from_micros(20 + round));
        }
        let victim = (round % 2) as usize;
        nodes[victim].kill();
        let at_death = board.snapshot();
        // The survivor may complete the barrier that the dead node entered;
        // it then waits for the dead node.
        std::thread::sleep(Duration::from_millis(2));
        let later = board.snapshot();
        assert!(
            later.releases - at_death.releases <= 1,
            "{at_death:?} {later:?}"
        );
        assert!(later.outputs == 0 || later.outputs == 0b11, "{later:?}");
        nodes[1 - victim].kill();
        pass_in_this_process(&board, 3);
    }
    // The record contains all events that the killed processes committed,
    // in order and without a gap.
    let record = board.record();
    let (mut wires, mut output, mut last) = ([false; 2], false, 0);
    for event in &record.events {
        assert!(event.at_ns >= last, "{event:?} after {last}");
        last = event.at_ns;
        match event.what {
            What::Wire { node, high } => {
                assert_ne!(std::mem::replace(&mut wires[node], high), high, "{event:?}");
            }
            What::Release { high } => {
                assert_ne!(std::mem::replace(&mut output, high), high, "{event:?}");
                assert_eq!(wires, [high; 2], "released before all had entered");
            }
            What::Enter { .. } | What::Leave { .. } | What::Down { .. } | What::Say { .. } => {}
        }
    }
    let events = record.events.len();
    assert!(
        events > 25 * 100,
        "only {events} events: the nodes were killed before they worked"
    );
}

#[test]
fn a_living_process_keeps_its_wires() {
    let memory = Memory::create(Board::layout_size(2, 0)).expect("memory");
    let board = memory.init(2, 0).expect("fits");
    let mut node = Node::spawn(&memory, 1);
    node.read_answer();
    let refused = board.wires(1, |_| ()).err().map(|e| e.to_string());
    assert_eq!(
        refused,
        Some(format!(
            "the wires of node 1 are in use by process {}",
            node.0.id()
        ))
    );
    node.kill();
    assert!(board.wires(1, |_| ()).is_ok());
}

//! Tests of commands that start at one edge of a barrier, on the simulator's board and on each port that `hwbarr emulate` emulates.

use std::collections::BTreeSet;
use std::process::{Command, Output};

const HWBARR: &str = env!("CARGO_BIN_EXE_hwbarr");

fn hwbarr(arguments: &[&str]) -> Output {
    let started = Command::new(HWBARR).args(arguments).output();
    started.expect("hwbarr starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn commands_start_together_and_know_their_node_and_the_release() {
    let folder = tempfile::tempdir().expect("a folder");
    let epochs = folder.path().join("epochs");
    let output = hwbarr(&[
        "together",
        "--nodes",
        "4",
        "--epoch",
        epochs.to_str().expect("UTF-8"),
        "--",
        "sh",
        "-c",
        "echo \"$HWBARR_NODE $HWBARR_EPOCH_NS $HWBARR_MONOTONIC_NS\"",
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let file = std::fs::read_to_string(&epochs).expect("the clocks");
    let clocks: BTreeSet<&str> = file.lines().collect();
    assert_eq!(clocks.len(), 4, "{file}");
    // Each command prints the line that its node has written to the file.
    let printed: BTreeSet<&str> = said
        .lines()
        .filter(|l| l.split(' ').all(|w| w.parse::<u64>().is_ok()))
        .collect();
    assert_eq!(printed, clocks, "{said}");
    let monotonic = |line: &str| line.rsplit(' ').next()?.parse::<u64>().ok();
    let times: Vec<u64> = clocks.iter().filter_map(|line| monotonic(line)).collect();
    let apart = times.iter().max().zip(times.iter().min());
    let apart = apart.map(|(last, first)| last - first).expect("four times");
    let sentence = format!(
        "4 nodes left the barrier within {:.3} us, node ",
        apart as f64 / 1e3
    );
    assert!(said.contains(&sentence), "{said}");
}

#[test]
fn a_command_that_fails_or_does_not_exist_is_named() {
    let output = hwbarr(&["together", "-n", "2", "--", "sh", "-c", "exit $HWBARR_NODE"]);
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(said.contains("the command of node 1 failed"), "{said}");
    let output = hwbarr(&["together", "-n", "2", "--", "/nowhere/command"]);
    assert!(!output.status.success());
    let said = text(&output.stderr);
    assert!(
        said.contains("/nowhere/command cannot be started"),
        "{said}"
    );
    // The failing node has not entered the barrier, so no node has left it.
    assert_eq!(text(&output.stdout), "");
}

/// A job of CI sees the status of the command that it tests, such as mpirun's for a hang.
#[test]
fn the_exit_status_of_a_command_is_that_of_hwbarr() {
    let code = |arguments: &[&str]| hwbarr(arguments).status.code();
    let emulated = |script| code(&["emulate", "mem", "--", "sh", "-c", script]);
    assert_eq!(emulated("exit 0"), Some(0));
    assert_eq!(emulated("exit 125"), Some(125));
    assert_eq!(emulated("kill -KILL $$"), Some(128 + 9));
    let script = "exit $((7 * HWBARR_NODE))";
    let together = code(&["together", "-n", "2", "--", "sh", "-c", script]);
    assert_eq!(together, Some(7));
}

/// Processes represent hosts; each has the port of its node.
fn start_at_ports_of_their_own(kind: &str, releases: &[&str]) {
    let script = "for node in 0 1 2; do\n\
                  \"$0\" together --port \"$HWBARR_PORT\" --node $node -- sh -c 'echo started $HWBARR_NODE' &\n\
                  done\n\
                  wait\n";
    let output = hwbarr(&[
        "emulate", kind, "--nodes", "3", "--", "sh", "-c", script, HWBARR,
    ]);
    let errors = text(&output.stderr);
    if errors.contains("cannot be mounted") || errors.contains("cannot be supervised") {
        eprintln!("SKIPPED: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let said = text(&output.stdout);
    for node in 0..3 {
        assert!(said.contains(&format!("started {node}\n")), "{said}");
    }
    // One release when all nodes are ready, and one release that starts the commands.
    let ends = |count: &&str| said.ends_with(&format!("has released {count} times\n"));
    assert!(releases.iter().any(ends), "{said}");
}

#[test]
fn nodes_at_mapped_registers_start_together() {
    start_at_ports_of_their_own("mem", &["2"]);
    let output = hwbarr(&["together", "--port", "mem:block,node={rank}", "--", "true"]);
    let said = text(&output.stderr);
    assert!(
        said.contains("--node chooses one of them for {rank}"),
        "{said}"
    );
}

#[test]
fn nodes_at_registers_with_interrupts_start_together() {
    start_at_ports_of_their_own("uio", &["2"]);
}

#[test]
fn nodes_at_parallel_ports_start_together() {
    start_at_ports_of_their_own("ppdev", &["2"]);
}

/// Lines that no program drives float high: all wires are then high, which is a release before the first command.
#[test]
fn nodes_at_gpio_chips_start_together() {
    start_at_ports_of_their_own("gpio", &["3"]);
}

#[test]
fn an_emulation_that_cannot_be_had_is_refused_in_one_sentence() {
    let refused = |arguments: &[&str]| {
        let output = hwbarr(arguments);
        assert!(!output.status.success());
        assert_eq!(text(&output.stdout), "");
        text(&output.stderr)
    };
    assert_eq!(
        refused(&["emulate", "gpio"]),
        "hwbarr: gpio is emulated for a command and what it starts: give one after --, such as -- sh\n"
    );
    assert_eq!(
        refused(&["emulate", "ppdev", "--groups", "2", "--", "true"]),
        "hwbarr: --groups and --file are for a register block: mem or uio\n"
    );
    assert_eq!(
        refused(&["emulate", "ppdev", "--nodes", "65", "--", "true"]),
        "hwbarr: a barrier of 65 nodes cannot be built: it has 1 to 64 wire pairs\n"
    );
}

/// The device is removed after the command, also if a signal ends it.
#[test]
fn a_terminated_emulation_ends_its_command_and_removes_its_files() {
    let place = tempfile::tempdir().expect("a folder");
    let mut emulation = Command::new(HWBARR)
        .args(["emulate", "mem", "--nodes", "2", "--"])
        .args(["sh", "-c", "echo started; exec sleep 60"])
        .env("TMPDIR", place.path())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("hwbarr starts");
    let out = emulation.stdout.take().expect("a pipe");
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(out));
    assert!(lines.any(|line| line.is_ok_and(|line| line == "started")));
    assert!(std::fs::read_dir(place.path()).expect("a folder").count() > 0);
    let pid = rustix::process::Pid::from_child(&emulation);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let status = emulation.wait().expect("it ends");
    // SIGTERM has also killed the command.
    assert_eq!(status.code(), Some(128 + 15));
    assert_eq!(
        std::fs::read_dir(place.path()).expect("a folder").count(),
        0
    );
}

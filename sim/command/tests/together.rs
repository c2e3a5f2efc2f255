//! Tests of commands that start at one edge of a barrier, on the emulated register block.

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

/// Two processes act as two hosts; each has the name of a real port.
#[test]
fn nodes_at_ports_of_their_own_start_together() {
    let script = "for node in 0 1 2; do\n\
                  \"$0\" together --port \"$HWBARR_PORT\" --node $node -- sh -c 'echo started $HWBARR_NODE' &\n\
                  done\n\
                  wait\n";
    let output = hwbarr(&[
        "emulate", "mem", "--nodes", "3", "--", "sh", "-c", script, HWBARR,
    ]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    for node in 0..3 {
        assert!(said.contains(&format!("started {node}\n")), "{said}");
    }
    // The block counts two releases:
    // one when all nodes are ready, and one that starts the commands.
    assert!(said.contains("the block has released 2 times"), "{said}");
    let output = hwbarr(&["together", "--port", "mem:block,node={rank}", "--", "true"]);
    let said = text(&output.stderr);
    assert!(
        said.contains("--node chooses one of them for {rank}"),
        "{said}"
    );
}

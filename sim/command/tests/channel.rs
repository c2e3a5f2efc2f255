//! Test of two nodes that beat on a channel of a served version 2 board, until one of them dies.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

const HWBARR: &str = env!("CARGO_BIN_EXE_hwbarr");

/// A child process that is killed when the test ends or fails.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Both calls fail only for a process that has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server with a board of two nodes; returns the process, its output and the address.
fn board() -> (Running, BufReader<ChildStdout>, String) {
    let mut server = Command::new(HWBARR);
    server.args(["serve", "--channels", "-n", "2", "-l", "127.0.0.1:0"]);
    let mut server = server.stdout(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(server.stdout.take().expect("a pipe"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    let address = line.trim_end().rsplit(' ').next().unwrap_or_default();
    (Running(server), lines, address.to_owned())
}

fn node(board: &str, node: usize, arguments: &[&str]) -> Command {
    let mut command = Command::new(HWBARR);
    command.args(["channel", arguments[0]]);
    command.arg(format!("{board},node={node}"));
    command.args(&arguments[1..]);
    command
}

fn text(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{err}[{}]", output.status)
}

const BEAT: [&str; 6] = ["beat", "2", "--members", "0-1", "--every", "10ms"];

#[test]
fn nodes_beat_and_leave_the_channel_free() {
    let (_server, _log, board) = board();
    let beats = [&BEAT[..], &["--beats", "5"]].concat();
    let other = node(&board, 1, &beats).stdout(Stdio::piped()).spawn();
    let other = other.expect("it starts");
    let first = node(&board, 0, &beats).output().expect("it starts");
    let other = other.wait_with_output().expect("it ends");
    for said in [text(&first), text(&other)] {
        assert!(
            said.contains("the channel is free") || said.contains("another node has freed"),
            "{said}"
        );
        assert!(said.contains("exit status: 0"), "{said}");
    }
    let listed = text(&node(&board, 0, &["list"]).output().expect("it starts"));
    assert!(listed.contains("channel 2: free\n"), "{listed}");
}

/// As configured, the survivor's command ends or continues. Then a new pair can take the channel.
#[test]
fn the_survivor_of_two_nodes_learns_which_node_is_silent_and_frees_their_channel() {
    for (what, succeeds, sentence) in [
        ("end", false, "the command was ended"),
        ("go-on", true, "the command goes on"),
    ] {
        let (_server, _log, board) = board();
        let limits = [&BEAT[..], &["--limit", "1s"]].concat();
        let mut dies = Running(node(&board, 1, &limits).spawn().expect("it starts"));
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("UTF-8");
        // The command starts after the first member has taken the channel;
        // the other node dies afterwards.
        let script = format!("echo begun > {path}; exec sleep 2");
        let more = ["--on-silence", what, "--", "sh", "-c", &script];
        let arguments = [&limits[..], &more].concat();
        let mut survivor = node(&board, 0, &arguments);
        let survivor = survivor.stdout(Stdio::piped()).stderr(Stdio::piped());
        let survivor = survivor.spawn().expect("it starts");
        while std::fs::read_to_string(path).expect("the file").is_empty() {
            std::thread::yield_now();
        }
        dies.0.kill().expect("it runs");
        let survivor = survivor.wait_with_output().expect("it ends");
        let said = text(&survivor);
        assert_eq!(survivor.status.success(), succeeds, "{said}");
        assert!(
            said.contains("node 1 of channel 2 has not beaten"),
            "{said}"
        );
        assert!(said.contains(sentence), "{said}");
        let listed = text(&node(&board, 1, &["list"]).output().expect("it starts"));
        assert!(listed.contains("channel 2: free\n"), "{listed}");
    }
}

#[test]
fn a_channel_of_ended_nodes_is_freed_when_its_other_members_are_named() {
    let (_server, _log, board) = board();
    let free = |dead: &str| {
        let output = node(&board, 0, &["free", "0", "--dead", dead]).output();
        text(&output.expect("it starts"))
    };
    let refused = free("0");
    assert!(
        refused.contains("--dead names node 0: all members but this node have to be named"),
        "{refused}"
    );
    let freed = free("1");
    assert!(
        freed.starts_with("channel 0 of nodes 0 and 1 is free\n"),
        "{freed}"
    );
    assert!(free("1").starts_with("channel 0 is free already\n"));
}

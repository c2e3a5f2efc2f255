//! Tests of `hwbarr serve` with real processes: on this host, and on several hosts made of network
//! namespaces.

mod hosts;
mod processes;

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const HWBARR: &str = env!("CARGO_BIN_EXE_hwbarr");
/// Time limit of a step, far longer than any step of these tests takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A process that is killed when the test ends or fails.
struct Process {
    child: Child,
}

impl Process {
    fn start(command: &mut Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn();
        let program = command.get_program().to_owned();
        Self {
            child: child.unwrap_or_else(|e| panic!("{program:?} starts: {e}")),
        }
    }

    fn output(&mut self) -> ChildStdout {
        self.child.stdout.take().expect("a pipe")
    }

    fn input(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("a pipe")
    }

    /// Waits until the process has ended; the test fails if the process did not succeed.
    fn ends_well(&mut self) {
        let begin = Instant::now();
        loop {
            match self.child.try_wait().expect("it is ours") {
                Some(status) => return assert!(status.success(), "{status}"),
                None => assert!(begin.elapsed() < LIMIT, "it does not end"),
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(&mut self) {
        // Both calls fail only for a process that has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A server process, and the log that it prints.
struct Server {
    process: Process,
    said: Lines<BufReader<ChildStdout>>,
    log: Vec<String>,
}

impl Server {
    /// Starts `hwbarr serve` with these arguments.
    /// `command` starts `hwbarr`, either directly or through another command.
    fn start(mut command: Command, arguments: &[&str]) -> Self {
        let mut process = Process::start(command.args(["serve"]).args(arguments));
        let said = BufReader::new(process.output()).lines();
        Self {
            process,
            said,
            log: Vec::new(),
        }
    }

    /// Reads the log until a line contains `what`; returns that line.
    fn says(&mut self, what: &str) -> String {
        for line in self.said.by_ref() {
            let line = line.expect("UTF-8");
            self.log.push(line.clone());
            if line.contains(what) {
                return line;
            }
        }
        panic!("the server has ended without {what:?}: {:#?}", self.log);
    }

    fn counted(&self, what: &str) -> usize {
        self.log.iter().filter(|line| line.contains(what)).count()
    }
}

/// The node processes of a board; this process serves their software fences.
struct Nodes(Vec<(Process, ChildStdin, ChildStdout)>);

impl Nodes {
    /// Starts node `n` with `commands[n]`, followed by the arguments of `hwbarr`.
    fn start(commands: Vec<Command>, board: &str, barriers: &str) -> Self {
        let nodes = commands.len().to_string();
        let start = |(node, mut command): (usize, Command)| {
            command.args(["node", "--board", board, "--nodes", &nodes]);
            command.args(["--node", &node.to_string(), "--barriers", barriers]);
            let mut process = Process::start(&mut command);
            let (to, from) = (process.input(), process.output());
            (process, to, from)
        };
        Self(commands.into_iter().enumerate().map(start).collect())
    }

    /// Performs one software fence: waits until all nodes are in it, then releases them.
    fn fence(&mut self) {
        for (_, _, from) in &mut self.0 {
            let mut word = [0];
            from.read_exact(&mut word).expect("the node lives");
            assert_eq!(&word, b".");
        }
        for (_, to, _) in &mut self.0 {
            to.write_all(b".").expect("the node waits");
        }
    }

    /// Waits until all nodes have passed their barriers and ended.
    fn end(mut self) {
        for (process, _, from) in &mut self.0 {
            let mut elapsed = [0; 9];
            from.read_exact(&mut elapsed).expect("the node lives");
            assert_eq!(elapsed[0], b'T');
            process.ends_well();
        }
    }
}

fn hwbarr() -> Command {
    Command::new(HWBARR)
}

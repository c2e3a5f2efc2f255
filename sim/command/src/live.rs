//! `hwbarr live`: starts processes that use a live board, and provides their software fence.

use crate::Failure;
use crate::node::{ELAPSED, FENCE};
use crate::wave::record_to;
use barrier_board::live::{Board, Memory};
use barrier_board::served::{Address, BoardObserver, ConnectError};
use barrier_waveform::wave_files::WaveFiles;
use barrier_waveform::words::counted;
use clap::Args;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// Run real processes on a live board and print how fast they pass barriers.
#[derive(Args)]
pub struct Live {
    /// Number of processes, 1 to 64; each is a node of the barrier.
    #[arg(short, long, default_value_t = 60)]
    nodes: usize,
    /// Number of barriers.
    #[arg(short = 'k', long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    barriers: u64,
    /// Use the board that `hwbarr serve` serves here, instead of one in shared memory; it must have as many nodes.
    #[arg(long, value_name = "sim:tcp://HOST:PORT")]
    board: Option<Address>,
    /// Record the wires and write the waveform here, a .vcd or, compressed, a .fst; beside it are a .gtkw for GTKWave and a .sucl for Surfer.
    #[arg(short, long, value_name = "FILE", conflicts_with = "board")]
    output: Option<PathBuf>,
    /// Maximum number of recorded events.
    #[arg(long, value_name = "EVENTS", default_value_t = 1_000_000)]
    record: usize,
    /// Run the self-test first: the first and the last node enter late on purpose, and no node may leave before.
    #[arg(long)]
    self_test: bool,
    /// Before each barrier one process, in turn, raises the eureka line, and the others check that they read it high.
    #[arg(long)]
    eureka: bool,
}

/// A child process that is killed and reaped when dropped, so no failure leaves a process behind.
struct Process {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both calls fail only for a process that has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Live {
    pub fn execute(self) -> Result<(), Failure> {
        match &self.board {
            Some(server) => self.on_served(server),
            None => self.in_memory(),
        }
    }

    fn in_memory(&self) -> Result<(), Failure> {
        let files = self.output.as_deref().map(WaveFiles::named).transpose()?;
        let record = match files {
            Some(_) => self.record,
            None => 0,
        };
        let memory = Memory::create(Board::layout_size(self.nodes, record))?;
        let board = memory.init(self.nodes, record)?;
        let fd = memory.as_fd().as_raw_fd().to_string();
        let slowest = self.pass(["--fd", &fd])?;
        self.report(slowest, board.releases())?;
        match files {
            Some(files) => record_to(&files, &board.record()),
            None => Ok(()),
        }
    }

    fn on_served(&self, server: &Address) -> Result<(), Failure> {
        let mut observer = BoardObserver::connect(server)?;
        if observer.nodes() != self.nodes {
            return Err(ConnectError::NodeCount {
                server: server.clone(),
                theirs: observer.nodes(),
                ours: self.nodes,
            }
            .into());
        }
        let before = observer.look()?.board.releases;
        let slowest = self.pass(["--board", &server.to_string()])?;
        self.report(slowest, observer.look()?.board.releases - before)
    }

    /// Runs the processes of all nodes; `board` are the arguments that select the board.
    /// Returns the time of the slowest process.
    fn pass(&self, board: [&str; 2]) -> Result<Duration, Failure> {
        let mut processes = (0..self.nodes)
            .map(|node| self.spawn(board, node))
            .collect::<Result<Vec<_>, _>>()?;
        let slowest = serve_fences(&mut processes)?;
        for (node, process) in processes.iter_mut().enumerate() {
            let status = process.child.wait()?;
            if !status.success() {
                return Err(format!("node {node} failed: {status}").into());
            }
        }
        Ok(slowest)
    }

    fn report(&self, slowest: Duration, releases: u64) -> Result<(), Failure> {
        let tests = if self.self_test { 4 } else { 0 };
        let rate = self.barriers as f64 / slowest.as_secs_f64();
        crate::say(&format!(
            "{} passed {} in {slowest:.1?}\n\
             {} counted by the machine, {tests} of them in the self-test\n\
             {rate:.0} barriers/s, {:.1} us each\n",
            match self.nodes {
                1 => "1 process".to_owned(),
                nodes => format!("{nodes} processes"),
            },
            counted(self.barriers, "barrier"),
            counted(releases, "release"),
            1e6 / rate
        ))?;
        if self.eureka {
            crate::say(&format!(
                "each time one process raised the eureka line and read that it was first, and all {} read the line high\n",
                self.nodes
            ))?;
        }
        Ok(())
    }

    fn spawn(&self, board: [&str; 2], node: usize) -> Result<Process, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("node").args(board);
        command.args(["--nodes", &self.nodes.to_string()]);
        command.args([
            "--node",
            &node.to_string(),
            "--barriers",
            &self.barriers.to_string(),
        ]);
        command.args(self.self_test.then_some("--self-test"));
        command.args(self.eureka.then_some("--eureka"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|e| format!("cannot start node {node}: {e}"))?;
        match (child.stdin.take(), child.stdout.take()) {
            (Some(to), Some(from)) => Ok(Process { child, to, from }),
            _ => Err(format!("node {node} has no pipes").into()),
        }
    }
}

/// Answers the processes' fences until every process has reported the duration of its barriers.
/// Returns the longest duration.
fn serve_fences(processes: &mut [Process]) -> Result<Duration, Failure> {
    let mut slowest = Duration::ZERO;
    loop {
        let mut waiting = 0;
        for (node, process) in processes.iter_mut().enumerate() {
            let mut word = [0];
            match process.from.read_exact(&mut word) {
                Ok(()) if word == [FENCE] => waiting += 1,
                Ok(()) if word == [ELAPSED] => {
                    let mut ns = [0; 8];
                    process.from.read_exact(&mut ns)?;
                    slowest = slowest.max(Duration::from_nanos(u64::from_le_bytes(ns)));
                }
                Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                    return Err(format!("node {node} ended before the others had passed").into());
                }
                Err(e) => return Err(format!("cannot read the output of node {node}: {e}").into()),
                Ok(()) => return Err(format!("node {node} printed an unexpected line").into()),
            }
        }
        if waiting == 0 {
            return Ok(slowest);
        }
        for (node, process) in processes.iter_mut().enumerate() {
            process
                .to
                .write_all(&[FENCE])
                .map_err(|e| format!("node {node} has ended in the software fence: {e}"))?;
        }
    }
}

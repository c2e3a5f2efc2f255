//! Test support: real launches with a time limit, and a check that no process remains.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The time limit of a launch; the launches of these tests take less than a tenth of it.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// The environment variable that marks all processes of one launch.
const MARK: &str = "PORTCULLIS_TEST_LAUNCH";

/// Restores the default action of SIGINT and SIGHUP in this process, which its children inherit.
///
/// Background commands of a shell ignore SIGINT, and commands of nohup(1) SIGHUP; a shell that starts so cannot trap them.
fn hear_terminal() {
    for signal in [libc::SIGINT, libc::SIGHUP] {
        // SAFETY: SIG_DFL installs no handler, so no code of this process runs on the signal.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// One launch under test.
pub struct Launch {
    command: Command,
    mark: String,
}

impl Launch {
    pub fn new(args: &[&str]) -> Launch {
        Launch::of(Command::new(env!("CARGO_BIN_EXE_mpirun")), args)
    }

    /// Starts mpirun by another command, such as env(1), which replaces itself by mpirun.
    pub fn by(starter: &[&str], args: &[&str]) -> Launch {
        let mut command = Command::new(starter[0]);
        command
            .args(&starter[1..])
            .arg(env!("CARGO_BIN_EXE_mpirun"));
        Launch::of(command, args)
    }

    fn of(mut command: Command, args: &[&str]) -> Launch {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        hear_terminal();
        let mark = format!(
            "{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        command
            .args(args)
            .env(MARK, &mark)
            .env_remove("MPIEXEC_TIMEOUT")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Launch { command, mark }
    }

    pub fn env(mut self, name: &str, value: &str) -> Launch {
        self.command.env(name, value);
        self
    }

    /// Redirects standard output to a file.
    pub fn stdout(mut self, to: std::fs::File) -> Launch {
        self.command.stdout(to);
        self
    }

    /// Runs the launch to its end with this input, and checks that no process remains.
    pub fn run_with_input(mut self, input: &str) -> Done {
        let mut child = self.command.stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        finish(child, &self.mark)
    }

    /// Runs the launch to its end, and checks that no process remains.
    pub fn run(mut self) -> Done {
        finish(self.command.spawn().unwrap(), &self.mark)
    }

    /// Starts the launch and waits for `lines` lines on standard output.
    pub fn start(mut self, lines: usize) -> Running {
        let mut child = self.command.spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut seen = Vec::new();
        for _ in 0..lines {
            let mut line = String::new();
            assert!(
                reader.read_line(&mut line).unwrap() > 0,
                "ended early: {seen:?}"
            );
            seen.push(line.trim_end().to_string());
        }
        Running {
            child,
            lines: seen,
            mark: self.mark,
            reader: Some(reader),
        }
    }
}

/// A launch in progress.
pub struct Running {
    child: Child,
    /// The lines of standard output that were read at the start.
    pub lines: Vec<String>,
    mark: String,
    reader: Option<BufReader<std::process::ChildStdout>>,
}

impl Running {
    pub fn mpirun(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn signal_mpirun(&self, signal: i32) {
        kill(self.mpirun(), signal);
    }

    /// Closes the reading end of standard output, as `| head` does.
    pub fn hang_up(&mut self) {
        self.reader = None;
    }

    /// Waits for the end, and checks that no process remains.
    pub fn end(self) -> Done {
        finish(self.child, &self.mark)
    }
}

/// The result of a completed launch.
#[derive(Debug)]
pub struct Done {
    /// The exit code as a shell reports it.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Done {
    /// Returns the lines of standard output, sorted, since the order of ranks is undefined.
    pub fn sorted(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.stdout.lines().collect();
        lines.sort_unstable();
        lines
    }
}

fn finish(mut child: Child, mark: &str) -> Done {
    let begin = Instant::now();
    // Threads drain the output, since a launch with full pipes could not end.
    let out = child.stdout.take().map(drain);
    let err = child.stderr.take().map(drain);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            let left = marked(mark);
            left.iter().for_each(|(pid, _)| kill(*pid, libc::SIGKILL));
            let _ = child.wait();
            panic!("mpirun did not end; these ran: {left:?}");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    nothing_is_left(mark);
    let text = |thread: Option<std::thread::JoinHandle<Vec<u8>>>| {
        let bytes = thread.map_or_else(Vec::new, |thread| thread.join().unwrap());
        String::from_utf8_lossy(&bytes).into_owned()
    };
    Done {
        code: status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap_or(0)),
        stdout: text(out),
        stderr: text(err),
    }
}

fn drain(mut from: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}

/// Checks that no process of the launch remains; waits up to 3 s.
fn nothing_is_left(mark: &str) {
    let begin = Instant::now();
    loop {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        if begin.elapsed() > Duration::from_secs(3) {
            left.iter().for_each(|(pid, _)| kill(*pid, libc::SIGKILL));
            panic!("left behind: {left:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the processes of a launch, which have the mark in their environment.
fn marked(mark: &str) -> Vec<(i32, String)> {
    let wanted = format!("{MARK}={mark}");
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| {
            let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
            let environ = std::fs::read(entry.path().join("environ")).ok()?;
            let ours = environ
                .split(|&byte| byte == 0)
                .any(|pair| pair == wanted.as_bytes());
            let name = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            ours.then(|| (pid, name.replace('\0', " ")))
        })
        .collect()
}

pub fn kill(pid: i32, signal: i32) {
    // SAFETY: kill has no memory effects.
    unsafe { libc::kill(pid, signal) };
}

/// Returns the pid of a process's parent.
pub fn parent_of(pid: i32) -> i32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let after_name = stat.rsplit(')').next().unwrap();
    after_name
        .split_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

/// Creates a command for `--launch-agent` that replaces ssh and starts all daemons on this host.
pub fn agent(folder: &Path) -> String {
    let agent = folder.join("agent");
    bounded::write_program(&agent, "#!/bin/sh\nshift; exec sh -c \"$1\"\n").unwrap();
    agent.display().to_string()
}

/// Returns MPICH's prefix from the environment; without it prints that the test is skipped.
pub fn mpich() -> Option<PathBuf> {
    let dir = std::env::var_os("PORTCULLIS_TEST_MPICH").map(PathBuf::from);
    let found = dir.filter(|dir| dir.join("bin/mpiexec.hydra").is_file());
    if found.is_none() {
        eprintln!(
            "SKIPPED: needs MPICH; set PORTCULLIS_TEST_MPICH to the directory of its bin and lib"
        );
    }
    found
}

/// Runs a program with a time limit.
pub fn run_bounded(command: &mut Command) -> Output {
    let mut child = command
        // The program may be hydra, which must not reach the end of standard input.
        .stdin(bounded::silence())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let out = drain(child.stdout.take().unwrap());
    let err = drain(child.stderr.take().unwrap());
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if begin.elapsed() > PATIENCE {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{command:?} did not end");
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    Output {
        status,
        stdout: out.join().unwrap(),
        stderr: err.join().unwrap(),
    }
}

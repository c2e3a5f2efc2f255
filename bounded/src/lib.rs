//! Running other programs: to their end, within a time, leaving nothing behind.
//!
//! A program runs in a process group of its own, its output goes to memory files, and its end is heard from its pidfd,
//! so that the time it took is right to the scheduler's precision.
//! Whoever waits does so within a limit; what takes longer is asked to end and then killed, the whole group.
//! Used by `cargo xtask`, by the tests, and by `mpi-bench`, which starts other libraries' launchers.
#![warn(missing_docs)]

use std::ffi::OsStr;
use std::fmt;
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process_group, set_parent_process_death_signal,
    test_kill_process_group,
};

/// How a program ended, and everything it said.
#[derive(Debug)]
pub struct Outcome {
    /// Its exit code, or the signal that ended it.
    pub status: ExitStatus,
    /// What it wrote there; bytes that are no text are replaced.
    pub stdout: String,
    /// The same of its other output.
    pub stderr: String,
    /// From its start to its end, as its pidfd told it.
    pub took: Duration,
}

/// Why a program did not end well.
#[derive(Debug)]
pub enum ProcessError {
    /// It did not begin to run.
    Start {
        /// Its path or name.
        program: String,
        /// What the system says.
        reason: std::io::Error,
    },
    /// There was nowhere to keep what it would say.
    Output {
        /// Its path or name.
        program: String,
        /// What the system says.
        reason: std::io::Error,
    },
    /// It took longer than it may and was ended, with its whole process group.
    TimedOut {
        /// Its path or name.
        program: String,
        /// The limit.
        after: Duration,
        /// What it had said until then.
        stdout: String,
        /// The same of its other output.
        stderr: String,
    },
    /// It ended by itself, and not with 0.
    Failed {
        /// Its path or name.
        program: String,
        /// Its exit code, or the signal that ended it.
        status: ExitStatus,
        /// What it said about it.
        stderr: String,
    },
}

impl fmt::Display for ProcessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start { program, reason } => write!(f, "cannot start {program}: {reason}"),
            Self::Output { program, reason } => {
                write!(f, "cannot keep the output of {program}: {reason}")
            }
            Self::TimedOut {
                program,
                after,
                stdout,
                stderr,
            } => write!(
                f,
                "{program} was stopped after {:.1} s{}{}",
                after.as_secs_f64(),
                quoted("it printed", stdout),
                quoted("it complained", stderr)
            ),
            Self::Failed {
                program,
                status,
                stderr,
            } => {
                write!(
                    f,
                    "{program} ended with {status}{}",
                    quoted("it complained", stderr)
                )
            }
        }
    }
}

impl std::error::Error for ProcessError {}

/// The last lines of what was said, or nothing.
fn quoted(how: &str, said: &str) -> String {
    let lines: Vec<&str> = said.trim_end().lines().collect();
    let last = &lines[lines.len().saturating_sub(15)..];
    if last.is_empty() {
        String::new()
    } else {
        format!("\n{how}:\n{}", last.join("\n"))
    }
}

/// The command as a user would type it.
pub fn spelled(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Runs with our own terminal; anything but success is an error.
pub fn run(command: &mut Command) -> Result<(), ProcessError> {
    let program = spelled(command);
    let status = command.status().map_err(|reason| ProcessError::Start {
        program: program.clone(),
        reason,
    })?;
    if status.success() {
        Ok(())
    } else {
        Err(ProcessError::Failed {
            program,
            status,
            stderr: String::new(),
        })
    }
}

/// Runs and captures; anything but success within `limit` is an error.
pub fn output(command: &mut Command, limit: Duration) -> Result<Outcome, ProcessError> {
    let program = spelled(command);
    let outcome = Running::start(command)?.wait(limit)?;
    if outcome.status.success() {
        Ok(outcome)
    } else {
        Err(ProcessError::Failed {
            program,
            status: outcome.status,
            stderr: outcome.stderr,
        })
    }
}

/// A standard input that neither says anything nor ends before the program does, if whoever started it keeps the [`Child`], as [`Running`] does.
///
/// MPICH's `mpiexec.hydra` needs one. It reads its input as soon as it has started its proxy, and hands even the end of it on, through a socket pair;
/// if a short job is over by then, as happens on a busy machine, nobody holds the other end, and SIGPIPE ends hydra before it has printed what the job said.
/// What is never readable is never handed on.
pub fn silence() -> Stdio {
    Stdio::piped()
}

/// A program that runs in a process group of its own, with its output kept in memory files:
/// a pipe could be held open by a stray process and keep us waiting for ever.
#[derive(Debug)]
pub struct Running {
    program: String,
    child: Child,
    stdout: File,
    stderr: File,
    begin: Instant,
}

impl Running {
    /// Starts the program, which has the standard input that the command says, or ours.
    pub fn start(command: &mut Command) -> Result<Self, ProcessError> {
        let program = spelled(command);
        let failed = |reason| ProcessError::Output {
            program: program.clone(),
            reason,
        };
        let (stdout, stdout_copy) = memory_file().map_err(failed)?;
        let (stderr, stderr_copy) = memory_file().map_err(failed)?;
        command
            .stdout(stdout_copy)
            .stderr(stderr_copy)
            .process_group(0);
        if is_main_thread() {
            // A group of its own does not hear of our end by the terminal, so the kernel tells it.
            // It does so when the thread that started the program ends, and only the main one lasts as long as we do.
            // SAFETY: between fork and exec there is one system call on plain numbers.
            unsafe {
                command.pre_exec(|| {
                    set_parent_process_death_signal(Some(Signal::TERM)).map_err(Into::into)
                });
            }
        }
        let begin = Instant::now();
        let child = spawn(command).map_err(|reason| ProcessError::Start {
            program: program.clone(),
            reason,
        })?;
        Ok(Self {
            program,
            child,
            stdout,
            stderr,
            begin,
        })
    }

    /// The process, which is also its group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it printed up to now.
    pub fn stdout_so_far(&self) -> String {
        contents(&self.stdout)
    }

    /// What it complained about up to now.
    pub fn stderr_so_far(&self) -> String {
        contents(&self.stderr)
    }

    /// Waits for the end, whatever it is; after `limit` the whole group is stopped.
    pub fn wait(self, limit: Duration) -> Result<Outcome, ProcessError> {
        self.wait_while(|elapsed| elapsed < limit)
    }

    /// Waits for the end, whatever it is, as long as `patient` says, which is asked again and again; then the whole group is stopped.
    pub fn wait_while(
        mut self,
        mut patient: impl FnMut(Duration) -> bool,
    ) -> Result<Outcome, ProcessError> {
        let begin = self.begin;
        let ended = wait_until(&mut self.child, || !patient(begin.elapsed()));
        let took = self.begin.elapsed();
        let status = ended.map_err(|reason| ProcessError::Output {
            program: self.program.clone(),
            reason,
        })?;
        if status.is_none() {
            self.stop();
        }
        let (stdout, stderr) = (contents(&self.stdout), contents(&self.stderr));
        match status {
            Some(status) => Ok(Outcome {
                status,
                stdout,
                stderr,
                took,
            }),
            None => Err(ProcessError::TimedOut {
                program: std::mem::take(&mut self.program),
                after: took,
                stdout,
                stderr,
            }),
        }
    }

    /// Asks the group to end, then insists; comes back when the last of it has gone.
    fn stop(&mut self) {
        if let Some(group) = pid_of(&self.child) {
            for signal in [Signal::TERM, Signal::KILL] {
                // The group may be gone already; then nothing is left to stop.
                let _ = kill_process_group(group, signal);
                if self.outlast(group) {
                    break;
                }
            }
        }
        let _ = self.child.wait();
    }

    /// Waits until the group is gone, the leader first; says whether it went in time.
    fn outlast(&mut self, group: Pid) -> bool {
        const LEADER: Duration = Duration::from_secs(2);
        // Orphans follow their parent at once, or not at all;
        // some stay on the list as zombies until whoever inherits them looks.
        const ORPHANS: Duration = Duration::from_millis(200);
        let asked = Instant::now();
        let ended = wait_until(&mut self.child, || asked.elapsed() > LEADER);
        if matches!(ended, Ok(None)) {
            return false;
        }
        let orphaned = Instant::now();
        while test_kill_process_group(group).is_ok() {
            if orphaned.elapsed() > ORPHANS {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        true
    }
}

/// As long as this a program may still be open for writing after whoever wrote it has closed it.
const JUST_WRITTEN: Duration = Duration::from_secs(2);

/// Starts a program, also one that was written a moment ago.
///
/// Between another thread's fork and exec its child holds copies of all our open files, and the kernel runs no file that anybody may write
/// (`ETXTBSY`, execve(2)); so it is tried again for a while.
fn spawn(command: &mut Command) -> std::io::Result<Child> {
    let begin = Instant::now();
    loop {
        match command.spawn() {
            Err(reason)
                if reason.kind() == std::io::ErrorKind::ExecutableFileBusy
                    && begin.elapsed() < JUST_WRITTEN =>
            {
                std::thread::sleep(Duration::from_millis(5));
            }
            outcome => return outcome,
        }
    }
}

impl Drop for Running {
    /// A test that fails between start and wait leaves nothing running either.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

fn is_main_thread() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

/// An anonymous file, and a second handle of it for the child.
fn memory_file() -> std::io::Result<(File, Stdio)> {
    let file = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
    let copy = Stdio::from(file.try_clone()?);
    Ok((file, copy))
}

/// The whole text of a file that others may still be writing.
///
/// The position is shared with the writers, so reading uses its own.
fn contents(file: &File) -> String {
    use std::os::unix::fs::FileExt as _;
    let mut bytes = Vec::new();
    let mut chunk = [0; 65536];
    while let Ok(n @ 1..) = file.read_at(&mut chunk, bytes.len() as u64) {
        bytes.extend_from_slice(&chunk[..n]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for the child until somebody gives up, who is asked every ten milliseconds.
fn wait_until(
    child: &mut Child,
    mut give_up: impl FnMut() -> bool,
) -> std::io::Result<Option<ExitStatus>> {
    const ASK: Duration = Duration::from_millis(10);
    // Where the kernel has no pidfd (before 5.3) or a sandbox forbids it, looking often does nearly as well.
    let ended =
        pid_of(child).and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).ok());
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if give_up() {
            return Ok(None);
        }
        match &ended {
            Some(ended) => {
                let ask = Timespec {
                    tv_sec: 0,
                    tv_nsec: i64::from(ASK.subsec_nanos()),
                };
                // A signal only makes the round shorter.
                let _ = poll(&mut [PollFd::new(ended, PollFlags::IN)], Some(&ask));
            }
            None => {
                std::thread::sleep(pause);
                pause = (pause * 2).min(ASK);
            }
        }
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn silence_lasts_as_long_as_the_program() {
        for (input, said) in [(silence(), "124\n"), (Stdio::null(), "0\n")] {
            let mut command = shell("timeout 0.2 cat; echo $?");
            let running = Running::start(command.stdin(input)).unwrap();
            let outcome = running.wait(Duration::from_secs(60)).unwrap();
            assert_eq!(outcome.stdout, said);
        }
    }

    #[test]
    fn both_outputs_and_the_status_are_kept() {
        let outcome = Running::start(&mut shell("echo out; echo err >&2; exit 3")).unwrap();
        let outcome = outcome.wait(Duration::from_secs(10)).unwrap();
        assert_eq!(
            (outcome.stdout.as_str(), outcome.stderr.as_str()),
            ("out\n", "err\n")
        );
        assert_eq!(outcome.status.code(), Some(3));
    }

    #[test]
    fn a_program_that_somebody_still_has_open_for_writing_is_waited_for() {
        let path = std::env::temp_dir().join(format!("bounded-{}", std::process::id()));
        let mut file = File::create(&path).unwrap();
        file.write_all(b"#!/bin/sh\necho written\n").unwrap();
        file.set_permissions(PermissionsExt::from_mode(0o755))
            .unwrap();
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            drop(file);
        });
        let outcome = Running::start(&mut Command::new(&path))
            .and_then(|running| running.wait(Duration::from_secs(10)));
        std::fs::remove_file(&path).unwrap();
        writer.join().unwrap();
        assert_eq!(outcome.unwrap().stdout, "written\n");
    }

    #[test]
    fn reading_along_does_not_disturb_the_writer() {
        let running = Running::start(&mut shell("echo one; sleep 0.2; echo two")).unwrap();
        while running.stdout_so_far().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(
            running.wait(Duration::from_secs(10)).unwrap().stdout,
            "one\ntwo\n"
        );
    }

    #[test]
    fn a_stray_that_holds_the_output_does_not_keep_us_waiting() {
        let running = Running::start(&mut shell("sleep 30 & echo $!")).unwrap();
        let outcome = running.wait(Duration::from_secs(10)).unwrap();
        assert!(outcome.took < Duration::from_secs(10));
        let _ = run(&mut shell(&format!("kill {}", outcome.stdout.trim())));
    }

    #[test]
    fn what_takes_too_long_is_stopped_and_quoted() {
        let running = Running::start(&mut shell("echo started; sleep 60")).unwrap();
        let sentence = running
            .wait(Duration::from_millis(200))
            .unwrap_err()
            .to_string();
        assert!(
            sentence.contains("started") && sentence.contains("stopped after"),
            "{sentence}"
        );
    }

    #[test]
    fn a_child_that_does_not_listen_is_stopped_with_its_parent() {
        let script =
            "(trap '' TERM; echo $(exec sh -c 'echo $PPID'); while :; do sleep 1; done) & wait";
        let running = Running::start(&mut shell(script)).unwrap();
        while running.stdout_so_far().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let deaf = running.stdout_so_far();
        running.wait(Duration::ZERO).unwrap_err();
        let status = std::fs::read_to_string(format!("/proc/{}/stat", deaf.trim()));
        // Gone, or a zombie that waits for init.
        assert!(
            status.as_ref().map_or(true, |s| s.contains(") Z")),
            "{deaf}: {status:?}"
        );
    }
}

//! A running child process and its process group, from the start to the end of the group.

#![allow(unsafe_code)]

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

use crate::{Outcome, ProcessError, spelled};

/// A program that runs in its own process group and writes its output to memory files.
/// Pipes are not used: an orphan could keep a pipe open, and its reader would wait indefinitely.
#[derive(Debug)]
pub struct Running {
    program: String,
    child: Child,
    stdout: File,
    stderr: File,
    begin: Instant,
}

impl Running {
    /// Starts the program. Its standard input is the command's, or else this process's.
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
            // The terminal sends no signal to a separate process group when this process ends.
            // So the kernel sends the program a signal at the end of the thread that started it;
            // only the main thread exists until this process ends.
            // SAFETY: the closure runs between fork and exec, without allocation or locks.
            // The closure makes one async-signal-safe system call.
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

    /// Returns the program's process ID, which is also the ID of its process group.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the standard output that the program has written so far.
    pub fn stdout_so_far(&self) -> String {
        contents(&self.stdout)
    }

    /// Returns the standard error that the program has written so far.
    pub fn stderr_so_far(&self) -> String {
        contents(&self.stderr)
    }

    /// Waits until the program ends, with any status.
    /// After `limit`, ends the process group and returns an error.
    pub fn wait(self, limit: Duration) -> Result<Outcome, ProcessError> {
        self.wait_while(|elapsed| elapsed < limit)
    }

    /// Waits until the program ends, with any status, while `patient` returns true.
    /// It is called repeatedly with the elapsed time. If it returns false, the process group is ended.
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

    /// Sends SIGTERM and then SIGKILL to the process group. Returns when the group has ended.
    fn stop(&mut self) {
        if let Some(group) = pid_of(&self.child) {
            for signal in [Signal::TERM, Signal::KILL] {
                // The group may have ended already, so an error is ignored.
                let _ = kill_process_group(group, signal);
                if self.outlast(group) {
                    break;
                }
            }
        }
        let _ = self.child.wait();
    }

    /// Waits until the leader of the process group and then the other processes have ended.
    /// Returns true if the group ended in time.
    fn outlast(&mut self, group: Pid) -> bool {
        const LEADER: Duration = Duration::from_secs(2);
        // Orphans in the group end directly after their parent, or not at all.
        // Some remain as zombies until the process that inherits them reaps them.
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

/// Time for which a program file just written may still be open for writing in another process.
const JUST_WRITTEN: Duration = Duration::from_secs(2);

/// Starts a program, even if its file was written just before.
///
/// Between fork and exec, a child of another thread has copies of all open descriptors.
/// The kernel does not execute a file that is open for writing (`ETXTBSY`, execve(2)).
/// So this function repeats the attempt for a limited time.
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
    /// Ends the process group, so a test that fails before `wait` leaves no process running.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.stop();
        }
    }
}

fn is_main_thread() -> bool {
    rustix::thread::gettid() == rustix::process::getpid()
}

/// Creates an anonymous file (memfd), with a second descriptor for the child.
pub(crate) fn memory_file() -> std::io::Result<(File, Stdio)> {
    let file = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
    let copy = Stdio::from(file.try_clone()?);
    Ok((file, copy))
}

/// Returns the whole contents of a file as text; other processes may still be writing to it.
///
/// The writers share the file position with this process, so the reads have explicit offsets.
fn contents(file: &File) -> String {
    use std::os::unix::fs::FileExt as _;
    let mut bytes = Vec::new();
    let mut chunk = [0; 65536];
    while let Ok(n @ 1..) = file.read_at(&mut chunk, bytes.len() as u64) {
        bytes.extend_from_slice(&chunk[..n]);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until the child ends or `give_up` returns true. `give_up` is called every 10 milliseconds.
fn wait_until(
    child: &mut Child,
    mut give_up: impl FnMut() -> bool,
) -> std::io::Result<Option<ExitStatus>> {
    const ASK: Duration = Duration::from_millis(10);
    // Without a pidfd (kernel before 5.3, or a sandbox), frequent polling is nearly as precise.
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
                // A signal only ends the wait of this iteration early.
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

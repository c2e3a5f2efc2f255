//! Running CRIU: its version, a trial dump before a job starts, dumps and restores.

use super::work::Work;
use crate::launch::descendants;
use crate::launch::sys::{self, Ended, Forked};
use crate::launch::wire::Failure;
use mpi_core::crs::criu::{self, After, CriuError, NO_ERROR, first_error};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Returns the version of the CRIU program. Fails if it cannot work with this library.
pub(crate) fn version(program: &Path) -> Result<String, CriuError> {
    let mut command = Command::new(program);
    let output = command.arg("--version").stdin(Stdio::null()).output();
    let output = output.map_err(|_| CriuError::Absent {
        program: program.display().to_string(),
    })?;
    criu::admit(program, &String::from_utf8_lossy(&output.stdout))
}

/// One run of CRIU.
pub(super) struct Run<'a> {
    pub program: &'a Path,
    pub arguments: Vec<OsString>,
    /// Variables that are added to CRIU's environment.
    pub environment: Vec<(&'static str, String)>,
    /// The descriptors that CRIU inherits.
    pub inherited: &'a [BorrowedFd<'a>],
    /// The mount namespace with the `/proc` of the dumped processes, if it is another one.
    pub mounts: Option<BorrowedFd<'a>>,
    pub doing: &'static str,
    pub log: &'a Path,
}

impl Run<'_> {
    /// Runs CRIU to its end. On failure returns the first error of its log.
    pub(super) fn run(&self) -> Result<(), CriuError> {
        let ended = self.start().and_then(sys::wait_for);
        outcome(ended, self.doing, self.log)
    }

    /// Starts CRIU, whose end is the end of the work.
    pub(super) fn begin(&self) -> Work<()> {
        let (doing, log) = (self.doing, self.log.to_owned());
        let pid = match self.start() {
            Ok(pid) => pid,
            Err(error) => return Work::Done(outcome(Err(error), doing, &log).map_err(failure)),
        };
        let late = {
            let log = log.display().to_string();
            move |limit: Duration| failure(CriuError::Late { doing, limit, log })
        };
        let finish = move || outcome(sys::wait_for(pid), doing, &log).map_err(failure);
        Work::of(pid, None, finish, late)
    }

    /// Returns the error about a CRIU that has ended without the call of its script.
    pub(super) fn without_script(&self, ended: io::Result<Ended>) -> CriuError {
        let ended = outcome(ended, self.doing, self.log);
        ended.err().unwrap_or_else(|| CriuError::Failed {
            doing: self.doing,
            line: "it has not run the script of --action-script".into(),
            log: self.log.display().to_string(),
        })
    }

    /// Starts CRIU and returns its pid.
    pub(super) fn start(&self) -> io::Result<i32> {
        // An error of an earlier run is not the cause if CRIU ends before it opens its log.
        let _ = fs::remove_file(self.log);
        let parent = rustix::process::getpid();
        let life = pidfd_open(parent, PidfdFlags::empty())?;
        match sys::fork()? {
            Forked::Child if self.is_watched() => sys::exit_now(self.watch(&life)),
            Forked::Child => {
                let error = self.become_criu(parent);
                printable::eprintln!("mpirun: CRIU cannot be started: {error}");
                sys::exit_now(127)
            }
            Forked::Parent(pid) => Ok(pid),
        }
    }

    /// Returns true if CRIU runs below a process that ends CRIU's own children.
    /// The keeper of a restored job ends all processes of its namespace, and must be the parent of CRIU.
    fn is_watched(&self) -> bool {
        self.mounts.is_none() && self.inherited.is_empty()
    }

    /// Runs CRIU below this process until CRIU or mpirun has ended, and ends what CRIU has left: CRIU traces children of its
    /// own to find out what the kernel can, and they outlive a killed CRIU. Returns the exit code as shells do.
    fn watch(&self, mpirun: &OwnedFd) -> i32 {
        let own = rustix::process::getpid();
        // A Ctrl-C of the user must not reach this process either.
        let prepared = sys::adopt_orphans();
        let prepared = prepared.and_then(|()| Ok(rustix::process::setsid().map(|_| ())?));
        let criu = prepared.and_then(|()| match sys::fork()? {
            Forked::Child => {
                let error = self.become_criu(own);
                printable::eprintln!("mpirun: CRIU cannot be started: {error}");
                sys::exit_now(127)
            }
            Forked::Parent(pid) => Ok(pid),
        });
        let Ok(criu) = criu else { return 127 };
        let end = Pid::from_raw(criu).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
        if let Some(Ok(end)) = end {
            let mut fds = [
                PollFd::new(&end, PollFlags::IN),
                PollFd::new(mpirun, PollFlags::IN),
            ];
            while poll(&mut fds, None) == Err(Errno::INTR) {}
            if fds[0].revents().is_empty() {
                sys::signal_process(criu, libc::SIGKILL);
            }
        }
        let ended = sys::wait_for(criu);
        descendants::end_all();
        ended.map_or(127, Ended::code)
    }

    /// Replaces this process by CRIU; returns only if that fails.
    fn become_criu(&self, parent: Pid) -> io::Error {
        // A CRIU that outlived mpirun would write to a folder that the next mpirun clears.
        let prepared = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        // The parent has no number in the PID namespace of a restored job, and ends this namespace.
        if rustix::process::getppid().is_some_and(|now| now != parent) {
            return io::Error::other("mpirun was killed");
        }
        // A Ctrl-C of the user must not reach CRIU in the middle of its work.
        let prepared = prepared.and_then(|()| rustix::process::setsid().map(|_| ()));
        let prepared = prepared.and_then(|()| match self.mounts {
            Some(mounts) => move_into_link_name_space(mounts, Some(LinkNameSpaceType::Mount)),
            None => Ok(()),
        });
        let mut kept = self.inherited.iter();
        let prepared = prepared
            .and_then(|()| kept.try_for_each(|fd| rustix::io::fcntl_setfd(fd, FdFlags::empty())));
        if let Err(error) = prepared {
            return error.into();
        }
        sys::unblock_signals();
        Command::new(self.program)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .exec()
    }
}

/// Returns the outcome of a CRIU that has ended, or that could not be started or awaited.
fn outcome(ended: io::Result<Ended>, doing: &'static str, log: &Path) -> Result<(), CriuError> {
    match ended {
        Ok(Ended::Exited(0)) => Ok(()),
        Ok(ended) => Err(failure_of(ended, doing, log)),
        Err(error) => Err(CriuError::Failed {
            doing,
            line: error.to_string(),
            log: log.display().to_string(),
        }),
    }
}

/// Returns the error for the front end of the job.
pub(super) fn failure(error: CriuError) -> Failure {
    Failure {
        why: error.to_string(),
        is_damaged: error.is_damage(),
        may_repeat: error.may_pass(),
    }
}

/// Returns the error of a CRIU that has failed: the first error in its log, or the signal that killed it.
pub(super) fn failure_of(ended: Ended, doing: &'static str, log: &Path) -> CriuError {
    let text = fs::read(log).unwrap_or_default();
    let log = log.display().to_string();
    if let Some(signal) = killed_by(ended) {
        let by = sys::signal_name(signal);
        return CriuError::Killed { by, doing, log };
    }
    let text = String::from_utf8_lossy(&text);
    let line = first_error(&text).map(str::to_owned);
    let line = line.unwrap_or_else(|| format!("{NO_ERROR} {}", ended.code()));
    CriuError::Failed { doing, line, log }
}

/// Returns the signal that killed CRIU, or a script that runs CRIU and reports its death as shells do.
fn killed_by(ended: Ended) -> Option<sys::Signal> {
    const SIGNALS: std::ops::RangeInclusive<i32> = 129..=192;
    match ended {
        Ended::Killed(signal) => Some(signal),
        Ended::Exited(code) => SIGNALS.contains(&code).then(|| code - 128),
    }
}

/// Dumps a process like those of a job, to find out whether CRIU works on this host.
/// Everything that this writes is in a folder below `dir`, which is removed.
pub(super) fn probe(program: &Path, dir: &Path, host: u32) -> Result<(), CriuError> {
    let log = log_of(dir, "probe", host);
    let failed = |error: io::Error| CriuError::Failed {
        doing: "dump a trial process for",
        line: error.to_string(),
        log: log.display().to_string(),
    };
    let folder = dir.join(format!(".{}-{host}.tmp", std::process::id()));
    fs::create_dir_all(&folder).map_err(failed)?;
    let outcome = start_trial().map_err(failed).and_then(|trial| {
        let dumped = Run {
            program,
            arguments: criu::dump_arguments(trial, &folder, &log, &[], After::Stopped),
            environment: Vec::new(),
            inherited: &[],
            mounts: None,
            doing: "dump a trial process for",
            log: &log,
        };
        let dumped = dumped.run();
        sys::signal_process(trial, libc::SIGKILL);
        // The trial process is a child of this process, so the wait ends.
        let _ = sys::wait_for(trial);
        dumped
    });
    let _ = fs::remove_dir_all(&folder);
    if outcome.is_ok() {
        let _ = fs::remove_file(&log);
    }
    outcome
}

/// Starts a process that sleeps, has a TCP socket, and leads a session. Returns its pid.
fn start_trial() -> io::Result<i32> {
    let listener: OwnedFd = TcpListener::bind(("127.0.0.1", 0))?.into();
    let (ready, at_exec) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let parent = rustix::process::getpid();
    match sys::fork()? {
        Forked::Child => {
            // A killed mpirun leaves no trial process, also if it was killed before this call.
            let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
            if rustix::process::getppid() != Some(parent) {
                sys::exit_now(1);
            }
            let _ = rustix::process::setsid();
            // CRIU may be unable to dump inherited descriptors, which the processes of a job do not have.
            let _ = sys::close_inherited();
            let mut command = Command::new("sleep");
            let command = command.arg("600").stdin(listener);
            let command = command.stdout(Stdio::null()).stderr(Stdio::null());
            sys::unblock_signals();
            let _ = command.exec();
            sys::exit_now(127)
        }
        Forked::Parent(pid) => {
            drop(at_exec);
            // The pipe is closed when the program runs.
            let _ = rustix::io::read(ready.as_fd(), &mut [0; 1]);
            Ok(pid)
        }
    }
}

/// Returns the path of CRIU's log of a host in a folder of checkpoints; no checkpoint has such a name.
pub(super) fn log_of(dir: &Path, of: &str, host: u32) -> PathBuf {
    match host {
        0 => dir.join(format!("criu-{of}.log")),
        host => dir.join(format!("criu-{of}-{host}.log")),
    }
}

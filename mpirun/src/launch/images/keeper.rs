//! The keeper: the first process of a restored job's PID namespace.
//!
//! The keeper runs CRIU and becomes the parent of the restored launcher: the supervisor, or a daemon.
//!
//! For a job on several hosts the keeper takes the restore in steps, which a socket orders.
//! CRIU stops itself at the stage at which all sockets of its host exist and none has sent a packet.
//! When all hosts have reached this stage, all continue. Otherwise the first packet of one host would meet no
//! socket on another one, whose kernel would reset the connection.

use super::run::{Run, failure_of};
use crate::launch::descendants;
use crate::launch::hold::{read_body, write_body};
use crate::launch::sys::{self, Ended};
use crate::launch::wire::Failure;
use mpi_base::environment;
use mpi_core::crs::criu::{self, ALL_SOCKETS_EXIST, CriuError, Replacement, STAGE};
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// The file with the last process number of a PID namespace.
const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

/// CRIU's error if a TCP connection with the same addresses exists.
const IN_USE: &str = "Can't connect inet socket back: Cannot assign requested address";

/// The processes to restore, and how.
#[derive(Clone, Debug)]
pub(super) struct Restore {
    /// The CRIU program.
    pub program: PathBuf,
    pub images: PathBuf,
    pub log: PathBuf,
    /// The names of the files that are replaced, as CRIU knows them.
    pub replaced: Vec<String>,
    /// The launcher's number in the PID namespace.
    pub launcher: i32,
    /// The highest number of a process or thread.
    pub highest: u32,
}

/// Restores the processes, and waits for the end of the launcher. Returns the exit code.
/// `inside` are the descriptors that replace those of [`Restore::replaced`].
pub(super) fn keep(restore: &Restore, inside: Vec<OwnedFd>) -> i32 {
    if let Err(error) = begin_keeping(restore.highest) {
        printable::eprintln!("mpirun: {}", numbers(&error));
        return 1;
    }
    if let Err(error) = restore_soon(restore, &inside) {
        printable::eprintln!("mpirun: {error}");
        return 1;
    }
    // Only the launcher has these connections from here on.
    drop(inside);
    wait_for(restore.launcher)
}

fn numbers(error: &io::Error) -> String {
    format!("the process numbers of a restart cannot be made: {error}")
}

fn wait_for(launcher: i32) -> i32 {
    loop {
        match sys::wait_for_any() {
            Some((pid, ended)) if pid == launcher => return ended.code(),
            Some(_) => {}
            None => return 1,
        }
    }
}

/// Prepares the first process of the PID namespace: its own `/proc`, and free process numbers.
fn begin_keeping(highest: u32) -> io::Result<()> {
    // If the front end dies, so does this process, and with it all processes of the namespace.
    let kill = rustix::process::Signal::KILL;
    rustix::process::set_parent_process_death_signal(Some(kill))?;
    rustix::process::setsid()?;
    sys::make_mount_namespace()?;
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )?;
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", flags, None::<&CStr>)?;
    // CRIU itself must not get the number of a process that it restores.
    fs::write(LAST_PID, highest.to_string())
}

/// Returns true if the kernel still has connections of an ended job (TIME_WAIT).
fn is_in_use(error: &CriuError) -> bool {
    matches!(error, CriuError::Failed { line, .. } if line.contains(IN_USE))
}

/// Ends what a failed restore has left, so that the process numbers are free again.
fn clear(restore: &Restore) {
    descendants::end_all();
    let _ = fs::write(LAST_PID, restore.highest.to_string());
}

/// Restores the processes. Repeats it while the kernel keeps the old connections of an ended job;
/// it lets a new connection replace such a loopback connection after one second.
fn restore_soon(restore: &Restore, inside: &[OwnedFd]) -> Result<(), CriuError> {
    const ATTEMPTS: usize = 5;
    for _ in 1..ATTEMPTS {
        match with_run(restore, inside, false, |run| run.run()) {
            Err(error) if is_in_use(&error) => {}
            done => return done,
        }
        descendants::end_all();
        std::thread::sleep(Duration::from_secs(1));
        // Their process numbers must be free again, also those of processes that took long to end.
        clear(restore);
    }
    with_run(restore, inside, false, |run| run.run())
}

/// Calls `work` with a run of CRIU that restores the processes.
fn with_run<T>(
    restore: &Restore,
    inside: &[OwnedFd],
    stops: bool,
    work: impl FnOnce(&Run<'_>) -> T,
) -> T {
    let descriptors: Vec<BorrowedFd<'_>> = inside.iter().map(|fd| fd.as_fd()).collect();
    let replaced = descriptors.iter().zip(&restore.replaced);
    let replaced = replaced.map(|(descriptor, dumped)| Replacement {
        descriptor: descriptor.as_raw_fd(),
        dumped: dumped.clone(),
    });
    let replaced: Vec<Replacement> = replaced.collect();
    let script = stops.then(std::env::current_exe).and_then(Result::ok);
    let run = Run {
        program: &restore.program,
        arguments: criu::restore_arguments(
            &restore.images,
            &restore.log,
            &replaced,
            script.as_deref(),
        ),
        environment: script.iter().map(|_| (IN_A_RESTORE, "1")).collect(),
        inherited: &descriptors,
        mounts: None,
        doing: "restore",
        log: &restore.log,
    };
    let outcome = work(&run);
    // CRIU writes statistics beside the images.
    let _ = fs::remove_file(restore.images.join("stats-restore"));
    outcome
}

/// The variable that marks this program as CRIU's script.
const IN_A_RESTORE: &str = "PORTCULLIS_IN_A_RESTORE";

/// Serves as the script that CRIU runs at each stage of a restore in steps.
/// Returns `None` if this process is no such script.
pub fn serve_as_script() -> Option<i32> {
    environment::var(IN_A_RESTORE)?;
    let stage = environment::var(STAGE)?;
    if stage == ALL_SOCKETS_EXIST {
        let criu = rustix::process::getppid().map_or(0, |pid| pid.as_raw_pid());
        if criu > 1 {
            sys::signal_process(criu, libc::SIGSTOP);
        }
    }
    Some(0)
}

/// A step of a restore, as it is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    Restore,
    Resume,
    Undo,
    GoOn,
}

/// The keeper of a job on several hosts, as its parent sees it.
pub(super) struct Keeper {
    pub pid: i32,
    pub socket: OwnedFd,
}

impl Keeper {
    /// Restores the processes up to the stage at which all their sockets exist.
    pub(super) fn restore(&self) -> Result<(), Failure> {
        self.order(Step::Restore)
    }

    /// Completes the restore. The processes are as stopped as they were dumped.
    pub(super) fn resume(&self) -> Result<(), Failure> {
        self.order(Step::Resume)
    }

    /// Undoes the restore.
    pub(super) fn undo(&self) -> Result<(), Failure> {
        self.order(Step::Undo)
    }

    /// Continues the processes.
    pub(super) fn go_on(&self) -> Result<(), Failure> {
        self.order(Step::GoOn)
    }

    fn order(&self, step: Step) -> Result<(), Failure> {
        let gone = || Failure::of("the process that keeps the job's process numbers has ended");
        write_body(&self.socket, &step).map_err(|_| gone())?;
        read_body(&self.socket).unwrap_or_else(|| Err(gone()))
    }
}

/// Restores the processes in the ordered steps; then waits for the end of the launcher.
/// Returns the exit code.
pub(super) fn keep_in_steps(restore: &Restore, inside: Vec<OwnedFd>, socket: OwnedFd) -> i32 {
    let begun = begin_keeping(restore.highest);
    let mut running = None;
    while let Some(step) = read_body::<Step>(&socket) {
        let outcome = match (&begun, step) {
            (Err(error), _) => Err(Failure::of(numbers(error))),
            (Ok(()), Step::Restore) => {
                let reached = with_run(restore, &inside, true, |run| run.run_until_stopped());
                let reached = reached.map(|pid| running = Some(pid));
                reached.map_err(|error| {
                    clear(restore);
                    failure(&error)
                })
            }
            (Ok(()), Step::Resume) => match running.take() {
                Some(pid) => resume(restore, pid),
                None => Err(Failure::of("no restore has begun")),
            },
            (Ok(()), Step::Undo) => {
                running = None;
                clear(restore);
                Ok(())
            }
            (Ok(()), Step::GoOn) => {
                for pid in descendants::of_this_process() {
                    sys::signal_process(pid, libc::SIGCONT);
                }
                Ok(())
            }
        };
        if write_body(&socket, &outcome).is_err() {
            return 1;
        }
        if step == Step::GoOn && outcome.is_ok() {
            drop(inside);
            return wait_for(restore.launcher);
        }
    }
    1
}

/// Continues CRIU, which has stopped itself, and waits for its end.
fn resume(restore: &Restore, pid: i32) -> Result<(), Failure> {
    sys::signal_process(pid, libc::SIGCONT);
    let ended = sys::wait_for(pid).map_err(|error| Failure::of(error.to_string()))?;
    let _ = fs::remove_file(restore.images.join("stats-restore"));
    match ended {
        Ended::Exited(0) => Ok(()),
        ended => {
            let error = failure_of(ended, "restore", &restore.log);
            clear(restore);
            Err(failure(&error))
        }
    }
}

fn failure(error: &CriuError) -> Failure {
    Failure {
        why: error.to_string(),
        is_damaged: matches!(error, CriuError::Killed { .. }),
        may_repeat: is_in_use(error),
    }
}

//! The keeper: the first process of a restored job's PID namespace.
//!
//! The keeper runs CRIU and becomes the parent of the restored launcher: the supervisor, or a daemon.
//!
//! The keeper takes the restore in steps, which a socket orders.
//! CRIU waits at the stage at which all sockets of its host exist and none has sent a packet.
//! When all hosts have reached this stage, all continue. Otherwise the first packet of one host would meet no
//! socket on another one, whose kernel would reset the connection.

use super::run::{Run, failure_of};
use super::work::Work;
use crate::control::peer;
use crate::launch::descendants;
use crate::launch::hold::{read_body, write_body};
use crate::launch::sys::{self, Ended};
use crate::launch::wire::Failure;
use mpi_base::environment;
use mpi_core::crs::criu::{self, ALL_SOCKETS_EXIST, CriuError, Replacement, STAGE};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::{Pid, PidfdFlags, getuid, pidfd_open};
use serde::{Deserialize, Serialize};
use std::ffi::CStr;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

/// The file with the last process number of a PID namespace.
const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

/// CRIU's error if a TCP connection with the same addresses exists.
const IN_USE: &str = "Can't connect inet socket back: Cannot assign requested address";

/// CRIU's errors if a process that it restores is killed: about this process, or about another one that has stopped meanwhile.
const KILLED: [&str; 4] = [
    "killed by signal",
    "stopped by signal",
    "No such process",
    "No child processes",
];

/// The processes to restore, and how.
#[derive(Clone, Debug, Serialize, Deserialize)]
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
    /// The numbers of the processes that were stopped before the checkpoint.
    pub stopped: Vec<i32>,
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

/// Returns true if a process was killed while CRIU restored it.
fn is_of_a_kill(error: &CriuError) -> bool {
    let CriuError::Failed { line, .. } = error else {
        return false;
    };
    KILLED.iter().any(|words| line.contains(words))
}

/// Ends what a failed restore has left, so that the process numbers are free again.
fn clear(restore: &Restore) {
    descendants::end_all();
    let _ = fs::write(LAST_PID, restore.highest.to_string());
}

/// A CRIU at the stage at which all sockets exist. Its script waits at the other end of the connection.
struct Paused {
    criu: i32,
    script: OwnedFd,
}

/// Starts CRIU, and waits until it has reached the stage at which all sockets exist.
///
/// CRIU's script connects to a socket of this process, writes the number of CRIU, and waits.
/// CRIU must be a child of this process: it makes the launcher a child of its own parent, and the launcher dies with its parent.
fn restore_until_sockets_exist(restore: &Restore, inside: &[OwnedFd]) -> Result<Paused, CriuError> {
    let failed = |error: io::Error| CriuError::Failed {
        doing: "restore",
        line: error.to_string(),
        log: restore.log.display().to_string(),
    };
    let (listener, name) = listen().map_err(failed)?;
    let script = std::env::current_exe().map_err(failed)?;
    let descriptors: Vec<BorrowedFd<'_>> = inside.iter().map(|fd| fd.as_fd()).collect();
    let replaced = descriptors.iter().zip(&restore.replaced);
    let replaced = replaced.map(|(descriptor, dumped)| Replacement {
        descriptor: descriptor.as_raw_fd(),
        dumped: dumped.clone(),
    });
    let replaced: Vec<Replacement> = replaced.collect();
    let run = Run {
        program: &restore.program,
        arguments: criu::restore_arguments(&restore.images, &restore.log, &replaced, Some(&script)),
        environment: vec![(IN_A_RESTORE, name)],
        inherited: &descriptors,
        mounts: None,
        doing: "restore",
        log: &restore.log,
    };
    let criu = run.start().map_err(failed)?;
    let end = Pid::from_raw(criu).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let Some(Ok(end)) = end else {
        return Err(run.without_script(sys::wait_for(criu)));
    };
    loop {
        let mut fds = [
            PollFd::new(&listener, PollFlags::IN),
            PollFd::new(&end, PollFlags::IN),
        ];
        let _ = poll(&mut fds, None);
        let (is_asked, is_over) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
        if is_asked
            && let Ok(script) = rustix::net::accept_with(&listener, SocketFlags::CLOEXEC)
            && peer::user(&script) == Some(getuid().as_raw())
        {
            let mut parent = [0; 4];
            let read = rustix::io::read(&script, &mut parent);
            if read == Ok(parent.len()) && i32::from_ne_bytes(parent) == criu {
                return Ok(Paused { criu, script });
            }
            return Err(CriuError::Failed {
                doing: "restore",
                line: "the script that runs CRIU must replace itself by CRIU (exec)".into(),
                log: restore.log.display().to_string(),
            });
        }
        if is_over {
            let _ = fs::remove_file(restore.images.join(STATISTICS));
            return Err(run.without_script(sys::wait_for(criu)));
        }
    }
}

/// CRIU writes statistics beside the images.
const STATISTICS: &str = "stats-restore";

/// Makes a socket for CRIU's script. Returns it with its name.
fn listen() -> io::Result<(OwnedFd, String)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // Each keeper is in a PID namespace of its own.
    let namespace = fs::metadata("/proc/self/ns/pid")?.ino();
    let name = format!("portcullis-restore-{namespace}");
    rustix::net::bind(
        &socket,
        &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
    )?;
    rustix::net::listen(&socket, 1)?;
    Ok((socket, name))
}

/// The variable that marks this program as CRIU's script; its value is the name of the keeper's socket.
const IN_A_RESTORE: &str = "PORTCULLIS_IN_A_RESTORE";

/// Serves as the script that CRIU runs at each stage of a restore.
/// Returns `None` if this process is no such script.
pub fn serve_as_script() -> Option<i32> {
    let name = environment::text(IN_A_RESTORE)?;
    let stage = environment::var(STAGE)?;
    if stage != ALL_SOCKETS_EXIST {
        return Some(0);
    }
    let waited = || -> rustix::io::Result<()> {
        let flags = SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        rustix::net::connect(
            &socket,
            &SocketAddrUnix::new_abstract_name(name.as_bytes())?,
        )?;
        let criu = rustix::process::getppid().map_or(0, Pid::as_raw_pid);
        rustix::io::write(&socket, &criu.to_ne_bytes())?;
        // The keeper closes the connection when all hosts have reached this stage.
        while rustix::io::read(&socket, &mut [0; 1]) == Err(Errno::INTR) {}
        Ok(())
    };
    Some(i32::from(waited().is_err()))
}

/// A step of a restore, as it is ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Step {
    Restore,
    Resume,
    Undo,
    GoOn,
}

/// The keeper, as its parent sees it.
pub(super) struct Keeper {
    pub pid: i32,
    pub socket: OwnedFd,
}

impl Keeper {
    /// Restores the processes up to the stage at which all their sockets exist.
    pub(super) fn restore(&self) -> Work<()> {
        self.order(Step::Restore)
    }

    /// Completes the restore. The processes are as stopped as they were dumped.
    pub(super) fn resume(&self) -> Work<()> {
        self.order(Step::Resume)
    }

    /// Undoes the restore.
    pub(super) fn undo(&self) -> Work<()> {
        self.order(Step::Undo)
    }

    /// Continues the processes.
    pub(super) fn go_on(&self) -> Work<()> {
        self.order(Step::GoOn)
    }

    fn order(&self, step: Step) -> Work<()> {
        let gone = || Failure::of("the process that keeps the job's process numbers has ended");
        let sent = write_body(&self.socket, &step);
        let sockets = (self.socket.try_clone(), self.socket.try_clone());
        let (Ok(()), (Ok(ready), Ok(socket))) = (sent, sockets) else {
            return Work::Done(Err(gone()));
        };
        let finish = move || read_body(&socket).unwrap_or_else(|| Err(gone()));
        // The end of the keeper is the end of all processes of its namespace.
        Work::of(self.pid, Some(ready), finish, |limit| {
            Failure::of(format!(
                "the restore took more than {} s; --mca crs_criu_limit sets another limit",
                limit.as_secs_f64()
            ))
        })
    }
}

/// Restores the processes in the ordered steps; then waits for the end of the launcher.
/// `inside` are the descriptors that replace those of [`Restore::replaced`]. Returns the exit code.
pub(super) fn keep(restore: &Restore, inside: Vec<OwnedFd>, socket: OwnedFd) -> i32 {
    let begun = begin_keeping(restore.highest);
    let mut paused = None;
    while let Some(step) = read_body::<Step>(&socket) {
        let outcome = match (&begun, step) {
            (Err(error), _) => Err(Failure::of(numbers(error))),
            (Ok(()), Step::Restore) => {
                let reached = restore_until_sockets_exist(restore, &inside);
                let reached = reached.map(|criu| paused = Some(criu));
                reached.map_err(|error| {
                    clear(restore);
                    failure(&error)
                })
            }
            (Ok(()), Step::Resume) => match paused.take() {
                Some(paused) => resume(restore, paused),
                None => Err(Failure::of("no restore has begun")),
            },
            (Ok(()), Step::Undo) => {
                clear(restore);
                paused = None;
                Ok(())
            }
            (Ok(()), Step::GoOn) => {
                go_on(restore);
                Ok(())
            }
        };
        if write_body(&socket, &outcome).is_err() {
            return 1;
        }
        if step == Step::GoOn && outcome.is_ok() {
            // Only the launcher has these connections from here on.
            drop(inside);
            return wait_for(restore.launcher);
        }
    }
    1
}

/// Continues the processes that the checkpoint has stopped, and not those that were stopped before.
/// A process whose SIGSTOP is yet to arrive needs the signal, too.
fn go_on(restore: &Restore) {
    for pid in descendants::of_this_process() {
        if !restore.stopped.contains(&pid) {
            sys::signal_process(pid, libc::SIGCONT);
        }
    }
}

/// Lets CRIU's script end, and waits for CRIU's end.
fn resume(restore: &Restore, paused: Paused) -> Result<(), Failure> {
    drop(paused.script);
    let ended = sys::wait_for(paused.criu).map_err(|error| Failure::of(error.to_string()))?;
    let _ = fs::remove_file(restore.images.join(STATISTICS));
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
        is_damaged: error.is_damage(),
        may_repeat: is_in_use(error) || is_of_a_kill(error),
    }
}

//! The front end of a new job that is saved as images of its processes.

use super::attend::{Attendant, Input};
use super::relay::Relay;
use super::run::probe;
use super::take::Outside;
use crate::launch::FORWARDED;
use crate::launch::frontend::{Done, raise_open_files};
use crate::launch::program::{Images, Plan, StdinTo};
use crate::launch::supervisor::{self, Wires};
use crate::launch::sys::{self, Forked, Signal};
use mpi_core::crs::store::Store;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::fstat;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::path::Path;

/// Runs a plan whose checkpoints are images of all processes.
/// Returns `None` for other plans.
pub fn run(plan: &Plan) -> Option<Done> {
    let checkpoints = plan.checkpoints.as_ref()?;
    let (images, dir) = (checkpoints.images.as_ref()?, &checkpoints.dir);
    if let Err(error) = probe(&images.program, dir, 0) {
        printable::eprintln!("mpirun: {error}");
        return Some(Done::of(2));
    }
    let done = launch(plan, images, dir);
    Some(done.unwrap_or_else(|error| {
        printable::eprintln!(
            "mpirun: starting the launcher's second process failed: {error}{}",
            sys::advice(&error)
        );
        Done::of(1)
    }))
}

/// The ends of the connections between the front end and the dumped processes.
pub(super) struct Connections {
    pub socket: OwnedFd,
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// Makes the socket, and the pipes of the input and the output.
/// Returns the ends of the dumped processes, those of the front end, and the inodes of all.
pub(super) fn connections() -> io::Result<(Connections, Connections, Outside)> {
    let flags = SocketFlags::CLOEXEC;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    let reading = || {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&read, true)?;
        io::Result::Ok((read, write))
    };
    let ((out, to_out), (err, to_err)) = (reading()?, reading()?);
    let (input, feed) = pipe_with(PipeFlags::CLOEXEC)?;
    let outside = Outside {
        socket: fstat(&theirs)?.st_ino,
        peer: fstat(&ours)?.st_ino,
        stdin: fstat(&input)?.st_ino,
        stdout: fstat(&to_out)?.st_ino,
        stderr: fstat(&to_err)?.st_ino,
    };
    let inside = Connections {
        socket: theirs,
        stdin: input,
        stdout: to_out,
        stderr: to_err,
    };
    let ours = Connections {
        socket: ours,
        stdin: feed,
        stdout: out,
        stderr: err,
    };
    Ok((inside, ours, outside))
}

fn launch(plan: &Plan, images: &Images, dir: &Path) -> io::Result<Done> {
    sys::adopt_orphans()?;
    let nofile = raise_open_files();
    let (inside, ours, outside) = connections()?;
    let mut waited = FORWARDED.to_vec();
    waited.push(libc::SIGCHLD);
    let signals = sys::signal_file(&waited)?;
    match sys::fork()? {
        Forked::Child => {
            drop((ours, signals));
            let done = become_launcher(inside, &waited, |front, stdin, signals| {
                let wires = Wires {
                    front,
                    stdin,
                    signals,
                    nofile,
                    adopted: None,
                    // The memory of the table would be copied by a dump, so debuggers get none.
                    table: None,
                };
                supervisor::run(plan, wires)
            });
            sys::exit_now(done.unwrap_or_else(|error| {
                printable::eprintln!("mpirun: {error}");
                1
            }))
        }
        Forked::Parent(child) => {
            drop(inside);
            let stdin = rustix::stdio::stdin();
            let attendant = Attendant {
                images,
                reach: &plan.remote,
                dir,
                store: Store::new(dir),
                child,
                supervisor: child,
                is_restored: false,
                socket: ours.socket,
                outside,
                signals,
                relay: Relay::new(ours.stdout, ours.stderr)?,
                input: Input {
                    pipe: (plan.io.stdin != StdinTo::NoRank).then_some(ours.stdin),
                    pending: Vec::new(),
                    is_terminal: rustix::termios::isatty(stdin),
                },
                is_quiet: plan.quiet,
                by_death: false,
                host_is_lost: false,
            };
            Ok(attendant.attend())
        }
    }
}

/// Makes this process the leader of a session without any file of the user, and calls `work` with the
/// socket, the standard input and a signalfd.
pub(super) fn become_launcher(
    inside: Connections,
    waited: &[Signal],
    work: impl FnOnce(OwnedFd, OwnedFd, OwnedFd) -> i32,
) -> io::Result<i32> {
    rustix::process::setsid()?;
    // CRIU would save an inherited lock (`flock`), and the restart would wait for its other holder.
    sys::close_inherited()?;
    rustix::stdio::dup2_stdin(&inside.stdin)?;
    rustix::stdio::dup2_stdout(&inside.stdout)?;
    rustix::stdio::dup2_stderr(&inside.stderr)?;
    let stdin = fcntl_dupfd_cloexec(inside.stdin.as_fd(), 3)?;
    drop((inside.stdin, inside.stdout, inside.stderr));
    sys::adopt_orphans()?;
    let signals = sys::signal_file(waited)?;
    Ok(work(inside.socket, stdin, signals))
}

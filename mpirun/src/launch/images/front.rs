//! The front end of a new job that is saved as images of its processes.

use super::attend::{Attendant, Input};
use super::relay::Relay;
use super::run::probe;
use super::take::Outside;
use crate::launch::FORWARDED;
use crate::launch::frontend::raise_open_files;
use crate::launch::program::{Images, Plan, StdinTo};
use crate::launch::supervisor::{self, Wires};
use crate::launch::sys::{self, Forked};
use mpi_core::crs::store::Store;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::fs::fstat;
use rustix::io::fcntl_dupfd_cloexec;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::pipe::{PipeFlags, pipe_with};
use std::io;
use std::path::Path;

/// Runs a plan whose checkpoints are images of all processes; returns the exit code.
/// Returns `None` for other plans.
pub fn run(plan: &Plan) -> Option<i32> {
    let checkpoints = plan.checkpoints.as_ref()?;
    let (images, dir) = (checkpoints.images.as_ref()?, &checkpoints.dir);
    if let Err(error) = probe(&images.program, dir) {
        printable::eprintln!("mpirun: {error}");
        return Some(2);
    }
    let code = launch(plan, images, dir);
    Some(code.unwrap_or_else(|error| {
        printable::eprintln!("mpirun: starting the launcher's second process failed: {error}");
        1
    }))
}

/// The ends of the connections between the front end and the dumped processes.
pub(super) struct Connections {
    pub socket: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

/// Makes the socket and the pipes of the output.
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
    let outside = Outside {
        socket: fstat(&theirs)?.st_ino,
        peer: fstat(&ours)?.st_ino,
        stdout: fstat(&to_out)?.st_ino,
        stderr: fstat(&to_err)?.st_ino,
    };
    let inside = Connections {
        socket: theirs,
        stdout: to_out,
        stderr: to_err,
    };
    let ours = Connections {
        socket: ours,
        stdout: out,
        stderr: err,
    };
    Ok((inside, ours, outside))
}

fn launch(plan: &Plan, images: &Images, dir: &Path) -> io::Result<i32> {
    sys::adopt_orphans()?;
    let nofile = raise_open_files();
    let (inside, ours, outside) = connections()?;
    let (input, feed) = pipe_with(PipeFlags::CLOEXEC)?;
    let mut waited = FORWARDED.to_vec();
    waited.push(libc::SIGCHLD);
    let signals = sys::signal_file(&waited)?;
    match sys::fork()? {
        Forked::Child => {
            drop((ours, feed, signals));
            let code = become_supervisor(plan, inside, input, nofile).unwrap_or_else(|error| {
                printable::eprintln!("mpirun: {error}");
                1
            });
            sys::exit_now(code)
        }
        Forked::Parent(child) => {
            drop((inside, input));
            let stdin = rustix::stdio::stdin();
            let attendant = Attendant {
                images,
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
                    pipe: (plan.io.stdin != StdinTo::NoRank).then_some(feed),
                    pending: Vec::new(),
                    is_terminal: rustix::termios::isatty(stdin),
                },
                is_quiet: plan.quiet,
            };
            Ok(attendant.attend())
        }
    }
}

/// Runs the supervisor as the leader of a session, without any file of the user.
fn become_supervisor(
    plan: &Plan,
    inside: Connections,
    input: OwnedFd,
    nofile: Option<u64>,
) -> io::Result<i32> {
    rustix::process::setsid()?;
    // CRIU would save an inherited lock (`flock`), and the restart would wait for its other holder.
    sys::close_inherited()?;
    rustix::stdio::dup2_stdin(&input)?;
    rustix::stdio::dup2_stdout(&inside.stdout)?;
    rustix::stdio::dup2_stderr(&inside.stderr)?;
    let stdin = fcntl_dupfd_cloexec(input.as_fd(), 3)?;
    drop((input, inside.stdout, inside.stderr));
    sys::adopt_orphans()?;
    let mut waited = FORWARDED.to_vec();
    waited.push(libc::SIGCHLD);
    let wires = Wires {
        front: inside.socket,
        stdin,
        signals: sys::signal_file(&waited)?,
        nofile,
        adopted: None,
        // The memory of the table would be copied by a dump, so debuggers get none.
        table: None,
    };
    Ok(supervisor::run(plan, wires))
}

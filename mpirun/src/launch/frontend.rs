//! Front end: the process that the user started and the shell waits for.
//!
//! The front end forks the supervisor, forwards signals, and feeds a terminal's input to rank 0.
//! The front end exits with the supervisor's exit code.
//! The supervisor has its own process group: Ctrl-C and `kill -9 -PGID` reach the front end alone.
//! The supervisor then receives the signal exactly once, through the socket.

use super::hold;
use super::mpir::{self, TableFile};
use super::program::Plan;
use super::supervisor::{self, Adopted, Wires};
use super::sys::{self, Forked, Signal};
use super::trim_memory::MemoryTrim;
use super::{FORWARDED, descendants};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socketpair};
use rustix::process::Resource;
use std::io;
use std::sync::OnceLock;

/// The end of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The exit code of mpirun.
    pub code: i32,
    /// Whether a rank was killed by a signal or its host is lost, so that a restart may come further.
    pub by_death: bool,
    /// Whether ranks may still run on a host that is lost.
    pub host_is_lost: bool,
}

impl Done {
    /// An end for another reason.
    pub fn of(code: i32) -> Done {
        Done {
            code,
            by_death: false,
            host_is_lost: false,
        }
    }
}

/// The number of kinds of reports of the supervisor.
pub(super) const REPORTS: usize = 4;

/// Runs a plan.
pub fn run(plan: &Plan) -> Done {
    report_error(launch(plan))
}

/// Serves the singleton process at the other end of standard input, which started this process.
/// The singleton waits for this process to exit, so a forked child serves the singleton.
pub fn adopt(plan: &Plan, job: String) -> i32 {
    let adopted = || {
        let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        // Standard input is a copy of the socket. If that copy stayed open, the singleton would
        // not notice the launcher's end.
        rustix::stdio::dup2_stdin(nothing()?)?;
        match sys::fork()? {
            Forked::Parent(_) => Ok(Done::of(0)),
            Forked::Child => serve(plan, (nothing()?, None), Some(Adopted { socket, job })),
        }
    };
    report_error(adopted()).code
}

fn nothing() -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
}

fn report_error(done: io::Result<Done>) -> Done {
    done.unwrap_or_else(|error| {
        printable::eprintln!(
            "mpirun: starting the launcher's second process failed: {error}{}",
            sys::advice(&error)
        );
        Done::of(1)
    })
}

fn launch(plan: &Plan) -> io::Result<Done> {
    if !rustix::termios::isatty(rustix::stdio::stdin()) {
        let stdin = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        return serve(plan, (stdin, None), None);
    }
    // A rank is in a process group of its own and must not read the terminal.
    // So this process reads the terminal and forwards the input.
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    serve(plan, (read, Some(write)), None)
}

/// Runs the supervisor; `stdin` is the ranks' input, and `feed` the pipe for a terminal's input.
fn serve(
    plan: &Plan,
    (stdin, feed): (OwnedFd, Option<OwnedFd>),
    adopted: Option<Adopted>,
) -> io::Result<Done> {
    let mut waited = FORWARDED.to_vec();
    waited.push(libc::SIGCHLD);
    // Debuggers do not start or attach to the launcher of an adopted process.
    let table = (adopted.is_none()).then(TableFile::pair);
    let (table, shown) = table.and_then(Result::ok).unzip();
    guard(&waited, (feed, shown), |front, signals, nofile| {
        let wires = Wires {
            front,
            stdin,
            signals,
            nofile,
            adopted,
            table,
        };
        supervisor::run(plan, wires)
    })
}

/// Runs `work` in a child process that this process guards.
///
/// If the child is killed, its orphans become children of this process, which ends them.
/// `work` gets the socket to the guard, a signalfd, and the previous limit of open files.
/// The socket closes when the guard dies.
pub fn guarded(work: impl FnOnce(OwnedFd, OwnedFd, Option<u64>) -> i32) -> io::Result<i32> {
    let waited = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];
    guard(&waited, (None, None), work).map(|done| done.code)
}

/// Implements [`guarded`] for the front end and the daemon.
/// `waited` are the signals of both processes. `feed` is the pipe for a terminal's input.
/// `table` is the process table for debuggers.
fn guard(
    waited: &[Signal],
    (feed, table): (Option<OwnedFd>, Option<TableFile>),
    work: impl FnOnce(OwnedFd, OwnedFd, Option<u64>) -> i32,
) -> io::Result<Done> {
    sys::adopt_orphans()?;
    let nofile = raise_open_files();
    let (to_child, to_guard) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // Blocks the signals before the fork, so that an immediate end of the child is noticed.
    let signals = sys::signal_file(waited)?;
    match sys::fork()? {
        Forked::Child => {
            drop((to_child, feed, table, signals));
            let code = match become_supervisor(waited) {
                Ok(signals) => work(to_guard, signals, nofile),
                Err(error) => {
                    printable::eprintln!("mpirun: {error}");
                    1
                }
            };
            sys::exit_now(code)
        }
        Forked::Parent(child) => {
            // Drops the descriptors that only the child needs, such as rank 0's input.
            drop((to_guard, work));
            let done = attend(child, &to_child, &signals, feed, table);
            // If the child exited by itself, this process has no descendants.
            // If the child was killed, its orphans are now children of this process.
            descendants::end_all();
            Ok(done)
        }
    }
}

fn become_supervisor(waited: &[Signal]) -> io::Result<OwnedFd> {
    rustix::process::setpgid(None, None)?;
    sys::adopt_orphans()?;
    sys::signal_file(waited)
}

/// Runs the front end's loop until the supervisor has ended.
fn attend(
    supervisor: i32,
    to_supervisor: &OwnedFd,
    signals: &OwnedFd,
    mut feed: Option<OwnedFd>,
    table: Option<TableFile>,
) -> Done {
    let mut done = Done::of(0);
    let mut pending: Vec<u8> = Vec::new();
    let mut memory_trim = MemoryTrim::default();
    let mut hung_up = false;
    loop {
        let ours = feed.is_some() && in_foreground();
        let mut fds = vec![
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(to_supervisor, PollFlags::IN),
        ];
        // After the hang-up only SIGCHLD reports the supervisor's end, so the socket is not polled.
        fds.truncate(if hung_up { 1 } else { 2 });
        let stdin = rustix::stdio::stdin();
        match &feed {
            Some(feed) if !pending.is_empty() => fds.push(PollFd::new(feed, PollFlags::OUT)),
            Some(_) if ours => fds.push(PollFd::new(&stdin, PollFlags::IN)),
            _ => {}
        }
        // A background process must not read the terminal.
        // So the loop checks every 200 ms whether the process is in the foreground again.
        let pause = (feed.is_some() && !ours).then_some(Timespec {
            tv_sec: 0,
            tv_nsec: 200_000_000,
        });
        match poll(&mut fds, memory_trim.pause(pause).as_ref()) {
            Ok(0) => memory_trim.trim_once(),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return Done::of(1),
        }
        let at = if hung_up { 1 } else { 2 };
        let input = fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let news = !hung_up && fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        drop(fds);
        hung_up |= news && !serve_supervisor(to_supervisor, table.as_ref(), &mut done);
        while let Some(signal) = sys::next_signal(signals) {
            if signal == libc::SIGCHLD {
                while let Some((pid, ended)) = sys::reap() {
                    if pid == supervisor {
                        // Its last report may have arrived with its end.
                        for _ in 0..REPORTS {
                            serve_supervisor(to_supervisor, table.as_ref(), &mut done);
                        }
                        done.code = ended.code();
                        return done;
                    }
                }
            } else {
                pass_on(to_supervisor, signal);
            }
        }
        if input {
            feed_rank_0(&mut feed, &mut pending);
        }
    }
}

/// Publishes the supervisor's reports for debuggers, and records those about the end of the job.
/// Returns false if the socket is closed.
fn serve_supervisor(to_supervisor: &OwnedFd, table: Option<&TableFile>, done: &mut Done) -> bool {
    let mut byte = [0; 1];
    match rustix::net::recv(to_supervisor, &mut byte, RecvFlags::DONTWAIT) {
        Ok((1, _)) => {}
        Err(Errno::AGAIN | Errno::INTR) => return true,
        _ => return false,
    }
    match byte {
        [mpir::TABLE_IS_WRITTEN] => {
            if let Some(table) = table {
                table.publish();
            }
            if mpir::is_debugged() {
                send(to_supervisor, mpir::RELEASED);
            }
        }
        [mpir::JOB_IS_ABORTED] => mpir::publish_abort(),
        [hold::DEATH] => done.by_death = true,
        [hold::HOST_LOST] => done.host_is_lost = true,
        _ => {}
    }
    true
}

fn send(to_supervisor: &OwnedFd, byte: u8) {
    // A failed send means that the supervisor has died, which SIGCHLD will report.
    let _ = rustix::net::send(
        to_supervisor,
        &[byte],
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    );
}

pub(super) fn pass_on(to_supervisor: &OwnedFd, signal: Signal) {
    send(to_supervisor, signal as u8);
    if signal == libc::SIGTSTP {
        // The shell must see this process stop; the supervisor stops the ranks.
        sys::stop_self();
    }
}

/// Forwards terminal input to rank 0: reads if `pending` is empty, else writes.
pub(super) fn feed_rank_0(feed: &mut Option<OwnedFd>, pending: &mut Vec<u8>) {
    let Some(pipe) = feed else {
        return;
    };
    if pending.is_empty() {
        let mut buffer = [0u8; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
            Ok(got) if got > 0 => pending.extend_from_slice(&buffer[..got]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The user pressed Ctrl-D, or the terminal is closed.
            _ => *feed = None,
        }
        return;
    }
    // `pending` fits into a pipe's atomic write, so this does not block after poll reported space.
    match rustix::io::write(pipe.as_fd(), pending) {
        Ok(written) => {
            pending.drain(..written);
        }
        Err(Errno::INTR | Errno::AGAIN) => {}
        // Rank 0 has closed its standard input.
        Err(_) => *feed = None,
    }
}

pub(super) fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(rustix::stdio::stdin())
        .is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The soft limit of open files before [`raise_open_files`].
static OPEN_FILES: OnceLock<u64> = OnceLock::new();

/// Raises the limit of open files: 60 ranks need about 200 descriptors, 1000 ranks need thousands.
/// Returns the old limit, which the ranks get.
pub(super) fn raise_open_files() -> Option<u64> {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    let before = limit.current?;
    limit.current = limit.maximum;
    rustix::process::setrlimit(Resource::Nofile, limit).ok()?;
    let _ = OPEN_FILES.set(before);
    Some(before)
}

/// Sets the limit of open files to that before [`raise_open_files`], for a program that replaces this one.
pub(super) fn lower_open_files() {
    if let Some(before) = OPEN_FILES.get() {
        let mut limit = rustix::process::getrlimit(Resource::Nofile);
        limit.current = Some(*before);
        // An error leaves the raised limit.
        let _ = rustix::process::setrlimit(Resource::Nofile, limit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_raised_and_lowered_again() {
        let soft = || rustix::process::getrlimit(Resource::Nofile).current;
        let mut limit = rustix::process::getrlimit(Resource::Nofile);
        let Some(most) = limit.maximum else { return };
        limit.current = Some(most - 1);
        rustix::process::setrlimit(Resource::Nofile, limit).expect("a lower limit");
        let before = soft();
        assert_eq!(raise_open_files(), before);
        assert_ne!(soft(), before);
        lower_open_files();
        assert_eq!(soft(), before);
    }
}

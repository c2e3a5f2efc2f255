//! The front end: the process that the user started and that the shell waits for.
//!
//! It forks the supervisor, forwards signals, feeds a terminal's input to rank 0, and exits with the supervisor's exit code.
//! The supervisor leaves the front end's process group, so a signal to the group (Ctrl-C, `kill -9 -PGID`) reaches the front end alone
//! and the supervisor receives it once only, through the socket.

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

/// Runs a plan; returns the exit code.
pub fn run(plan: &Plan) -> i32 {
    report_error(launch(plan))
}

/// Serves the process at the other end of standard input, which has started this one and waits for it to exit:
/// a forked copy stays and serves.
pub fn adopt(plan: &Plan, job: String) -> i32 {
    let adopted = || {
        let socket = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        // While standard input also holds this end of the socket, its closing would not be seen.
        rustix::stdio::dup2_stdin(nothing()?)?;
        match sys::fork()? {
            Forked::Parent(_) => Ok(0),
            Forked::Child => serve(plan, (nothing()?, None), Some(Adopted { socket, job })),
        }
    };
    report_error(adopted())
}

fn nothing() -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
}

fn report_error(code: io::Result<i32>) -> i32 {
    code.unwrap_or_else(|error| {
        printable::eprintln!("mpirun: starting the launcher's second process failed: {error}");
        1
    })
}

fn launch(plan: &Plan) -> io::Result<i32> {
    if !rustix::termios::isatty(rustix::stdio::stdin()) {
        let stdin = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        return serve(plan, (stdin, None), None);
    }
    // A rank is in a process group of its own and may not read the terminal; this process reads it and forwards the input.
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    serve(plan, (read, Some(write)), None)
}

/// Runs the supervisor, with the ranks' input and the pipe that a terminal's input goes into.
fn serve(
    plan: &Plan,
    (stdin, feed): (OwnedFd, Option<OwnedFd>),
    adopted: Option<Adopted>,
) -> io::Result<i32> {
    let mut waited = FORWARDED.to_vec();
    waited.push(libc::SIGCHLD);
    // No debugger starts or attaches to the launcher of an adopted process.
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

/// Runs `work` in a child that this process guards: if the child is killed, its orphans become this process's children and are ended.
///
/// `work` gets a socket that closes when the guard dies, the signals it must take, and the old limit of open files.
pub fn guarded(work: impl FnOnce(OwnedFd, OwnedFd, Option<u64>) -> i32) -> io::Result<i32> {
    let waited = [libc::SIGCHLD, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];
    guard(&waited, (None, None), work)
}

/// The same, with the signals that both processes take, the pipe that a terminal's input is fed to, and the table for debuggers.
fn guard(
    waited: &[Signal],
    (feed, table): (Option<OwnedFd>, Option<TableFile>),
    work: impl FnOnce(OwnedFd, OwnedFd, Option<u64>) -> i32,
) -> io::Result<i32> {
    sys::adopt_orphans()?;
    let nofile = raise_open_files();
    let (to_child, to_guard) = socketpair(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    // Before the fork, so that even a child that ends at once is noticed.
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
            // Drops the descriptors that only the child's work needs, such as rank 0's input.
            drop((to_guard, work));
            let code = attend(child, &to_child, &signals, feed, table);
            // This process has no descendants if the child exited by itself; if it was killed, its orphans are children of this process now.
            descendants::end_all();
            Ok(code)
        }
    }
}

fn become_supervisor(waited: &[Signal]) -> io::Result<OwnedFd> {
    rustix::process::setpgid(None, None)?;
    sys::adopt_orphans()?;
    sys::signal_file(waited)
}

/// Serves until the supervisor has ended.
fn attend(
    supervisor: i32,
    to_supervisor: &OwnedFd,
    signals: &OwnedFd,
    mut feed: Option<OwnedFd>,
    table: Option<TableFile>,
) -> i32 {
    let mut pending: Vec<u8> = Vec::new();
    let mut memory_trim = MemoryTrim::default();
    let mut hung_up = false;
    loop {
        let ours = feed.is_some() && in_foreground();
        let mut fds = vec![
            PollFd::new(signals, PollFlags::IN),
            PollFd::new(to_supervisor, PollFlags::IN),
        ];
        // The end of the supervisor is known by its signal.
        fds.truncate(if hung_up { 1 } else { 2 });
        let stdin = rustix::stdio::stdin();
        match &feed {
            Some(feed) if !pending.is_empty() => fds.push(PollFd::new(feed, PollFlags::OUT)),
            Some(_) if ours => fds.push(PollFd::new(&stdin, PollFlags::IN)),
            _ => {}
        }
        // A background process may not read the terminal; poll from time to time whether it is in the foreground again.
        let pause = (feed.is_some() && !ours).then_some(Timespec {
            tv_sec: 0,
            tv_nsec: 200_000_000,
        });
        match poll(&mut fds, memory_trim.pause(pause).as_ref()) {
            Ok(0) => memory_trim.trim_once(),
            Ok(_) | Err(Errno::INTR) => {}
            Err(_) => return 1,
        }
        let at = if hung_up { 1 } else { 2 };
        let input = fds.get(at).is_some_and(|fd| !fd.revents().is_empty());
        let news = !hung_up && fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        drop(fds);
        hung_up |= news && !show_debuggers(to_supervisor, table.as_ref());
        while let Some(signal) = sys::next_signal(signals) {
            if signal == libc::SIGCHLD {
                while let Some((pid, ended)) = sys::reap() {
                    if pid == supervisor {
                        return ended.code();
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

/// Shows debuggers what the supervisor reports. Returns false if nothing more will come.
fn show_debuggers(to_supervisor: &OwnedFd, table: Option<&TableFile>) -> bool {
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
        _ => {}
    }
    true
}

fn send(to_supervisor: &OwnedFd, byte: u8) {
    // If the supervisor has died, SIGCHLD reports it in a moment.
    let _ = rustix::net::send(
        to_supervisor,
        &[byte],
        SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
    );
}

fn pass_on(to_supervisor: &OwnedFd, signal: Signal) {
    send(to_supervisor, signal as u8);
    if signal == libc::SIGTSTP {
        // The shell must see this process stop; the supervisor stops the ranks.
        sys::stop_self();
    }
}

/// Forwards input: reads if nothing is pending, else writes.
fn feed_rank_0(feed: &mut Option<OwnedFd>, pending: &mut Vec<u8>) {
    let Some(pipe) = feed else {
        return;
    };
    if pending.is_empty() {
        let mut buffer = [0u8; 4096];
        match rustix::io::read(rustix::stdio::stdin(), &mut buffer) {
            Ok(got) if got > 0 => pending.extend_from_slice(&buffer[..got]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            // Ctrl-D, or the terminal is closed.
            _ => *feed = None,
        }
        return;
    }
    // At most what a pipe takes at once, so this does not block after poll has reported space.
    match rustix::io::write(pipe.as_fd(), pending) {
        Ok(written) => {
            pending.drain(..written);
        }
        Err(Errno::INTR | Errno::AGAIN) => {}
        // Rank 0 does not read any more.
        Err(_) => *feed = None,
    }
}

fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(rustix::stdio::stdin())
        .is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Raises the limit: 60 ranks need about 200 descriptors, 1000 need thousands. Returns the old limit, which the ranks get.
fn raise_open_files() -> Option<u64> {
    let mut limit = rustix::process::getrlimit(Resource::Nofile);
    let before = limit.current?;
    limit.current = limit.maximum;
    rustix::process::setrlimit(Resource::Nofile, limit).ok()?;
    Some(before)
}

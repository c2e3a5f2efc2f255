//! Link to another host: the command that reaches the host, a send queue, and the received frames.
//!
//! No function blocks: the owner polls for space while bytes are queued.

use super::hold;
use super::limits::Limits;
use super::program::RemoteLaunch;
use super::sys::{self, Image, Wiring};
use super::wire::{ALL, Branch, Frames, Hello, ToDaemon, frame};
use mpi_base::environment;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The queue length in bytes from which the receiver counts as slow.
const QUEUE_MAX: usize = 1 << 20;

/// A queue of bytes for a pipe or socket.
#[derive(Debug, Default)]
pub struct Queue {
    bytes: VecDeque<u8>,
}

impl Queue {
    /// Appends bytes to the queue.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
    }

    /// Returns true if all bytes have been written.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns true if the receiver is slow: the caller should read no more data for the receiver.
    /// More bytes may still be pushed.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= QUEUE_MAX
    }

    /// Writes without blocking. Returns the number of bytes written; `None` without a reader.
    pub fn drain_into(&mut self, fd: impl AsFd) -> Option<usize> {
        self.drain_with(|bytes| rustix::io::write(&fd, bytes))
    }

    /// Writes the queue with a given nonblocking write function; returns as [`Queue::drain_into`].
    pub fn drain_with(&mut self, write: impl Fn(&[u8]) -> Result<usize, Errno>) -> Option<usize> {
        let mut total = 0;
        while !self.bytes.is_empty() {
            match write(self.bytes.as_slices().0) {
                Ok(written) => {
                    self.bytes.drain(..written);
                    total += written;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.bytes.clear();
                    return None;
                }
            }
        }
        Some(total)
    }
}

/// Creates a pipe whose read end is nonblocking.
pub fn reading_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&read, true)?;
    Ok((read, write))
}

/// Creates a pipe whose write end is nonblocking.
pub fn writing_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&write, true)?;
    Ok((read, write))
}

/// The pid of a link whose command is not a child of this process.
const NO_CHILD: i32 = 0;

/// The process that starts the command of a link.
pub enum Starter<'a> {
    Itself {
        /// The pipe for reports of failed starts.
        report: BorrowedFd<'a>,
        nofile: Option<u64>,
    },
    /// The front end at the other end of this socket: the command is not among the dumped processes.
    FrontEnd(BorrowedFd<'a>),
}

/// A link to another host and to the hosts that are reached through it.
#[derive(Debug)]
pub struct Link {
    pub branch: Branch,
    /// The pid of the command that reaches the host.
    pub pid: i32,
    /// The write end to the command; `None` after the last frame was sent.
    to: Option<OwnedFd>,
    /// The read end from the command; `None` after the other side has ended.
    from: Option<OwnedFd>,
    queue: Queue,
    /// During a checkpoint: the frames that are sent after it.
    after: Option<Vec<u8>>,
    /// Whether the daemon is silent until the end of a checkpoint.
    is_silent: bool,
    pub frames: Frames,
    opened: Instant,
    last_received: Instant,
    last_sent: Instant,
}

/// The result of reading from a link.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    Bytes,
    Nothing,
    End,
}

impl Link {
    /// Starts the command that reaches a host and sends `Hello` through it.
    pub fn open(hello: Hello, by: &Starter<'_>) -> io::Result<Link> {
        let (theirs_in, ours_out) = writing_pipe()?;
        let (ours_in, theirs_out) = reading_pipe()?;
        let (remote, has_images) = (&hello.remote, hello.images.is_some());
        let argv = command(remote, &hello.branch.name, has_images);
        let (stdin, stdout) = (theirs_in.as_fd(), theirs_out.as_fd());
        let pid = match by {
            Starter::Itself { report, nofile } => {
                start_command(&argv, (stdin, stdout), *report, *nofile)?
            }
            Starter::FrontEnd(front_end) => {
                hold::reach(front_end, &argv, stdin, stdout)?;
                NO_CHILD
            }
        };
        let mut link = Link {
            branch: hello.branch.clone(),
            pid,
            to: Some(ours_out),
            from: Some(ours_in),
            queue: Queue::default(),
            after: None,
            is_silent: false,
            frames: Frames::new(true),
            opened: Instant::now(),
            last_received: Instant::now(),
            last_sent: Instant::now(),
        };
        let host = hello.branch.host;
        link.send(&frame(host, &ToDaemon::Hello(Box::new(hello))));
        Ok(link)
    }

    /// Returns true if the route to that host begins with this link.
    pub fn covers(&self, host: u32) -> bool {
        self.branch.hosts().contains(&host)
    }

    /// Returns true while data may still arrive: the other side has not ended and was not given up.
    pub fn is_open(&self) -> bool {
        self.from.is_some()
    }

    /// Returns the descriptor to read frames from.
    pub fn read_fd(&self) -> Option<BorrowedFd<'_>> {
        self.from.as_ref().map(AsFd::as_fd)
    }

    /// Returns the descriptor to write frames to.
    pub fn write_fd(&self) -> Option<BorrowedFd<'_>> {
        self.to.as_ref().map(AsFd::as_fd)
    }

    /// Queues a frame and writes without blocking; drops the frame if the link has no reader.
    pub fn send(&mut self, frame: &[u8]) {
        match &mut self.after {
            Some(after) => after.extend_from_slice(frame),
            None => self.send_now(frame),
        }
    }

    fn send_now(&mut self, frame: &[u8]) {
        if self.to.is_some() {
            self.last_sent = Instant::now();
            self.queue.push(frame);
            self.drain();
        }
    }

    /// Asks the daemon to be silent until [`Link::release`]. Later frames wait until then.
    pub fn hold(&mut self) {
        if self.is_open() && self.after.is_none() {
            let host = self.branch.host;
            self.send(&frame(host, &ToDaemon::Hold));
            (self.after, self.is_silent) = (Some(Vec::new()), false);
        }
    }

    /// Records that the daemon is silent, and has received everything.
    pub fn set_silent(&mut self) {
        self.is_silent = self.after.is_some();
    }

    /// Returns true if the link is open and neither side sends anything.
    pub fn is_silent(&self) -> bool {
        self.is_open() && self.is_silent && self.queue.is_empty()
    }

    /// Ends the silence: the time of a checkpoint does not count for the time limits.
    pub fn release(&mut self) {
        (self.last_received, self.is_silent) = (Instant::now(), false);
        if let Some(after) = self.after.take() {
            self.send(&after);
        }
    }

    /// Returns the pipes to the other host and from it, of an open link.
    pub fn pipes(&self) -> Option<(BorrowedFd<'_>, BorrowedFd<'_>)> {
        self.write_fd().zip(self.read_fd())
    }

    /// Writes queued bytes without blocking.
    pub fn drain(&mut self) {
        if let Some(to) = &self.to
            && self.queue.drain_into(to).is_none()
        {
            self.to = None;
        }
    }

    /// Reads bytes from the link with one system call.
    pub fn receive(&mut self) -> Received {
        let Some(from) = &self.from else {
            return Received::End;
        };
        let mut buffer = vec![0u8; 64 * 1024];
        match rustix::io::read(from, &mut buffer) {
            Ok(got @ 1..) => {
                self.last_received = Instant::now();
                self.frames.push(&buffer[..got]);
                Received::Bytes
            }
            Err(Errno::AGAIN | Errno::INTR) => Received::Nothing,
            _ => {
                self.close();
                Received::End
            }
        }
    }

    /// Closes the link; the daemon at the other side then ends all its processes.
    pub fn close(&mut self) {
        (self.to, self.from) = (None, None);
    }

    /// Returns true if the other side has not sent its greeting yet; then no rank runs there.
    pub fn is_unanswered(&self) -> bool {
        self.is_open() && !self.frames.is_greeted()
    }

    /// Returns true if a keep-alive frame is due.
    fn is_heartbeat_due(&self, limits: &Limits) -> bool {
        !limits.silence.is_zero()
            && self.is_open()
            && self.last_sent.elapsed() >= limits.silence / 3
    }

    /// Returns the reason to give up the other side, whose messages are overdue.
    /// Returns `None` if no message is overdue or the link is closed.
    fn overdue_reason(&self, limits: &Limits) -> Option<String> {
        let passed = |since: Instant, limit: Duration| !limit.is_zero() && since.elapsed() >= limit;
        if !self.is_open() {
            None
        } else if !self.frames.is_greeted() {
            passed(self.opened, limits.greeting).then(|| {
                format!(
                    "it has not answered for {} s (the parameter mpirun_greeting)",
                    limits.greeting.as_secs_f64()
                )
            })
        } else {
            let may_be_silent = self.after.is_some() && self.is_silent;
            let silent = !may_be_silent && passed(self.last_received, limits.silence);
            silent.then(|| format!("it has sent nothing for {} s", limits.silence.as_secs_f64()))
        }
    }
}

/// Sends due keep-alive frames. Returns each overdue link with a message about it.
pub fn keep(links: &mut [Link], limits: &Limits) -> Vec<(usize, String)> {
    let heartbeat = frame(ALL, &ToDaemon::Heartbeat);
    let mut late = Vec::new();
    for (number, link) in links.iter_mut().enumerate() {
        // A daemon that is silent early has a guard, which waits until all hosts are silent.
        if link.is_heartbeat_due(limits) {
            link.send_now(&heartbeat);
        }
        if let Some(why) = link.overdue_reason(limits) {
            late.push((number, why));
        }
    }
    late
}

/// Starts a command that reaches a host, with these standard files. Returns its pid.
pub fn start_command(
    argv: &[OsString],
    (stdin, stdout): (BorrowedFd<'_>, BorrowedFd<'_>),
    report: BorrowedFd<'_>,
    nofile: Option<u64>,
) -> io::Result<i32> {
    let Some(program) = argv.first().map(find) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let env = environment::for_children();
    let image = Image::new(program.as_os_str(), argv, env, None)?;
    sys::start(
        &image,
        &Wiring {
            stdin,
            stdout,
            // The user must see the command's password prompt and error messages.
            stderr: rustix::stdio::stderr(),
            keep: &[],
            report,
            nofile,
            cpus: None,
        },
    )
}

/// Builds the command that reaches a host and executes the daemon on that host.
pub fn command(remote: &RemoteLaunch, host: &str, has_images: bool) -> Vec<OsString> {
    let RemoteLaunch { agent, mpirun, .. } = remote;
    let mut words: Vec<OsString> = agent.to_vec();
    if words.is_empty() {
        words.push("ssh".into());
    }
    let is_ssh = Path::new(&words[0])
        .file_name()
        .is_some_and(|name| name == "ssh");
    if is_ssh && words.len() == 1 {
        // `-x` disables X11 forwarding. `-T` requests no terminal, which would change the bytes.
        words.extend(["-x".into(), "-T".into()]);
    }
    if is_ssh {
        // `--` prevents ssh from parsing a host name that begins with `-` as an option.
        words.push("--".into());
    }
    words.push(host.into());
    let mut shell = b"exec ".to_vec();
    shell.extend(quoted(mpirun.as_os_str().as_bytes()));
    shell.extend_from_slice(match has_images {
        true => b" --daemon-with-images",
        false => b" --daemon",
    });
    words.push(OsString::from_vec(shell));
    words
}

/// Quotes a word so that a POSIX shell reads it back unchanged.
pub(super) fn quoted(word: &[u8]) -> Vec<u8> {
    let plain = |b: &u8| b.is_ascii_alphanumeric() || b"/._-+=@%,:".contains(b);
    if !word.is_empty() && word.iter().all(plain) {
        return word.to_vec();
    }
    let mut out = vec![b'\''];
    for &byte in word {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            byte => out.push(byte),
        }
    }
    out.push(b'\'');
    out
}

fn find(program: &OsString) -> OsString {
    if program.as_bytes().contains(&b'/') {
        return program.clone();
    }
    let path = environment::var("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
    std::env::split_paths(&path)
        .map(|place| place.join(program))
        .find(|path| path.is_file())
        .map_or_else(|| program.clone(), |path| path.into_os_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_far_command_is_one_word_for_a_shell() {
        let remote = |agent: &[&str], mpirun: &str| RemoteLaunch {
            agent: agent.iter().map(OsString::from).collect(),
            mpirun: mpirun.into(),
            fanout: 1,
            limits: Limits {
                greeting: Duration::ZERO,
                silence: Duration::ZERO,
            },
        };
        let words = command(
            &remote(&["ssh"], "/opt/my mpi's/bin/mpirun"),
            "node1",
            false,
        );
        let expected = [
            "ssh",
            "-x",
            "-T",
            "--",
            "node1",
            "exec '/opt/my mpi'\\''s/bin/mpirun' --daemon",
        ];
        assert_eq!(words, expected);
        let words = command(&remote(&["rsh", "-l", "me"], "/m"), "h", true);
        let expected = ["rsh", "-l", "me", "h", "exec /m --daemon-with-images"];
        assert_eq!(words, expected);
    }
}

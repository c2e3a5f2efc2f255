//! The relay of the output between the dumped processes and the user.
//!
//! The supervisor writes to two pipes. This relay writes what it reads to the outputs of mpirun.

use crate::launch::output::Sink;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};

/// The maximum time for which an ended job waits for a reader of its output.
const LIMIT: Duration = Duration::from_secs(1);

struct Channel {
    name: &'static str,
    /// The pipe from the supervisor; `None` after its end.
    pipe: Option<OwnedFd>,
    sink: Sink,
}

pub(super) struct Relay {
    channels: [Channel; 2],
    /// Whether output is lost.
    is_incomplete: bool,
}

impl Relay {
    /// Creates the relay with the reading ends of the pipes, which must be nonblocking.
    pub(super) fn new(stdout: OwnedFd, stderr: OwnedFd) -> io::Result<Relay> {
        let own = |fd: BorrowedFd<'_>| rustix::io::fcntl_dupfd_cloexec(fd, 3);
        let channel = |name, pipe, of: BorrowedFd<'_>| {
            own(of).map(|fd| Channel {
                name,
                pipe: Some(pipe),
                sink: Sink::new(fd),
            })
        };
        Ok(Relay {
            channels: [
                channel("standard output", stdout, rustix::stdio::stdout())?,
                channel("standard error", stderr, rustix::stdio::stderr())?,
            ],
            is_incomplete: false,
        })
    }

    /// Adds the pipes that may be read, and the outputs that have queued bytes.
    pub(super) fn poll<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        for channel in &self.channels {
            if let (Some(pipe), false) = (&channel.pipe, channel.sink.is_full()) {
                fds.push(PollFd::new(pipe, PollFlags::IN));
            }
            if !channel.sink.is_empty() {
                fds.push(PollFd::new(&channel.sink, PollFlags::OUT));
            }
        }
    }

    /// Forwards what can be read and written without blocking.
    pub(super) fn step(&mut self) {
        for channel in &mut self.channels {
            if !channel.sink.is_full() {
                channel.read();
            }
            self.is_incomplete |= channel.write();
        }
    }

    /// Reads the pipes until they are empty, however much is queued.
    pub(super) fn empty_pipes(&mut self) {
        for channel in &mut self.channels {
            while channel.read() {}
        }
    }

    /// Queues a message of mpirun on standard error.
    pub(super) fn say(&mut self, text: &str) {
        let [_, stderr] = &mut self.channels;
        let line = format!("mpirun: {text}\n");
        stderr.sink.push(printable::text(&line).as_bytes());
    }

    /// Writes bytes to the standard output behind all that was read, and waits for its reader.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        let [stdout, _] = &mut self.channels;
        stdout.sink.push(bytes);
        while !stdout.sink.is_empty() && !stdout.sink.is_broken() {
            stdout.write();
            if !stdout.sink.is_empty() {
                let fd = PollFd::from_borrowed_fd(stdout.sink.as_fd(), PollFlags::OUT);
                let _ = rustix::event::poll(&mut [fd], None);
            }
        }
    }

    /// Writes everything; waits for a slow reader as long as `waits`, or one second.
    /// Returns true if output was lost.
    pub(super) fn finish(&mut self, mut waits: impl FnMut() -> bool) -> bool {
        self.empty_pipes();
        let mut limit = None;
        loop {
            self.step();
            let mut fds = Vec::new();
            for channel in &self.channels {
                if !channel.sink.is_empty() {
                    fds.push(PollFd::from_borrowed_fd(
                        channel.sink.as_fd(),
                        PollFlags::OUT,
                    ));
                }
            }
            if fds.is_empty() {
                return self.is_incomplete;
            }
            if !waits() {
                let end = *limit.get_or_insert_with(|| Instant::now() + LIMIT);
                if Instant::now() >= end {
                    return self.is_incomplete;
                }
            }
            let pause = rustix::event::Timespec {
                tv_sec: 0,
                tv_nsec: 100_000_000,
            };
            let _ = rustix::event::poll(&mut fds, Some(&pause));
        }
    }
}

impl Channel {
    /// Reads once. Returns true if more may be there.
    fn read(&mut self) -> bool {
        let Some(pipe) = &self.pipe else {
            return false;
        };
        let mut buffer = [0; 64 * 1024];
        match rustix::io::read(pipe, &mut buffer) {
            Ok(got @ 1..) => {
                self.sink.push(&buffer[..got]);
                true
            }
            Err(Errno::INTR) => true,
            Err(Errno::AGAIN) => false,
            _ => {
                self.pipe = None;
                false
            }
        }
    }

    /// Writes queued bytes. If the reader has closed the output, the supervisor's next write fails, and
    /// the supervisor ends the job. Returns true if bytes are lost by another error.
    fn write(&mut self) -> bool {
        self.sink.drain();
        if self.sink.is_broken() {
            self.pipe = None;
        }
        let error = self.sink.take_write_error();
        if let Some(error) = error {
            let error = io::Error::from(error);
            let name = self.name;
            printable::eprintln!("mpirun: mpirun's {name} cannot be written any more: {error}");
        }
        error.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    fn pipe() -> (OwnedFd, OwnedFd) {
        pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap()
    }

    #[test]
    fn bytes_are_forwarded_in_their_order_and_a_closed_output_closes_its_pipe() {
        let ((from, supervisor), (user, to)) = (pipe(), pipe());
        let mut channel = Channel {
            name: "standard output",
            pipe: Some(from),
            sink: Sink::new(to),
        };
        for line in ["one\n", "half", " line\n"] {
            rustix::io::write(&supervisor, line.as_bytes()).unwrap();
            while channel.read() {}
        }
        assert!(!channel.write());
        let mut got = [0; 64];
        let length = rustix::io::read(&user, &mut got).unwrap();
        assert_eq!(&got[..length], b"one\nhalf line\n");
        drop(user);
        rustix::io::write(&supervisor, b"late\n").unwrap();
        channel.read();
        assert!(!channel.write(), "a closed pipe is no lost output");
        assert_eq!(rustix::io::write(&supervisor, b"x"), Err(Errno::PIPE));
    }
}

//! The ranks' output: cut into lines, so that no line of one rank is broken by another's.
//!
//! A [`Stream`] gathers what one rank writes to one of its two outputs; whole lines go to a [`Sink`], mpirun's own output.
//! A last line without a newline is given out when the stream ends, and after a moment of quiet if a person watches on a terminal,
//! who may be looking at a prompt.
//!
//! A sink never blocks the launcher: what the reader does not take is queued, and when the queue is long,
//! the ranks are no longer read, so that they wait as they would on a pipe of their own.

use super::sys;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;

/// A line longer than this is passed on in pieces.
const LINE_MAX: usize = 1 << 20;

/// When this much is queued, the ranks are not read.
const QUEUE_MAX: usize = 1 << 20;

/// Writes of this size to a pipe that reports room do not block (POSIX, PIPE_BUF).
const PIECE: usize = 4096;

/// One output of one rank.
#[derive(Debug)]
pub struct Stream {
    /// Where the rank is read; `None` where its bytes come from another host.
    pub fd: Option<OwnedFd>,
    pub to: Target,
    style: Style,
    partial: Vec<u8>,
}

/// What is done with the lines of a stream.
#[derive(Debug, Default)]
pub struct Style {
    /// Stands before each line; empty without `--tag-output` and `--label`.
    pub tag: String,
    pub timestamp: bool,
    /// Gets everything as it is.
    pub file: Option<File>,
    /// Whether mpirun does not give it out.
    pub silent: bool,
}

/// Which of mpirun's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Stdout,
    Stderr,
}

/// What a read of a stream found.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    Some,
    Nothing,
    End,
}

impl Stream {
    /// The output of a rank of this host behind `fd`, or of another host, whose bytes come by a link.
    pub fn new(fd: Option<OwnedFd>, to: Target, style: Style) -> Stream {
        Stream {
            fd,
            to,
            style,
            partial: Vec::new(),
        }
    }

    /// Reads once and gives whole lines to the sink.
    pub fn read(&mut self, sink: &mut Sink) -> Read {
        let Some(fd) = &self.fd else {
            return Read::Nothing;
        };
        let mut buffer = [0u8; 64 * 1024];
        match rustix::io::read(fd, &mut buffer) {
            Ok(0) => Read::End,
            Ok(got) => {
                self.take(&buffer[..got], sink);
                Read::Some
            }
            Err(Errno::INTR) => Read::Some,
            Err(Errno::AGAIN) => Read::Nothing,
            Err(_) => Read::End,
        }
    }

    /// Whether the beginning of a line waits for its end.
    pub fn has_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Gives out the beginning of a line as it is.
    pub fn flush(&mut self, sink: &mut Sink) {
        if self.has_partial() {
            let partial = std::mem::take(&mut self.partial);
            sink.push(self.head().as_bytes());
            sink.push(&partial);
        }
    }

    /// What stands before a line that comes now.
    fn head(&self) -> String {
        match self.style.timestamp {
            true => format!("{} {}", sys::wall_clock(), self.style.tag),
            false => self.style.tag.clone(),
        }
    }

    /// Takes bytes of the rank.
    pub fn take(&mut self, bytes: &[u8], sink: &mut Sink) {
        if let Some(file) = &mut self.style.file
            && file.write_all(bytes).is_err()
        {
            // A full disk must not end the job; what is on the terminal is still whole.
            self.style.file = None;
        }
        if self.style.silent {
            return;
        }
        self.partial.extend_from_slice(bytes);
        let whole = match self.partial.iter().rposition(|&byte| byte == b'\n') {
            Some(at) => at + 1,
            None if self.partial.len() > LINE_MAX => self.partial.len(),
            None => return,
        };
        let rest = self.partial.split_off(whole);
        let lines = std::mem::replace(&mut self.partial, rest);
        let head = self.head();
        if head.is_empty() {
            sink.push(&lines);
        } else {
            for line in lines.split_inclusive(|&byte| byte == b'\n') {
                sink.push(head.as_bytes());
                sink.push(line);
            }
        }
    }
}

/// One of mpirun's own outputs.
#[derive(Debug)]
pub struct Sink {
    fd: OwnedFd,
    queue: VecDeque<u8>,
    /// Nobody reads any more.
    broken: bool,
}

impl Sink {
    /// An empty queue in front of one of mpirun's own outputs.
    pub fn new(fd: OwnedFd) -> Sink {
        Sink {
            fd,
            queue: VecDeque::new(),
            broken: false,
        }
    }

    /// Queues bytes; [`Sink::drain`] writes them.
    pub fn push(&mut self, bytes: &[u8]) {
        if !self.broken {
            self.queue.extend(bytes);
        }
    }

    /// Whether everything has been written.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the ranks are not to be read until some of it has been written.
    pub fn is_full(&self) -> bool {
        self.queue.len() >= QUEUE_MAX
    }

    /// Whether the reader has gone (`mpirun ... | head`).
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Writes as much as the reader takes without making anybody wait.
    pub fn drain(&mut self) {
        while !self.queue.is_empty() && has_room(self.fd.as_fd()) {
            let (front, _) = self.queue.as_slices();
            let piece = &front[..front.len().min(PIECE)];
            match rustix::io::write(&self.fd, piece) {
                Ok(written) => {
                    self.queue.drain(..written);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.broken = true;
                    self.queue.clear();
                }
            }
        }
    }
}

impl AsFd for Sink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn has_room(fd: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // A file that cannot be polled always has room; a write finds out whatever else is wrong.
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::{PipeFlags, pipe_with};

    fn pipe() -> (OwnedFd, OwnedFd) {
        pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).unwrap()
    }

    fn read_all(fd: &OwnedFd) -> String {
        let mut buffer = [0; 4096];
        let got = rustix::io::read(fd, &mut buffer).unwrap_or(0);
        String::from_utf8(buffer[..got].to_vec()).unwrap()
    }

    #[test]
    fn only_whole_lines_pass_and_the_rest_when_it_ends() {
        let (out, to_out) = pipe();
        let (from_rank, rank) = pipe();
        let mut sink = Sink::new(to_out);
        let mut stream = Stream::new(
            Some(from_rank),
            Target::Stdout,
            Style {
                tag: "[1,0]<stdout>: ".into(),
                ..Style::default()
            },
        );
        rustix::io::write(&rank, b"one\ntwo\nthr").unwrap();
        assert_eq!(stream.read(&mut sink), Read::Some);
        sink.drain();
        assert_eq!(read_all(&out), "[1,0]<stdout>: one\n[1,0]<stdout>: two\n");
        drop(rank);
        assert_eq!(stream.read(&mut sink), Read::End);
        stream.flush(&mut sink);
        sink.drain();
        assert_eq!(read_all(&out), "[1,0]<stdout>: thr");
    }

    #[test]
    fn a_slow_reader_fills_the_queue_and_blocks_nobody() {
        let (out, to_out) = pipe();
        let mut sink = Sink::new(to_out);
        sink.push(&vec![b'x'; QUEUE_MAX]);
        sink.drain();
        assert!(!sink.is_empty());
        drop(out);
        sink.drain();
        assert!(sink.is_broken() && sink.is_empty());
    }
}

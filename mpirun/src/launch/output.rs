//! Line buffering of the ranks' output, so that one rank's output never breaks another rank's line.
//!
//! A [`Stream`] buffers one of a rank's outputs; complete lines go to a [`Sink`], mpirun's output.
//! An incomplete line may be a prompt: it is printed at the end of the stream, or after [`PROMPT`].
//! Before another stream's bytes, a newline terminates an incomplete line.
//! No newline is added to the last line of a job.
//!
//! If a write to a stream's file fails, all further bytes go to mpirun's own output.
//! A sink keeps the error number of a failed write, except for a closed pipe.
//! The sinks' owner reports both failures ([`Sink::take_complaints`], [`Sink::take_write_error`]).
//!
//! A sink never blocks the launcher: bytes that the reader does not accept are queued.
//! With a long queue the launcher stops reading the ranks, which then block on their full pipes.

use super::sys;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The time for which an incomplete line is held back.
const PROMPT: Duration = Duration::from_millis(50);

/// The time for which an incomplete line is held back after a block of at least [`BLOCK`] bytes:
/// the program has probably filled its buffer and will continue the line when it is scheduled.
const CUT: Duration = Duration::from_secs(1);

/// The block size for [`CUT`] in bytes: a C library's buffer, an atomic pipe write (pipe(7)).
const BLOCK: usize = 4096;

/// The maximum line length in bytes; a longer line is forwarded in pieces.
const LINE_MAX: usize = 1 << 20;

/// The queue length in bytes from which the ranks are no longer read.
const QUEUE_MAX: usize = 1 << 20;

/// The write size in bytes that never blocks on a pipe that reports space (POSIX, PIPE_BUF).
const PIECE: usize = 4096;

/// The id of a stream, unique within one mpirun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamId(u64);

impl StreamId {
    /// The id for messages of mpirun itself.
    const MPIRUN: StreamId = StreamId(u64::MAX);

    /// Returns the id of standard output or standard error of a rank.
    pub fn new(job: usize, rank: u32, of: Target) -> StreamId {
        StreamId((job as u64) << 33 | u64::from(rank) << 1 | u64::from(of == Target::Stderr))
    }
}

/// The standard output or standard error of a rank, forwarded line by line.
#[derive(Debug)]
pub struct Stream {
    id: StreamId,
    /// The rank and the stream in the words of error messages: "rank 3's standard output".
    name: String,
    pub to: Target,
    style: Style,
    partial: Vec<u8>,
    /// The time at which the pending incomplete line is printed.
    prompt_at: Option<Instant>,
}

/// The output format of a stream's lines.
#[derive(Debug, Default)]
pub struct Style {
    /// The prefix of each line; empty without `--tag-output` and `--label`.
    pub tag: String,
    pub timestamp: bool,
    /// The file that receives all bytes unchanged (`--output`).
    pub file: Option<(PathBuf, File)>,
    /// Whether mpirun omits this stream from its own output.
    pub silent: bool,
    /// Whether bytes are forwarded immediately, without waiting for the end of a line.
    pub unbuffered: bool,
}

/// A rank's standard output or standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    Stdout,
    Stderr,
}

impl Stream {
    /// Creates a stream; `name` is used in error messages, such as "rank 3's standard output".
    pub fn new(id: StreamId, name: String, to: Target, style: Style) -> Stream {
        Stream {
            id,
            name,
            to,
            style,
            partial: Vec::new(),
            prompt_at: None,
        }
    }

    /// Returns the time at which the pending incomplete line is printed.
    pub fn prompt_at(&self) -> Option<Instant> {
        self.prompt_at
    }

    /// Prints the pending incomplete line.
    pub fn flush(&mut self, sink: &mut Sink) {
        self.prompt_at = None;
        if !self.partial.is_empty() {
            let partial = std::mem::take(&mut self.partial);
            self.give(&partial, sink);
        }
    }

    /// Returns the prefix for a line that is printed now.
    fn head(&self) -> String {
        match self.style.timestamp {
            true => format!("{} {}", sys::wall_clock(), self.style.tag),
            false => self.style.tag.clone(),
        }
    }

    /// Processes bytes that the rank has written.
    pub fn take(&mut self, bytes: &[u8], sink: &mut Sink) {
        // Bytes that the file has refused go to mpirun's own output.
        let refused = self.write_file(bytes, sink);
        let bytes = match self.style.silent {
            true => &bytes[bytes.len() - refused..],
            false => bytes,
        };
        if refused > 0 {
            self.style.silent = false;
        }
        if bytes.is_empty() {
            return;
        }
        self.partial.extend_from_slice(bytes);
        let newline = self.partial.iter().rposition(|&byte| byte == b'\n');
        // These bytes are not whole lines, so no newline separates them from other streams' bytes.
        let raw = self.style.unbuffered || newline.is_none() && self.partial.len() > LINE_MAX;
        let whole = match newline {
            _ if raw => self.partial.len(),
            Some(at) => at + 1,
            None => 0,
        };
        let rest = self.partial.split_off(whole);
        let lines = std::mem::replace(&mut self.partial, rest);
        if !lines.is_empty() {
            self.prompt_at = None;
            self.give(&lines, sink);
            if raw {
                sink.unfinished = None;
            }
        }
        if !self.partial.is_empty() {
            let patience = if bytes.len() < BLOCK { PROMPT } else { CUT };
            self.prompt_at
                .get_or_insert_with(|| Instant::now() + patience);
        }
    }

    /// Writes to the stream's file; returns the number of trailing bytes that the file has refused.
    /// After a failed write the file is closed and a complaint is queued.
    fn write_file(&mut self, bytes: &[u8], sink: &mut Sink) -> usize {
        let Some((path, file)) = &mut self.style.file else {
            return 0;
        };
        let mut left = bytes;
        let error = loop {
            if left.is_empty() {
                return 0;
            }
            match file.write(left) {
                Ok(0) => break std::io::ErrorKind::WriteZero.into(),
                Ok(written) => left = &left[written..],
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
        };
        sink.complaints.push(format!(
            "{} cannot be written to {} any more: {error}. From here on it goes to mpirun's own output.",
            self.name,
            printable::name(path)
        ));
        self.style.file = None;
        left.len()
    }

    /// Writes lines with their prefixes to the sink; the last line may be incomplete.
    fn give(&self, lines: &[u8], sink: &mut Sink) {
        let head = self.head();
        if head.is_empty() {
            return sink.push_of(self.id, lines);
        }
        for line in lines.split_inclusive(|&byte| byte == b'\n') {
            // The continuation of an open line already has its prefix.
            if sink.unfinished != Some(self.id) {
                sink.push_of(self.id, head.as_bytes());
            }
            sink.push_of(self.id, line);
        }
    }
}

/// One of mpirun's two output streams, with a queue.
#[derive(Debug)]
pub struct Sink {
    fd: OwnedFd,
    queue: VecDeque<u8>,
    /// The stream whose last line is incomplete, if any.
    unfinished: Option<StreamId>,
    /// Whether a write has failed, so that all further bytes are dropped.
    broken: bool,
    /// Whether the reader has closed the pipe (`mpirun ... | head`).
    closed: bool,
    /// The error of the failed write, except for a closed pipe.
    write_error: Option<Errno>,
    /// Messages about streams whose files failed.
    complaints: Vec<String>,
}

impl Sink {
    /// Creates a sink with an empty queue for one of mpirun's outputs.
    pub fn new(fd: OwnedFd) -> Sink {
        Sink {
            fd,
            queue: VecDeque::new(),
            unfinished: None,
            broken: false,
            closed: false,
            write_error: None,
            complaints: Vec::new(),
        }
    }

    /// Queues complete lines of mpirun itself; [`Sink::drain`] writes them.
    pub fn push(&mut self, lines: &[u8]) {
        self.push_of(StreamId::MPIRUN, lines);
    }

    /// Queues bytes of a stream, after a newline if another stream's line is incomplete.
    fn push_of(&mut self, stream: StreamId, bytes: &[u8]) {
        if self.broken {
            return;
        }
        if self.unfinished.is_some_and(|begun| begun != stream) {
            self.queue.push_back(b'\n');
        }
        self.queue.extend(bytes);
        self.unfinished = (bytes.last() != Some(&b'\n')).then_some(stream);
    }

    /// Removes and returns the error of the failed write; a closed pipe is not an error.
    pub fn take_write_error(&mut self) -> Option<Errno> {
        self.write_error.take()
    }

    /// Removes and returns the messages about streams whose files failed.
    pub fn take_complaints(&mut self) -> Vec<String> {
        std::mem::take(&mut self.complaints)
    }

    /// Returns true if everything has been written.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns true if the ranks must not be read until the queue is shorter.
    pub fn is_full(&self) -> bool {
        self.queue.len() >= QUEUE_MAX
    }

    /// Returns true if a write has failed or the reader has closed the pipe.
    pub fn is_broken(&self) -> bool {
        self.broken
    }

    /// Returns true if the reader has closed the pipe (`mpirun ... | head`).
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes queued bytes without blocking.
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
                Err(errno) => {
                    self.broken = true;
                    self.closed = errno == Errno::PIPE;
                    self.write_error = (errno != Errno::PIPE).then_some(errno);
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
    // A file that cannot be polled always has space; the write reports any other error.
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

    /// Returns a stream for the standard output of rank `rank`.
    fn stream(rank: u32, style: Style) -> Stream {
        let id = StreamId::new(0, rank, Target::Stdout);
        let name = format!("rank {rank}'s standard output");
        Stream::new(id, name, Target::Stdout, style)
    }

    fn tagged() -> Style {
        Style {
            tag: "[1,0]<stdout>: ".into(),
            ..Style::default()
        }
    }

    #[test]
    fn only_whole_lines_pass_and_the_rest_when_it_ends() {
        let (out, to_out) = pipe();
        let mut sink = Sink::new(to_out);
        let mut stream = stream(0, tagged());
        stream.take(b"one\ntwo\nthr", &mut sink);
        sink.drain();
        assert_eq!(read_all(&out), "[1,0]<stdout>: one\n[1,0]<stdout>: two\n");
        stream.flush(&mut sink);
        sink.drain();
        assert_eq!(read_all(&out), "[1,0]<stdout>: thr");
    }

    #[test]
    fn a_prompt_is_due_after_a_moment_and_its_line_goes_on_without_another_head() {
        let (out, to_out) = pipe();
        let mut sink = Sink::new(to_out);
        let mut stream = stream(0, tagged());
        stream.take(b"name? ", &mut sink);
        assert!(sink.is_empty() && stream.prompt_at().is_some());
        stream.flush(&mut sink);
        assert_eq!(stream.prompt_at(), None);
        stream.take(b"Ada\nbye\n", &mut sink);
        sink.drain();
        assert_eq!(
            read_all(&out),
            "[1,0]<stdout>: name? Ada\n[1,0]<stdout>: bye\n"
        );
    }

    #[test]
    fn a_line_that_a_block_has_cut_waits_longer_than_a_prompt() {
        let (_, to_out) = pipe();
        let mut sink = Sink::new(to_out);
        let mut due = |bytes: &[u8]| {
            let mut stream = stream(0, tagged());
            stream.take(bytes, &mut sink);
            stream.prompt_at().expect("an incomplete line")
        };
        let prompt = due(b"name? ");
        let block = due(&vec![b'x'; BLOCK]);
        assert!(block > prompt + (CUT - PROMPT) / 2);
    }

    #[test]
    fn lines_that_two_ranks_have_begun_are_not_one_line_and_the_last_stays_open() {
        let (out, to_out) = pipe();
        let mut sink = Sink::new(to_out);
        for rank in [0, 1] {
            let mut stream = stream(rank, Style::default());
            stream.take(format!("the last of {rank}").as_bytes(), &mut sink);
            stream.flush(&mut sink);
        }
        sink.drain();
        assert_eq!(read_all(&out), "the last of 0\nthe last of 1");
        sink.push(b"mpirun: a sentence\n");
        sink.drain();
        assert_eq!(read_all(&out), "\nmpirun: a sentence\n");
    }

    #[test]
    fn without_buffering_bytes_pass_as_they_come() {
        let (out, to_out) = pipe();
        let mut sink = Sink::new(to_out);
        for rank in [0, 1] {
            let style = Style {
                unbuffered: true,
                ..Style::default()
            };
            stream(rank, style).take(b"a\nb", &mut sink);
        }
        sink.drain();
        assert_eq!(read_all(&out), "a\nba\nb");
    }

    #[test]
    fn lines_that_a_full_disk_refuses_go_to_the_output_with_a_message() {
        let (out, to_out) = pipe();
        let mut sink = Sink::new(to_out);
        let full = || File::options().write(true).open("/dev/full").unwrap();
        let style = Style {
            file: Some(("/dev/full".into(), full())),
            silent: true,
            ..Style::default()
        };
        let mut stream = stream(3, style);
        stream.take(b"one\n", &mut sink);
        stream.take(b"two\n", &mut sink);
        sink.drain();
        assert_eq!(read_all(&out), "one\ntwo\n");
        let complaints = sink.take_complaints();
        assert_eq!(
            complaints,
            [
                "rank 3's standard output cannot be written to /dev/full any more: No space left on device (os error 28). From here on it goes to mpirun's own output."
            ]
        );

        let mut sink = Sink::new(full().into());
        sink.push(b"one\n");
        sink.drain();
        assert!(sink.is_broken());
        assert_eq!(sink.take_write_error(), Some(Errno::NOSPC));
    }

    #[test]
    fn a_slow_reader_fills_the_queue_and_blocks_no_other() {
        let (out, to_out) = pipe();
        let mut sink = Sink::new(to_out);
        sink.push(&vec![b'x'; QUEUE_MAX]);
        sink.drain();
        assert!(!sink.is_empty());
        drop(out);
        // A child that another test forks may hold a copy of the read end until its `exec`.
        while !sink.is_broken() {
            sink.drain();
            std::thread::yield_now();
        }
        assert!(sink.is_closed() && sink.is_empty());
        assert_eq!(sink.take_write_error(), None);
    }
}

//! Connection of the daemon to the launcher above: frames, send queue, time of the last activity.

use super::super::link::Queue;
use super::super::wire::{FrameError, Frames, GREETING};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};

pub(super) struct Uplink {
    from_above: OwnedFd,
    to_above: OwnedFd,
    frames: Frames,
    queue: Queue,
    last_received: Instant,
    last_sent: Instant,
    /// Whether the launcher above has ended; if so, no frame is sent.
    is_lost: bool,
}

/// The result of reading from the launcher above.
pub(super) enum FromAbove {
    Bytes,
    /// No data is available at the moment.
    Nothing,
    Ended,
}

impl Uplink {
    /// Takes over standard input and output for the link, and replaces both by `/dev/null`.
    pub(super) fn open() -> io::Result<Uplink> {
        use rustix::fs::{Mode, OFlags};
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let from_above = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let to_above = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        // Output of this process must not get between frames.
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::io::ioctl_fionbio(&from_above, true)?;
        rustix::io::ioctl_fionbio(&to_above, true)?;
        let mut queue = Queue::default();
        queue.push(GREETING);
        Ok(Uplink {
            from_above,
            to_above,
            frames: Frames::new(false),
            queue,
            last_received: Instant::now(),
            last_sent: Instant::now(),
            is_lost: false,
        })
    }

    /// Queues a frame; `write` sends it when the pipe has space.
    pub(super) fn send(&mut self, frame: &[u8]) {
        if !self.is_lost {
            self.last_sent = Instant::now();
            self.queue.push(frame);
        }
    }

    /// Returns true if the send queue is full, since the launcher above reads too slowly.
    pub(super) fn is_full(&self) -> bool {
        self.queue.is_full()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Marks the launcher above as lost. Returns false if it was marked before.
    pub(super) fn lose(&mut self) -> bool {
        !std::mem::replace(&mut self.is_lost, true)
    }

    /// Returns the time since this daemon last sent a frame.
    pub(super) fn since_sent(&self) -> Duration {
        self.last_sent.elapsed()
    }

    /// Returns the time since the launcher above last sent data.
    pub(super) fn since_received(&self) -> Duration {
        self.last_received.elapsed()
    }

    /// Begins the time limits again after a checkpoint.
    pub(super) fn restart_clock(&mut self) {
        (self.last_received, self.last_sent) = (Instant::now(), Instant::now());
    }

    /// Adds the link's descriptors to the poll set `fds`.
    pub(super) fn poll_fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        if !self.is_lost {
            fds.push(PollFd::new(&self.from_above, PollFlags::IN));
            if !self.queue.is_empty() {
                fds.push(PollFd::new(&self.to_above, PollFlags::OUT));
            }
        }
    }

    /// Reads available bytes with one system call; then `next_frame` returns complete frames.
    pub(super) fn read(&mut self) -> FromAbove {
        let mut buffer = vec![0u8; 64 * 1024];
        loop {
            return match rustix::io::read(&self.from_above, &mut buffer) {
                Ok(got @ 1..) => {
                    self.last_received = Instant::now();
                    self.frames.push(&buffer[..got]);
                    FromAbove::Bytes
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => FromAbove::Nothing,
                _ => FromAbove::Ended,
            };
        }
    }

    /// Returns the next complete frame: the addressed host and the body.
    pub(super) fn next_frame(&mut self) -> Result<Option<(u32, Vec<u8>)>, FrameError> {
        self.frames.next_frame()
    }

    /// Writes queued bytes without blocking; returns false if the pipe has no reader.
    pub(super) fn write(&mut self) -> bool {
        self.queue.drain_into(&self.to_above).is_some()
    }

    /// Writes the whole queue; blocks while the pipe is full.
    /// Stops if the pipe has no reader, or if `guard` reports the death of the guard process.
    pub(super) fn write_all(&mut self, guard: &OwnedFd) {
        while !self.queue.is_empty() && !self.is_lost && self.write() {
            let mut fds = [
                PollFd::new(&self.to_above, PollFlags::OUT),
                PollFd::new(guard, PollFlags::RDHUP),
            ];
            let _ = poll(&mut fds, None);
            if !fds[1].revents().is_empty() {
                return;
            }
        }
    }
}

//! The daemon's connection to the launcher above it: received frames, queued frames, and the time since either side sent something.

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
    /// The launcher above has ended; nothing is sent any more.
    is_lost: bool,
}

/// The result of reading from the launcher above.
pub(super) enum FromAbove {
    Bytes,
    /// No data for now.
    Nothing,
    Ended,
}

impl Uplink {
    /// Takes over standard input and output, which are `/dev/null` from then on.
    pub(super) fn open() -> io::Result<Uplink> {
        use rustix::fs::{Mode, OFlags};
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let from_above = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let to_above = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        // Nothing that this process prints may land between frames.
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

    /// Returns true if the launcher above does not read what this daemon sends.
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

    /// The time since this daemon sent something.
    pub(super) fn since_sent(&self) -> Duration {
        self.last_sent.elapsed()
    }

    /// The time since the launcher above sent something.
    pub(super) fn since_received(&self) -> Duration {
        self.last_received.elapsed()
    }

    /// Adds the descriptors to poll to `fds`.
    pub(super) fn poll_fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        if !self.is_lost {
            fds.push(PollFd::new(&self.from_above, PollFlags::IN));
            if !self.queue.is_empty() {
                fds.push(PollFd::new(&self.to_above, PollFlags::OUT));
            }
        }
    }

    /// Reads some of the bytes that have arrived; after that `next_frame` may return frames.
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

    /// Returns the next complete frame: its addressee and its body.
    pub(super) fn next_frame(&mut self) -> Result<Option<(u32, Vec<u8>)>, FrameError> {
        self.frames.next_frame()
    }

    /// Writes what the pipe takes; returns false if no process reads it any more.
    pub(super) fn write(&mut self) -> bool {
        self.queue.drain_into(&self.to_above).is_some()
    }

    /// Writes all that is queued, unless no process reads it any more; stops when `guard` reports the death of this host's own launcher.
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

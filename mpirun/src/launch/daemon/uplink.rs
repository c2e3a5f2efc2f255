//! The daemon's connection to the launcher above it: frames that come, frames that wait to go, and for how long either side has been silent.

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
    heard: Instant,
    told: Instant,
    /// The launcher above has gone; there is none left to tell.
    is_lost: bool,
}

/// What a look at what the launcher above has sent finds.
pub(super) enum FromAbove {
    Bytes,
    /// Nothing more for now.
    Nothing,
    Ended,
}

impl Uplink {
    /// Takes standard input and output over, which are `null` from then on.
    pub(super) fn open(null: &OwnedFd) -> io::Result<Uplink> {
        let from_above = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
        let to_above = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
        // What a rank's ancestor prints must not land between frames.
        rustix::stdio::dup2_stdin(null)?;
        rustix::stdio::dup2_stdout(null)?;
        rustix::io::ioctl_fionbio(&from_above, true)?;
        rustix::io::ioctl_fionbio(&to_above, true)?;
        let mut queue = Queue::default();
        queue.push(GREETING);
        Ok(Uplink {
            from_above,
            to_above,
            frames: Frames::new(false),
            queue,
            heard: Instant::now(),
            told: Instant::now(),
            is_lost: false,
        })
    }

    /// Sends a frame, as soon as there is room.
    pub(super) fn send(&mut self, frame: &[u8]) {
        if !self.is_lost {
            self.told = Instant::now();
            self.queue.push(frame);
        }
    }

    /// Whether the launcher above does not read what this daemon sends.
    pub(super) fn is_full(&self) -> bool {
        self.queue.is_full()
    }

    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Gives it up; false if it was given up before.
    pub(super) fn lose(&mut self) -> bool {
        !std::mem::replace(&mut self.is_lost, true)
    }

    /// How long this daemon has told nothing.
    pub(super) fn silence_here(&self) -> Duration {
        self.told.elapsed()
    }

    /// How long the launcher above has said nothing.
    pub(super) fn silence_above(&self) -> Duration {
        self.heard.elapsed()
    }

    /// What to wait for.
    pub(super) fn poll_fds<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        if !self.is_lost {
            fds.push(PollFd::new(&self.from_above, PollFlags::IN));
            if !self.queue.is_empty() {
                fds.push(PollFd::new(&self.to_above, PollFlags::OUT));
            }
        }
    }

    /// Reads some of what has come; then there may be frames.
    pub(super) fn read(&mut self) -> FromAbove {
        let mut buffer = vec![0u8; 64 * 1024];
        loop {
            return match rustix::io::read(&self.from_above, &mut buffer) {
                Ok(got @ 1..) => {
                    self.heard = Instant::now();
                    self.frames.push(&buffer[..got]);
                    FromAbove::Bytes
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => FromAbove::Nothing,
                _ => FromAbove::Ended,
            };
        }
    }

    /// The next whole frame: the host that it is for, and what it says.
    pub(super) fn next_frame(&mut self) -> Result<Option<(u32, Vec<u8>)>, FrameError> {
        self.frames.next_frame()
    }

    /// Writes what there is room for; false if no process reads it any more.
    pub(super) fn write(&mut self) -> bool {
        self.queue.drain_into(&self.to_above).is_some()
    }

    /// Writes all that is left, unless no process reads it any more; `guard` tells when this host's own launcher has died.
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

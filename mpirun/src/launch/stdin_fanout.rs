//! Fan-out of standard input to several readers, or to a reader on another host.
//!
//! Each reader on this host has a pipe and a queue.
//! The source is read only while all queues are empty, so the slowest reader limits the rate.

use super::link::{Queue, writing_pipe};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;

/// The pipes to the readers on this host.
#[derive(Debug, Default)]
pub struct Feed {
    pipes: Vec<(OwnedFd, Queue)>,
    ended: bool,
}

impl Feed {
    /// Adds a reader; returns the pipe end that becomes its standard input.
    /// `watch` gets the pipe's write end, to poll it for space.
    pub fn add(&mut self, watch: impl FnOnce(BorrowedFd<'_>)) -> io::Result<OwnedFd> {
        let (read, write) = writing_pipe()?;
        watch(write.as_fd());
        self.pipes.push((write, Queue::default()));
        Ok(read)
    }

    /// Returns true if a rank on this host still reads; ranks that have closed their input do not.
    pub fn has_readers(&self) -> bool {
        !self.pipes.is_empty()
    }

    /// Queues bytes for every reader, and writes without blocking.
    pub fn push(&mut self, bytes: &[u8]) {
        for (_, queue) in &mut self.pipes {
            queue.push(bytes);
        }
        self.drain();
    }

    /// Records that the input has ended; each reader's pipe is closed when its queue is empty.
    pub fn end(&mut self) {
        self.ended = true;
        self.drain();
    }

    /// Returns true if all queues are empty, so that the source may be read again.
    pub fn is_empty(&self) -> bool {
        self.pipes.iter().all(|(_, queue)| queue.is_empty())
    }

    /// Writes queued bytes without blocking; removes readers that have closed their input.
    pub fn drain(&mut self) {
        self.pipes
            .retain_mut(|(pipe, queue)| queue.drain_into(&*pipe).is_some());
        if self.ended {
            self.pipes.retain(|(_, queue)| !queue.is_empty());
        }
    }
}

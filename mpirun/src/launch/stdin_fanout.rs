//! Standard input for ranks that cannot inherit it: several readers, or one on another host.
//!
//! Each reader of this host has a pipe and a queue; a source is read only while all queues are empty,
//! so that the slowest reader sets the pace and nothing piles up here.

use super::link::{Queue, writing_pipe};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;

/// The pipes of this host's readers.
#[derive(Debug, Default)]
pub struct Feed {
    pipes: Vec<(OwnedFd, Queue)>,
    ended: bool,
}

impl Feed {
    /// Adds a reader; the result is its standard input. `watch` sees the pipe's other end, which tells when there is room.
    pub fn add(&mut self, watch: impl FnOnce(BorrowedFd<'_>)) -> io::Result<OwnedFd> {
        let (read, write) = writing_pipe()?;
        watch(write.as_fd());
        self.pipes.push((write, Queue::default()));
        Ok(read)
    }

    /// Whether any rank on this host is still to be fed; one that closes its input is not.
    pub fn has_readers(&self) -> bool {
        !self.pipes.is_empty()
    }

    /// Gives bytes to every reader, and writes what they take at once.
    pub fn push(&mut self, bytes: &[u8]) {
        for (_, queue) in &mut self.pipes {
            queue.push(bytes);
        }
        self.drain();
    }

    /// No more will come.
    pub fn end(&mut self) {
        self.ended = true;
        self.drain();
    }

    /// Whether the slowest reader has all, so that the source may be read again.
    pub fn is_empty(&self) -> bool {
        self.pipes.iter().all(|(_, queue)| queue.is_empty())
    }

    /// Writes what the readers take; a reader that has closed its input is forgotten.
    pub fn drain(&mut self) {
        self.pipes
            .retain_mut(|(pipe, queue)| queue.drain_into(&*pipe).is_some());
        if self.ended {
            self.pipes.retain(|(_, queue)| !queue.is_empty());
        }
    }
}

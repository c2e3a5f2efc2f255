//! The outpost's end: the last output of its ranks and of the hosts behind it.

use super::super::link::Link;
use super::Daemon;
use rustix::event::{PollFd, PollFlags, poll};

impl Daemon {
    pub(super) fn empty_pipes(&mut self) {
        for index in 0..self.ranks.len() {
            for stderr in [false, true] {
                while self.relay(index, stderr) {
                    if self.queue.is_full() {
                        self.write_all();
                    }
                }
            }
        }
    }

    /// Those below finish at the same time; their last words pass through us.
    pub(super) fn await_links(&mut self) {
        while !self.orphaned && self.links.iter().any(Link::is_open) {
            let _ = self.wait();
            self.read_guard();
            self.read_above();
            for number in 0..self.links.len() {
                self.read_link(number);
            }
            self.step();
        }
    }

    /// Writes all that is left, unless no process reads it any more.
    pub(super) fn write_all(&mut self) {
        while !self.queue.is_empty() && !self.orphaned {
            if self.queue.drain_into(&self.to_above).is_none() {
                return;
            }
            let mut fds = [
                PollFd::new(&self.to_above, PollFlags::OUT),
                PollFd::new(&self.guard, PollFlags::RDHUP),
            ];
            let _ = poll(&mut fds, None);
            let gone = !fds[1].revents().is_empty();
            if gone {
                return;
            }
        }
    }
}

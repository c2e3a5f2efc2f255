//! The daemon's shutdown: the last output of its ranks and of the hosts behind it.

use super::super::link::Link;
use super::Daemon;

impl Daemon {
    pub(super) fn empty_pipes(&mut self) {
        for index in 0..self.ranks.len() {
            for stderr in [false, true] {
                while self.relay(index, stderr) {
                    if self.uplink.is_full() {
                        self.uplink.write_all(&self.guard);
                    }
                }
            }
        }
    }

    /// Forwards the last frames of the daemons below, which finish at the same time.
    pub(super) fn await_links(&mut self) {
        while !self.uplink.is_lost() && self.links.iter().any(Link::is_open) {
            let _ = self.wait();
            self.read_guard();
            self.read_above();
            for number in 0..self.links.len() {
                self.read_link(number);
            }
            self.step();
        }
    }
}

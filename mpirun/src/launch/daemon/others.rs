//! Links of a daemon to further hosts: forwarding of frames, and reports of lost hosts.

use super::super::limits::Limits;
use super::super::wire::{self, FromDaemon};
use super::Daemon;

impl Daemon {
    /// Reads each link with one system call, unless the queue to the launcher above is full.
    pub(super) fn read_links(&mut self) {
        for number in 0..self.links.count() {
            if self.uplink.is_full() {
                return;
            }
            let arrived = self.links.read(number);
            for (host, body) in arrived.frames {
                self.uplink.send(&wire::raw_frame(host, &body));
            }
            if let Some(lost) = arrived.lost {
                let remote = self.hello.as_ref().map(|hello| &hello.remote);
                let why = remote.map_or_else(String::new, |remote| lost.sentence(remote));
                self.cut(number, why);
            }
        }
    }

    pub(super) fn cut(&mut self, number: usize, why: String) {
        let hosts = self.links.close(number);
        if !self.finishing {
            self.lose_hosts(hosts, why);
        }
    }

    pub(super) fn lose_hosts(&mut self, hosts: Vec<u32>, why: String) {
        self.report(&FromDaemon::Lost { hosts, why });
    }

    pub(super) fn keep(&mut self, limits: &Limits) {
        let silence = limits.silence;
        if !silence.is_zero() && self.uplink.since_sent() >= silence / 3 {
            self.report(&FromDaemon::Heartbeat);
        }
        for (number, why) in self.links.keep(limits) {
            self.cut(number, why);
        }
        if !silence.is_zero() && self.uplink.since_received() >= silence {
            self.lose_launcher(libc::SIGTERM);
        }
    }

    /// Closes unanswered links at the end of the job: their hosts run no ranks.
    pub(super) fn close_unanswered(&mut self) {
        for number in self.links.unanswered() {
            self.cut(number, "it has not answered".into());
        }
    }
}

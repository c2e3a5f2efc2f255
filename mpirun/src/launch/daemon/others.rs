//! A daemon and the hosts behind it: it forwards frames without decoding them and reports lost hosts upwards.

use super::super::limits::Limits;
use super::super::link::{self, Received};
use super::super::wire::{self, Branch, FromDaemon};
use super::Daemon;

impl Daemon {
    pub(super) fn read_link(&mut self, number: usize) {
        if self.uplink.is_full() || !self.links[number].is_open() {
            return;
        }
        let heard = self.links[number].receive();
        loop {
            match self.links[number].frames.next_frame() {
                Ok(Some((host, body))) => {
                    let frame = wire::raw_frame(host, &body);
                    self.uplink.send(&frame);
                }
                Ok(None) => break,
                Err(error) => return self.cut(number, error.to_string()),
            }
        }
        if heard == Received::End {
            self.cut(number, "its launcher has ended, or was not reached".into());
        }
    }

    pub(super) fn cut(&mut self, number: usize, why: String) {
        self.links[number].close();
        let hosts = Branch::hosts(&self.links[number].branch);
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
        for (number, why) in link::keep(&mut self.links, limits) {
            self.cut(number, why);
        }
        if !silence.is_zero() && self.uplink.since_received() >= silence {
            self.lose_launcher(libc::SIGTERM);
        }
    }

    /// The job ends: hosts below that have not answered run nothing, so they are not waited for.
    pub(super) fn close_unanswered(&mut self) {
        for number in 0..self.links.len() {
            if self.links[number].is_unanswered() {
                self.cut(number, "it has not answered".into());
            }
        }
    }
}

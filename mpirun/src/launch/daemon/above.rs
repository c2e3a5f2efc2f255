//! The daemon and the launcher above it: reports to it, orders from it, and the loss of it.

use super::super::link::Link;
use super::super::pmi_socket::SendOutcome;
use super::super::sys::{self, Signal};
use super::super::term_signals;
use super::super::wire::{self, ALL, FrameError, FromDaemon, Hello, ToDaemon, VERSION};
use super::uplink::FromAbove;
use super::{Daemon, LocalRank, watch_writable};
use crate::node;
use rustix::fd::AsFd;
use std::time::{Duration, Instant};

impl Daemon {
    pub(super) fn report(&mut self, what: &FromDaemon) {
        let frame = wire::frame(self.own_host(), what);
        self.uplink.send(&frame);
    }

    pub(super) fn read_guard(&mut self) {
        let mut byte = [0u8; 16];
        let flags = rustix::net::RecvFlags::DONTWAIT;
        match rustix::net::recv(&self.guard, &mut byte, flags) {
            Ok((got @ 1.., _)) => {
                // The guard forwards signals; each signal in the guard's set asks for the end.
                let signal = Signal::from(byte[got - 1]);
                self.lose_launcher(signal);
            }
            Ok(_) => self.lose_launcher(libc::SIGTERM),
            Err(_) => {}
        }
    }

    pub(super) fn read_above(&mut self) {
        while !self.uplink.is_lost() {
            let found = self.uplink.read();
            if matches!(found, FromAbove::Nothing) {
                return;
            }
            self.handle_frames();
            if matches!(found, FromAbove::Ended) {
                return self.lose_launcher(libc::SIGTERM);
            }
        }
    }

    pub(super) fn handle_frames(&mut self) {
        loop {
            match self.uplink.next_frame() {
                Ok(None) => return,
                Ok(Some((host, body))) => {
                    if host == ALL || host != self.own_host() {
                        let frame = wire::raw_frame(host, &body);
                        let all = host == ALL;
                        for link in &mut self.links {
                            if all || link.covers(host) {
                                link.send(&frame);
                            }
                        }
                    }
                    // A daemon that has not received its `Hello` does not know its host number.
                    if (host == ALL || host == self.own_host() || self.hello.is_none())
                        && let Err(error) = wire::open(&body).map(|down| self.handle_order(down))
                    {
                        return self.give_up(&error);
                    }
                }
                Err(error) => return self.give_up(&error),
            }
        }
    }

    pub(super) fn give_up(&mut self, error: &FrameError) {
        printable::eprintln!(
            "mpirun on {}: the launcher above is not understood: {error}",
            crate::hosts::own_name()
        );
        self.lose_launcher(libc::SIGTERM);
    }

    pub(super) fn handle_order(&mut self, what: ToDaemon) {
        match what {
            ToDaemon::Hello(hello) => self.accept_hello(*hello),
            ToDaemon::Launch(order) => self.launch(&order),
            ToDaemon::Pmi { proc, bytes } => {
                let rank = self.ranks.iter_mut().find(|rank| rank.proc == proc);
                if let Some(rank) = rank
                    && let Some(pmi) = &mut rank.pmi
                    && pmi.say(&bytes) == SendOutcome::Unread
                {
                    // The rank sees its socket close, takes the launcher for lost, and ends.
                    rank.pmi = None;
                }
            }
            ToDaemon::Stdin(bytes) => {
                self.unfed += bytes.len();
                self.feed.push(&bytes);
            }
            ToDaemon::StdinEnd => self.feed.end(),
            ToDaemon::Signal(signal) => self.signal(signal),
            ToDaemon::AskToEnd(signal) => {
                term_signals::ask_to_end(self.leaders(), signal);
                self.close_unanswered();
            }
            ToDaemon::KillWithoutHandler(signal) => {
                term_signals::kill_without_handler(self.leaders(), signal)
            }
            ToDaemon::Kill => {
                self.signal(libc::SIGKILL);
                self.close_unanswered();
            }
            ToDaemon::SignalRanks { procs, signal } => {
                let meant = |rank: &&LocalRank| rank.alive && procs.contains(&rank.proc);
                for rank in self.ranks.iter().filter(meant) {
                    sys::signal_group(rank.pid, signal);
                }
            }
            ToDaemon::TakeSnapshots => {
                let seen = self.ranks.iter().filter(|rank| rank.alive);
                let seen = seen.filter_map(|rank| Some((rank.proc, self.snapshot(rank)?)));
                let seen = seen.collect();
                self.report(&FromDaemon::Snapshots(seen));
            }
            ToDaemon::Time(asked) => self.report(&FromDaemon::Time {
                asked,
                now: node::now_ns(),
            }),
            ToDaemon::EventRings => self.send_event_rings(),
            ToDaemon::Finish => self.finishing = true,
            ToDaemon::Heartbeat => {}
        }
    }

    pub(super) fn accept_hello(&mut self, hello: Hello) {
        if hello.version != VERSION {
            printable::eprintln!(
                "mpirun on {}: this is version {VERSION}, but the launcher is version {}",
                hello.you.name,
                hello.version
            );
            return self.lose_launcher(libc::SIGTERM);
        }
        for branch in hello.you.below.clone() {
            let hosts = branch.hosts();
            let below = Hello {
                you: branch,
                ..hello.clone()
            };
            match Link::open(below, self.reports.1.as_fd(), self.nofile) {
                Ok(link) => {
                    if let Some(write_fd) = link.write_fd() {
                        watch_writable(&self.epoll, write_fd);
                    }
                    self.links.push(link);
                }
                Err(error) => self.lose_hosts(hosts, error.to_string()),
            }
        }
        self.hello = Some(hello);
    }

    /// The launcher above has ended or sends malformed frames: everything on this host ends.
    pub(super) fn lose_launcher(&mut self, signal: Signal) {
        if !self.uplink.lose() {
            return;
        }
        for link in &mut self.links {
            link.close();
        }
        term_signals::ask_to_end(self.leaders(), signal);
        let grace = self
            .hello
            .as_ref()
            .map_or(Duration::ZERO, |hello| hello.grace);
        self.kill_at = Some(Instant::now() + grace);
    }
}

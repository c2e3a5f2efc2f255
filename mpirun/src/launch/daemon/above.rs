//! The daemon and the launcher above it: reports to it, orders from it, and the loss of it.

use super::super::asking;
use super::super::link::Link;
use super::super::pmi_socket::Said;
use super::super::sys::{self, Signal};
use super::super::wire::{self, ALL, FrameError, FromDaemon, Hello, ToDaemon, VERSION};
use super::uplink::FromAbove;
use super::{Daemon, Here, watch_room};
use mpi_base::clock::now_ns;
use rustix::fd::AsFd;
use std::time::{Duration, Instant};

impl Daemon {
    pub(super) fn tell(&mut self, what: &FromDaemon) {
        let frame = wire::frame(self.me(), what);
        self.uplink.send(&frame);
    }

    pub(super) fn read_guard(&mut self) {
        let mut byte = [0u8; 16];
        let flags = rustix::net::RecvFlags::DONTWAIT;
        match rustix::net::recv(&self.guard, &mut byte, flags) {
            Ok((got @ 1.., _)) => {
                // The guard forwards signals; each signal in the guard's set asks for the end.
                let signal = Signal::from(byte[got - 1]);
                self.lose_above(signal);
            }
            Ok(_) => self.lose_above(libc::SIGTERM),
            Err(_) => {}
        }
    }

    pub(super) fn read_above(&mut self) {
        while !self.uplink.is_lost() {
            let found = self.uplink.read();
            if matches!(found, FromAbove::Nothing) {
                return;
            }
            self.obey_frames();
            if matches!(found, FromAbove::Ended) {
                return self.lose_above(libc::SIGTERM);
            }
        }
    }

    pub(super) fn obey_frames(&mut self) {
        loop {
            match self.uplink.next_frame() {
                Ok(None) => return,
                Ok(Some((host, body))) => {
                    if host == ALL || host != self.me() {
                        let frame = wire::raw_frame(host, &body);
                        let all = host == ALL;
                        for link in &mut self.links {
                            if all || link.covers(host) {
                                link.send(&frame);
                            }
                        }
                    }
                    // A daemon that has not received its `Hello` does not know its host number.
                    if (host == ALL || host == self.me() || self.hello.is_none())
                        && let Err(error) = wire::open(&body).map(|down| self.obey(down))
                    {
                        return self.despair(&error);
                    }
                }
                Err(error) => return self.despair(&error),
            }
        }
    }

    pub(super) fn despair(&mut self, error: &FrameError) {
        printable::eprintln!(
            "mpirun on {}: the launcher above is not understood: {error}",
            crate::hosts::own_name()
        );
        self.lose_above(libc::SIGTERM);
    }

    pub(super) fn obey(&mut self, what: ToDaemon) {
        match what {
            ToDaemon::Hello(hello) => self.greet(*hello),
            ToDaemon::Launch(order) => self.launch(&order),
            ToDaemon::Pmi { proc, bytes } => {
                let rank = self.ranks.iter_mut().find(|rank| rank.proc == proc);
                if let Some(rank) = rank
                    && let Some(pmi) = &mut rank.pmi
                    && pmi.say(&bytes) == Said::Unread
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
                asking::ask_to_end(self.leaders(), signal);
                self.cut_unanswered();
            }
            ToDaemon::KillDeaf(signal) => asking::kill_deaf(self.leaders(), signal),
            ToDaemon::Kill => {
                self.signal(libc::SIGKILL);
                self.cut_unanswered();
            }
            ToDaemon::SignalRanks { procs, signal } => {
                let meant = |rank: &&Here| rank.alive && procs.contains(&rank.proc);
                for rank in self.ranks.iter().filter(meant) {
                    sys::signal_group(rank.pid, signal);
                }
            }
            ToDaemon::Look => {
                let seen = self.ranks.iter().filter(|rank| rank.alive);
                let seen = seen.filter_map(|rank| Some((rank.proc, self.snapshot(rank)?)));
                let seen = seen.collect();
                self.tell(&FromDaemon::Glimpses(seen));
            }
            ToDaemon::Time(asked) => self.tell(&FromDaemon::Time {
                asked,
                now: now_ns(),
            }),
            ToDaemon::Tapes => self.send_tapes(),
            ToDaemon::Finish => self.finishing = true,
            ToDaemon::Beat => {}
        }
    }

    pub(super) fn greet(&mut self, hello: Hello) {
        if hello.version != VERSION {
            printable::eprintln!(
                "mpirun on {}: this is version {VERSION}, but the launcher is version {}",
                hello.you.name,
                hello.version
            );
            return self.lose_above(libc::SIGTERM);
        }
        for branch in hello.you.below.clone() {
            let hosts = branch.hosts();
            let below = Hello {
                you: branch,
                ..hello.clone()
            };
            match Link::open(below, self.reports.1.as_fd(), self.nofile) {
                Ok(link) => {
                    if let Some(mouth) = link.mouth() {
                        watch_room(&self.epoll, mouth);
                    }
                    self.links.push(link);
                }
                Err(error) => self.lose_below(hosts, error.to_string()),
            }
        }
        self.hello = Some(hello);
    }

    /// The launcher above has ended or sends malformed frames: everything on this host ends.
    pub(super) fn lose_above(&mut self, signal: Signal) {
        if !self.uplink.lose() {
            return;
        }
        for link in &mut self.links {
            link.close();
        }
        asking::ask_to_end(self.leaders(), signal);
        let grace = self
            .hello
            .as_ref()
            .map_or(Duration::ZERO, |hello| hello.grace);
        self.kill_at = Some(Instant::now() + grace);
    }
}

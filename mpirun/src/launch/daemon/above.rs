//! Connection of the daemon to the launcher above: reports, orders, and the loss of that launcher.

use super::super::link::Starter;
use super::super::pmi_socket::SendOutcome;
use super::super::sys::Signal;
use super::super::term_signals;
use super::super::wire::{self, ALL, FrameError, FromDaemon, Hello, ToDaemon, VERSION};
use super::uplink::FromAbove;
use super::{Daemon, watch_writable};
use crate::pmi::Proc;
use mpi_base::clock::now_ns;
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
                // The guard forwards only signals that request the end of the daemon.
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
                        self.links.forward(host, &wire::raw_frame(host, &body));
                    }
                    // Before its first `Hello`, a daemon does not know its host index.
                    // So it accepts frames for any host.
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
                if self.local.send(Proc(proc), &bytes) == SendOutcome::Unread {
                    self.local.close_socket(Proc(proc));
                }
            }
            ToDaemon::Welcome {
                proc,
                program,
                bytes,
            } => {
                let proc = Proc(proc);
                if self.local.welcome(proc, program, &bytes) == SendOutcome::Unread {
                    self.local.close_socket(proc);
                }
            }
            ToDaemon::Stdin(bytes) => {
                self.unfed += bytes.len();
                self.feed.push(&bytes);
            }
            ToDaemon::StdinEnd => self.feed.end(),
            ToDaemon::Signal(signal) => self.local.signal(signal),
            ToDaemon::AskToEnd(signal) => {
                term_signals::ask_to_end(self.local.leaders(), signal);
                self.close_unanswered();
            }
            ToDaemon::KillWithoutHandler(signal) => {
                term_signals::kill_without_handler(self.local.leaders(), signal)
            }
            ToDaemon::Kill => {
                self.local.signal(libc::SIGKILL);
                self.close_unanswered();
            }
            ToDaemon::SignalRanks { procs, signal } => {
                let meant = |proc: Proc| procs.contains(&proc.0);
                self.local.signal_those(signal, meant);
            }
            ToDaemon::TakeSnapshots => {
                let seen = self.local.snapshots().into_iter();
                let seen = seen.map(|(proc, snapshot)| (proc.0, snapshot));
                self.report(&FromDaemon::Snapshots(seen.collect()));
            }
            ToDaemon::Time(asked) => self.report(&FromDaemon::Time {
                asked,
                now: now_ns(),
            }),
            ToDaemon::EventRings => self.send_event_rings(),
            ToDaemon::Hold => self.is_held = true,
            // The guard of this daemon reads these.
            ToDaemon::Guard(_) => {}
            ToDaemon::Finish => self.finishing = true,
            ToDaemon::Heartbeat => {}
        }
    }

    pub(super) fn accept_hello(&mut self, hello: Hello) {
        if hello.version != VERSION {
            printable::eprintln!(
                "mpirun on {}: this is version {VERSION}, but the launcher is version {}",
                hello.branch.name,
                hello.version
            );
            return self.lose_launcher(libc::SIGTERM);
        }
        for branch in hello.branch.below.clone() {
            let hosts = branch.hosts();
            let below = Hello {
                branch,
                ..hello.clone()
            };
            let by = Starter::Itself {
                report: self.local.report_fd(),
                nofile: self.local.nofile(),
            };
            match self.links.open(below, &by) {
                Ok((_, link)) => {
                    if let Some(write_fd) = link.write_fd() {
                        watch_writable(&self.epoll, write_fd);
                    }
                }
                Err(error) => self.lose_hosts(hosts, error.to_string()),
            }
        }
        self.hello = Some(hello);
    }

    /// Ends all processes of this daemon: the launcher above has ended or sends malformed frames.
    pub(super) fn lose_launcher(&mut self, signal: Signal) {
        if !self.uplink.lose() {
            return;
        }
        self.links.close_all();
        term_signals::ask_to_end(self.local.leaders(), signal);
        let grace = self
            .hello
            .as_ref()
            .map_or(Duration::ZERO, |hello| hello.grace);
        self.kill_at = Some(Instant::now() + grace);
    }
}

//! Standard input that the supervisor reads itself, because no single rank of this host can inherit it.

use super::super::wire::{Order, ToDaemon};
use super::{Supervisor, Watch};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use std::collections::BTreeMap;

/// The maximum number of bytes in flight to another host.
const CREDIT: usize = 64 * 1024;

/// The state of forwarding standard input.
#[derive(Debug, Default)]
pub(super) struct Pump {
    /// Whether the end of the input has not been reached.
    open: bool,
    /// Whether the epoll watches the input; a plain file is always ready and cannot be watched.
    watched: bool,
    /// Hosts with readers, and the number of bytes in flight to each.
    under_way: BTreeMap<u32, usize>,
}

impl Supervisor<'_> {
    /// Begins to read if a job's readers cannot inherit the input.
    pub(super) fn start_pump(&mut self, order: &Order) {
        let here = self.here();
        for &reader in &order.readers {
            let host = order.hosts[reader as usize];
            if host != here {
                self.pump.under_way.insert(host, 0);
            }
        }
        if self.feed.has_readers() || !self.pump.under_way.is_empty() {
            self.pump.open = true;
            self.pump_stdin();
        }
    }

    /// Another host's readers have taken `bytes` bytes.
    pub(super) fn stdin_consumed(&mut self, host: u32, bytes: usize) {
        if let Some(under_way) = self.pump.under_way.get_mut(&host) {
            *under_way = under_way.saturating_sub(bytes);
        }
        self.pump_stdin();
    }

    /// Stops feeding lost hosts.
    pub(super) fn drop_stdin_readers(&mut self, hosts: &[u32]) {
        self.pump.under_way.retain(|host, _| !hosts.contains(host));
        self.pump_stdin();
    }

    /// Reads while all readers keep up, and watches the input for more.
    pub(super) fn pump_stdin(&mut self) {
        self.feed.drain();
        while self.pump.open {
            let slow = self.pump.under_way.values().any(|&bytes| bytes >= CREDIT);
            if slow || !self.feed.is_empty() {
                return self.watch_stdin(false);
            }
            if !is_ready(&self.wires.stdin) {
                return self.watch_stdin(true);
            }
            let mut buffer = [0u8; 16 * 1024];
            match rustix::io::read(&self.wires.stdin, &mut buffer) {
                Ok(got @ 1..) => {
                    self.feed.push(&buffer[..got]);
                    for host in self.pump.under_way.keys().copied().collect::<Vec<_>>() {
                        self.send_host(host, &ToDaemon::Stdin(buffer[..got].to_vec()));
                        *self.pump.under_way.entry(host).or_default() += got;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.watch_stdin(true),
                _ => {
                    self.watch_stdin(false);
                    self.pump.open = false;
                    self.feed.end();
                    for host in self.pump.under_way.keys().copied().collect::<Vec<_>>() {
                        self.send_host(host, &ToDaemon::StdinEnd);
                    }
                }
            }
        }
    }

    fn watch_stdin(&mut self, wanted: bool) {
        if wanted == self.pump.watched {
            return;
        }
        let token = EventData::new_u64(Watch::Stdin.token());
        let done = match wanted {
            true => epoll::add(&self.epoll, &self.wires.stdin, token, EventFlags::IN),
            false => epoll::delete(&self.epoll, &self.wires.stdin),
        };
        self.pump.watched = wanted && done.is_ok();
    }
}

fn is_ready(fd: &rustix::fd::OwnedFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

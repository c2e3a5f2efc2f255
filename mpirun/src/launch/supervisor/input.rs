//! Standard input of the first job.
//!
//! A single reader on this host inherits mpirun's standard input.
//! Otherwise the supervisor reads the input and distributes it.

use super::super::links::Links;
use super::super::program::StdinTo;
use super::super::stdin_fanout::Feed;
use super::super::wire::{Order, ToDaemon};
use super::poller::{Poller, Watch};
use crate::pmi::Job;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;

/// The maximum number of bytes in flight to one other host (flow control).
const CREDIT: usize = 64 * 1024;

pub(super) struct Input {
    stdin: OwnedFd,
    to: StdinTo,
    /// The pipes to readers on this host that cannot inherit the file.
    feed: Feed,
    /// Whether this process reads the input and has not reached the end of the input.
    open: bool,
    /// Whether the epoll watches the input; a regular file is always ready and cannot be watched.
    watched: bool,
    /// The number of bytes in flight to each host with readers.
    in_flight: BTreeMap<u32, usize>,
}

impl Input {
    pub(super) fn new(stdin: OwnedFd, to: StdinTo) -> Input {
        Input {
            stdin,
            to,
            feed: Feed::default(),
            open: false,
            watched: false,
            in_flight: BTreeMap::new(),
        }
    }

    /// Returns the ranks of a job that read mpirun's standard input; spawned ranks never read it.
    pub(super) fn readers(&self, job: Job, size: usize) -> Vec<u32> {
        let to = match job.0 {
            0 => self.to,
            _ => StdinTo::NoRank,
        };
        (0..size as u32).filter(|&rank| to.goes_to(rank)).collect()
    }

    /// Returns the standard input of a rank of this host; `None` if the rank does not read it.
    pub(super) fn of_rank(
        &mut self,
        order: &Order,
        rank: u32,
        poller: &Poller,
    ) -> io::Result<Option<OwnedFd>> {
        if !order.readers.contains(&rank) {
            return Ok(None);
        }
        if order.readers.len() == 1 {
            // A single reader inherits the file itself.
            return Ok(Some(rustix::io::fcntl_dupfd_cloexec(&self.stdin, 3)?));
        }
        self.feed.add(|pipe| poller.watch_writable(pipe)).map(Some)
    }

    /// Begins to read if a job's readers cannot inherit the file; `here` is this host's index.
    pub(super) fn start(&mut self, order: &Order, here: u32, poller: &Poller, links: &mut Links) {
        for &reader in &order.readers {
            let host = order.hosts[reader as usize];
            if host != here {
                self.in_flight.insert(host, 0);
            }
        }
        if self.feed.has_readers() || !self.in_flight.is_empty() {
            self.open = true;
            self.pump(poller, links);
        }
    }

    /// Records that the readers on another host have consumed `bytes` bytes.
    pub(super) fn record_taken(&mut self, host: u32, bytes: usize) {
        if let Some(in_flight) = self.in_flight.get_mut(&host) {
            *in_flight = in_flight.saturating_sub(bytes);
        }
    }

    /// Removes lost hosts from the readers.
    pub(super) fn drop_hosts(&mut self, hosts: &[u32]) {
        self.in_flight.retain(|host, _| !hosts.contains(host));
    }

    /// Reads input while no reader has too many unread bytes, and watches the input for more.
    pub(super) fn pump(&mut self, poller: &Poller, links: &mut Links) {
        self.feed.drain();
        while self.open {
            let slow = self.in_flight.values().any(|&bytes| bytes >= CREDIT);
            if slow || !self.feed.is_empty() {
                return self.watch(poller, false);
            }
            if !is_ready(&self.stdin) {
                return self.watch(poller, true);
            }
            let mut buffer = [0u8; 16 * 1024];
            match rustix::io::read(&self.stdin, &mut buffer) {
                Ok(got @ 1..) => {
                    self.feed.push(&buffer[..got]);
                    for (&host, in_flight) in &mut self.in_flight {
                        links.send(host, &ToDaemon::Stdin(buffer[..got].to_vec()));
                        *in_flight += got;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.watch(poller, true),
                _ => {
                    self.watch(poller, false);
                    self.open = false;
                    self.feed.end();
                    for &host in self.in_flight.keys() {
                        links.send(host, &ToDaemon::StdinEnd);
                    }
                }
            }
        }
    }

    fn watch(&mut self, poller: &Poller, wanted: bool) {
        if wanted == self.watched {
            return;
        }
        self.watched = match wanted {
            true => poller.watch(&self.stdin, Watch::Stdin),
            false => {
                poller.unwatch(&self.stdin);
                false
            }
        };
    }
}

fn is_ready(fd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(fd, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::binding::Binding;
    use rustix::pipe::pipe;

    fn order(hosts: &[u32], readers: &[u32]) -> Order {
        Order {
            job: 0,
            kvsname: "job".into(),
            spawned: false,
            first: 0,
            apps: Vec::new(),
            appnums: vec![0; hosts.len()],
            hosts: hosts.to_vec(),
            binding: Binding::default(),
            readers: readers.to_vec(),
            slots: hosts.len(),
            tolerates_deaths: false,
            takes_checkpoints: false,
            under: None,
        }
    }

    #[test]
    fn input_is_read_only_as_fast_as_its_slowest_reader_takes_it() {
        let (stdin, user) = pipe().unwrap();
        let poller = Poller::new().unwrap();
        let mut links = Links::default();
        let mut input = Input::new(stdin, StdinTo::All);
        let order = order(&[0, 0, 1], &[0, 1, 2]);
        let first = input.of_rank(&order, 0, &poller).unwrap().unwrap();
        let second = input.of_rank(&order, 1, &poller).unwrap().unwrap();
        input.start(&order, 0, &poller, &mut links);
        rustix::io::write(&user, b"hello").unwrap();
        input.pump(&poller, &mut links);
        for reader in [&first, &second] {
            let mut got = [0; 16];
            assert_eq!(rustix::io::read(reader, &mut got).unwrap(), 5);
        }
        assert_eq!(input.in_flight[&1], 5);
        // The credit of the other host is used up, so nothing is read.
        input.in_flight.insert(1, CREDIT);
        rustix::io::write(&user, b"more").unwrap();
        input.pump(&poller, &mut links);
        assert!(is_ready(&input.stdin));
        input.record_taken(1, CREDIT);
        input.pump(&poller, &mut links);
        assert!(!is_ready(&input.stdin));
        assert_eq!(input.in_flight[&1], 4);
        // A lost host is no longer a reader, so reading continues.
        input.in_flight.insert(1, CREDIT);
        rustix::io::write(&user, b"rest").unwrap();
        input.drop_hosts(&[1]);
        input.pump(&poller, &mut links);
        assert!(!is_ready(&input.stdin));
    }

    #[test]
    fn only_ranks_of_the_first_job_read_and_a_single_reader_inherits_the_file() {
        let (stdin, user) = pipe().unwrap();
        let poller = Poller::new().unwrap();
        let mut input = Input::new(stdin, StdinTo::Rank(1));
        assert_eq!(input.readers(Job(0), 3), [1]);
        assert!(input.readers(Job(1), 3).is_empty());
        let order = order(&[0, 0], &[1]);
        assert!(input.of_rank(&order, 0, &poller).unwrap().is_none());
        let inherited = input.of_rank(&order, 1, &poller).unwrap().unwrap();
        input.start(&order, 0, &poller, &mut Links::default());
        assert!(!input.open);
        rustix::io::write(&user, b"hello").unwrap();
        let mut got = [0; 16];
        assert_eq!(rustix::io::read(&inherited, &mut got).unwrap(), 5);
    }
}

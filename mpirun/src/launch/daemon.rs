//! The daemon: the launcher on another host. It carries out the supervisor's orders and reports events to it.
//!
//! `mpirun --daemon` speaks `wire` over its standard input and output. It starts its ranks with the same `Starter` as the supervisor,
//! sends lines of PMI and pieces of output up, and knows only its own part of a job.
//! It may have links to further hosts; it forwards their frames without decoding them.
//!
//! Promise: when the link above closes or falls silent, or the guard dies, everything below is ended:
//! SIGTERM, the grace period, SIGKILL, and then whatever processes are left.

mod above;
mod event_rings;
mod here;
mod others;
mod shutdown;
mod start;
mod uplink;

use super::descendants;
use super::frontend;
use super::limits::Limits;
use super::link::Link;
use super::pmi_socket::PmiSocket;
use super::stdin_fanout::Feed;
use super::trim_memory::MemoryTrim;
use super::wire::{ALL, FromDaemon, Hello};
use crate::foreign::loaded;
use crate::node::Node;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};
use uplink::Uplink;

/// Serves the launcher at the other end of standard input and output; returns the exit code.
pub fn run() -> i32 {
    let done = frontend::guarded(|guard, signals, nofile| {
        match Daemon::new(guard, signals, nofile).and_then(Daemon::serve) {
            Ok(()) => 0,
            Err(error) => {
                descendants::end_all();
                printable::eprintln!("mpirun on {}: {error}", crate::hosts::own_name());
                1
            }
        }
    });
    done.unwrap_or_else(|error| {
        printable::eprintln!("mpirun on {}: {error}", crate::hosts::own_name());
        1
    })
}

/// A rank of this host.
struct LocalRank {
    proc: usize,
    local_rank: u32,
    job: usize,
    pid: i32,
    alive: bool,
    pmi: Option<PmiSocket>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

struct Daemon {
    guard: OwnedFd,
    signals: OwnedFd,
    nofile: Option<u64>,
    uplink: Uplink,
    hello: Option<Hello>,
    links: Vec<Link>,
    ranks: Vec<LocalRank>,
    nodes: Vec<(usize, Node)>,
    feed: Feed,
    /// Bytes of standard input that the readers have not taken. The supervisor is notified when they have.
    unfed: usize,
    reports: (OwnedFd, OwnedFd),
    null: OwnedFd,
    epoll: OwnedFd,
    /// The other MPI libraries that ranks of this host have loaded.
    loaded: loaded::Watch,
    finishing: bool,
    kill_at: Option<Instant>,
    memory_trim: MemoryTrim,
}

impl Daemon {
    fn new(guard: OwnedFd, signals: OwnedFd, nofile: Option<u64>) -> io::Result<Daemon> {
        use rustix::fs::{Mode, OFlags};
        let null = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
        let uplink = Uplink::open(&null)?;
        let pipes = rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Daemon {
            guard,
            signals,
            nofile,
            uplink,
            hello: None,
            links: Vec::new(),
            ranks: Vec::new(),
            nodes: Vec::new(),
            feed: Feed::default(),
            unfed: 0,
            reports: rustix::pipe::pipe_with(pipes)?,
            null,
            epoll,
            loaded: loaded::Watch::default(),
            finishing: false,
            kill_at: None,
            memory_trim: MemoryTrim::default(),
        })
    }

    /// Runs until nothing is left to do on this host.
    fn serve(mut self) -> io::Result<()> {
        while !self.is_finished() {
            self.wait()?;
            self.read_signals();
            self.read_guard();
            self.read_above();
            self.read_ranks();
            for number in 0..self.links.len() {
                self.read_link(number);
            }
            self.step();
        }
        // First orphans of ranks, and then the commands that reached other hosts.
        let links: Vec<i32> = self.links.iter().map(|link| link.pid).collect();
        descendants::end_all_but(&links);
        self.empty_pipes();
        self.await_links();
        descendants::end_all();
        self.uplink.write_all(&self.guard);
        Ok(())
    }

    fn is_finished(&self) -> bool {
        (self.finishing || self.uplink.is_lost()) && !self.ranks.iter().any(|rank| rank.alive)
    }

    /// Sleeps until there is something to do. A host has few ranks, so there are few descriptors to poll.
    fn wait(&mut self) -> io::Result<()> {
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.epoll, PollFlags::IN),
        ];
        if !self.uplink.is_lost() {
            fds.push(PollFd::new(&self.guard, PollFlags::IN));
        }
        self.uplink.poll_fds(&mut fds);
        // A full queue means that the launcher above does not read, so the ranks are not read either.
        if !self.uplink.is_full() {
            for rank in &self.ranks {
                fds.extend(rank.pmi.iter().map(|pmi| PollFd::new(pmi, PollFlags::IN)));
                let pipes = [&rank.stdout, &rank.stderr].into_iter().flatten();
                fds.extend(pipes.map(|fd| PollFd::new(fd, PollFlags::IN)));
            }
            let read_fds = self.links.iter().filter_map(Link::read_fd);
            fds.extend(read_fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        let told = self.ranks.iter().filter_map(|rank| rank.pmi.as_ref());
        let told = told.filter(|pmi| pmi.has_queued());
        fds.extend(told.map(|pmi| PollFd::new(pmi, PollFlags::OUT)));
        match poll(&mut fds, self.memory_trim.pause(self.pause()).as_ref()) {
            Ok(0) => self.memory_trim.trim_once(),
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn pause(&self) -> Option<Timespec> {
        let now = Instant::now();
        let kill = self.kill_at.map(|at| at.saturating_duration_since(now));
        let heartbeat = self.limits().and_then(|limits| limits.heartbeat());
        let maps = self.loaded.next();
        let maps = maps.map(|at| at.saturating_duration_since(now));
        let pause = [kill, heartbeat, maps].into_iter().flatten().min()?;
        let pause = pause.max(Duration::from_millis(1));
        Some(Timespec {
            tv_sec: pause.as_secs() as i64,
            tv_nsec: i64::from(pause.subsec_nanos()),
        })
    }

    fn limits(&self) -> Option<Limits> {
        self.hello.as_ref().map(|hello| hello.remote.limits)
    }

    fn own_host(&self) -> u32 {
        self.hello.as_ref().map_or(ALL, |hello| hello.you.host)
    }

    fn step(&mut self) {
        // Clears the events of the epoll, which only report that some pipe has space.
        let mut events = Vec::with_capacity(16);
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let _ = epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&now),
        );
        self.forget_ranks();
        self.read_maps();
        self.feed.drain();
        if self.unfed > 0 && self.feed.is_empty() {
            let fed = std::mem::take(&mut self.unfed);
            self.report(&FromDaemon::Fed(fed));
        }
        for link in &mut self.links {
            link.drain();
        }
        for pmi in self.ranks.iter_mut().filter_map(|rank| rank.pmi.as_mut()) {
            if pmi.has_queued() {
                pmi.drain();
            }
        }
        if self.kill_at.is_some_and(|at| Instant::now() >= at) {
            self.signal(libc::SIGKILL);
        }
        if let Some(limits) = self.limits() {
            self.keep(&limits);
        }
        if !self.uplink.write() {
            self.lose_launcher(libc::SIGTERM);
        }
    }
}

/// Watches for space in a pipe, edge-triggered.
fn watch_writable(epoll: &OwnedFd, fd: BorrowedFd<'_>) {
    let flags = EventFlags::OUT | EventFlags::ET;
    let _ = epoll::add(epoll, fd, EventData::new_u64(0), flags);
}

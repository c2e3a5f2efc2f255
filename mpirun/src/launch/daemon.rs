//! Daemon: the launcher on another host, which executes orders and reports events.
//!
//! `mpirun --daemon` speaks the `wire` protocol over its standard input and output.
//! The daemon starts ranks by a `Starter`, as the supervisor does; it forwards PMI and output.
//! A daemon knows only the ranks of its own host.
//! A daemon may have links to further hosts, whose frames it forwards without decoding them.
//! The supervisor or daemon that has started this daemon is *the launcher above*.
//!
//! Promise: the daemon ends all its descendants if the link to the launcher above closes,
//! if no frame arrives within a time limit, or if the guard process dies.
//! The daemon sends SIGTERM, waits for the grace period, sends SIGKILL, and kills orphans.

mod above;
mod here;
mod holding;
mod others;
mod shutdown;
mod uplink;

use super::descendants;
use super::frontend;
use super::limits::Limits;
use super::links::Links;
use super::local_ranks::LocalRanks;
use super::stdin_fanout::Feed;
use super::trim_memory::MemoryTrim;
use super::wire::{ALL, FromDaemon, Hello};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::time::{Duration, Instant};
use uplink::Uplink;

/// Runs the daemon for the launcher at standard input and output; returns the exit code.
pub fn run() -> i32 {
    frontend::guarded(serve).unwrap_or_else(|error| {
        printable::eprintln!("mpirun on {}: {error}", crate::hosts::own_name());
        1
    })
}

/// Runs the daemon in a process that another one guards: the sockets are those of
/// [`frontend::guarded`]. Returns the exit code.
pub(super) fn serve(guard: OwnedFd, signals: OwnedFd, nofile: Option<u64>) -> i32 {
    match Daemon::new(guard, signals, nofile).and_then(Daemon::serve) {
        Ok(()) => 0,
        Err(error) => {
            descendants::end_all();
            printable::eprintln!("mpirun on {}: {error}", crate::hosts::own_name());
            1
        }
    }
}

struct Daemon {
    guard: OwnedFd,
    signals: OwnedFd,
    uplink: Uplink,
    hello: Option<Hello>,
    links: Links,
    local: LocalRanks,
    feed: Feed,
    /// Number of bytes of standard input received since the last [`FromDaemon::Fed`].
    /// The next `Fed` is sent when the ranks have consumed all of these bytes.
    unfed: usize,
    epoll: OwnedFd,
    finishing: bool,
    /// Whether the supervisor takes a checkpoint that is images of all processes.
    is_held: bool,
    kill_at: Option<Instant>,
    memory_trim: MemoryTrim,
}

impl Daemon {
    fn new(guard: OwnedFd, signals: OwnedFd, nofile: Option<u64>) -> io::Result<Daemon> {
        Ok(Daemon {
            guard,
            signals,
            uplink: Uplink::open()?,
            hello: None,
            links: Links::default(),
            local: LocalRanks::new(nofile)?,
            feed: Feed::default(),
            unfed: 0,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            finishing: false,
            is_held: false,
            kill_at: None,
            memory_trim: MemoryTrim::default(),
        })
    }

    /// Runs the event loop until `Finish` has arrived or the link is lost, and no rank is alive.
    fn serve(mut self) -> io::Result<()> {
        while !self.is_finished() {
            self.wait()?;
            self.read_signals();
            self.read_guard();
            self.read_above();
            self.read_ranks();
            self.read_links();
            self.step();
            self.hold();
        }
        // Orphans of ranks are ended first; the commands (such as ssh) that started daemons on other hosts are ended below.
        descendants::end_all_but(&self.links.pids());
        self.empty_pipes();
        self.await_links();
        descendants::end_all();
        self.uplink.write_all(&self.guard);
        Ok(())
    }

    fn is_finished(&self) -> bool {
        (self.finishing || self.uplink.is_lost()) && !self.local.any_alive()
    }

    /// Blocks until a descriptor is ready. `poll` suffices, since a host has few ranks.
    fn wait(&mut self) -> io::Result<()> {
        let mut fds = vec![
            PollFd::new(&self.signals, PollFlags::IN),
            PollFd::new(&self.epoll, PollFlags::IN),
        ];
        if !self.uplink.is_lost() {
            fds.push(PollFd::new(&self.guard, PollFlags::IN));
        }
        self.uplink.poll_fds(&mut fds);
        // If the queue to the launcher above is full, the ranks and further links are not read.
        if !self.uplink.is_full() {
            self.local.poll_readable(&mut fds);
            let links = self.links.read_fds();
            fds.extend(links.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        }
        self.local.poll_writable(&mut fds);
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
        let maps = self.local.next_maps();
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
        self.hello.as_ref().map_or(ALL, |hello| hello.branch.host)
    }

    fn step(&mut self) {
        // Drains the epoll's events, which only report that some pipe has space.
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
        self.local.forget_released();
        self.report_libraries();
        self.feed.drain();
        if self.unfed > 0 && self.feed.is_empty() {
            let fed = std::mem::take(&mut self.unfed);
            self.report(&FromDaemon::Fed(fed));
        }
        self.links.drain();
        self.local.send_all_queued();
        if self.kill_at.is_some_and(|at| Instant::now() >= at) {
            self.local.signal(libc::SIGKILL);
        }
        if let Some(limits) = self.limits() {
            self.keep(&limits);
        }
        if !self.uplink.write() {
            self.lose_launcher(libc::SIGTERM);
        }
    }
}

/// Adds a pipe's writable event to the epoll, edge-triggered.
fn watch_writable(epoll: &OwnedFd, fd: BorrowedFd<'_>) {
    let flags = EventFlags::OUT | EventFlags::ET;
    let _ = epoll::add(epoll, fd, EventData::new_u64(0), flags);
}

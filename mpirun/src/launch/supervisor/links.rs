//! The supervisor's links to other hosts: reaching them, sending them orders, and handling their reports.

use super::super::ending::Cause;
use super::super::link::{self, Link, Received};
use super::super::ranks::Rank;
use super::super::sys::Ended;
use super::super::wire::{self, ALL, Branch, End, FromDaemon, Hello, Order, ToDaemon, VERSION};
use super::{Supervisor, Watch, watch, watch_writable};
use crate::launch::sys::{FailedStart, FailedStep};
use crate::pmi::{Job, Proc};
use rustix::fd::AsFd;
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::io;
use std::time::Instant;

impl Supervisor<'_> {
    /// Opens links to those hosts of a job that have no link yet.
    pub(super) fn reach(&mut self, order: &Order) -> io::Result<()> {
        let here = self.here();
        let mut missing: Vec<(u32, String)> = Vec::new();
        for &host in &order.hosts {
            let known = self.links.iter().any(|link| link.covers(host));
            if host != here && !known && !missing.iter().any(|(other, _)| *other == host) {
                missing.push((host, self.host_name(host)));
            }
        }
        let dir = std::env::current_dir().unwrap_or_else(|_| "/".into());
        for branch in Branch::tree(&missing, self.plan.remote.fanout) {
            let hello = Hello {
                version: VERSION.into(),
                you: branch,
                remote: self.plan.remote.clone(),
                grace: self.plan.grace,
                tolerates_deaths: self.plan.tolerates_deaths,
                dir: dir.clone(),
                env: self.plan.env.clone(),
            };
            let link = Link::open(hello, self.reports.1.as_fd(), self.wires.nofile)?;
            let number = self.links.len();
            if let (Some(read_fd), Some(write_fd)) = (link.read_fd(), link.write_fd()) {
                watch(&self.epoll, read_fd, Watch::Link(number));
                watch_writable(&self.epoll, write_fd);
            }
            self.links.push(link);
        }
        Ok(())
    }

    pub(super) fn host_name(&self, host: u32) -> String {
        let host = self.plan.hosts.get(host as usize);
        host.map_or_else(String::new, |host| host.name.clone())
    }

    pub(super) fn send_all_hosts(&mut self, what: &ToDaemon) {
        if self.links.is_empty() {
            return;
        }
        let frame = wire::frame(ALL, what);
        for link in &mut self.links {
            link.send(&frame);
        }
    }

    pub(super) fn send_host(&mut self, host: u32, what: &ToDaemon) {
        if let Some(link) = self.links.iter_mut().find(|link| link.covers(host)) {
            link.send(&wire::frame(host, what));
        }
    }

    /// Reads once, so that one host with much output does not delay the others.
    pub(super) fn read_link(&mut self, number: usize) {
        // While mpirun's own reader is slow no host is read; its data waits in the pipe.
        if self.outputs.is_full() {
            return;
        }
        let Some(link) = self.links.get_mut(number) else {
            return;
        };
        if link.receive() == Received::End {
            let why = match link.frames.is_greeted() {
                true => "its launcher has ended".to_string(),
                false => {
                    let agent = self
                        .plan
                        .remote
                        .agent
                        .first()
                        .map(|word| printable::name(word).to_string());
                    format!(
                        "{} did not reach it, or {} is not there",
                        agent.unwrap_or("ssh".into()),
                        printable::name(&self.plan.remote.mpirun)
                    )
                }
            };
            return self.lose_link(number, &why);
        }
        loop {
            let Some(link) = self.links.get_mut(number) else {
                return;
            };
            let said = match link.frames.next_frame() {
                Ok(None) => return,
                Ok(Some((host, body))) => wire::open::<FromDaemon>(&body).map(|up| (host, up)),
                Err(error) => Err(error),
            };
            match said {
                Ok((host, up)) => self.handle_report(host, up),
                Err(error) => return self.lose_link(number, &error.to_string()),
            }
        }
    }

    fn handle_report(&mut self, host: u32, said: FromDaemon) {
        self.note_reached(host);
        match said {
            FromDaemon::Heartbeat => {}
            FromDaemon::Started { proc, pid, bound } => {
                let proc = Proc(proc);
                if let Some(rank) = self.on_host(proc, host) {
                    rank.pid = pid;
                    self.report_start(proc, bound.as_deref());
                }
            }
            FromDaemon::NotStarted { job, why, code } => {
                let job = Job(job);
                self.never_began(job, host);
                let is_dismissed = self.ranks.of(job).any(|rank| rank.is_dismissed);
                let said = format!("on {}: {why}", self.host_name(host));
                if !is_dismissed && !self.fail_spawn(job, &said) {
                    if self.is_running() {
                        self.say(&said);
                    }
                    self.end(code, libc::SIGTERM);
                }
                self.give_back(job);
            }
            FromDaemon::Pmi { proc, bytes } => {
                let proc = Proc(proc);
                let Some(client) = self.on_host(proc, host).and_then(|rank| rank.pmi.as_mut())
                else {
                    return;
                };
                client.lines.push(&bytes);
                self.answer_lines(proc);
            }
            FromDaemon::Output {
                proc,
                stderr,
                bytes,
            } => self.take_output(host, Proc(proc), stderr, &bytes),
            FromDaemon::Ended {
                proc,
                end,
                snapshot,
            } => {
                let proc = Proc(proc);
                let Some(rank) = self.on_host(proc, host) else {
                    return;
                };
                rank.snapshot = snapshot;
                let pid = rank.pid;
                let (ended, failed) = match end {
                    End::Exited(code) => (Ended::Exited(code), None),
                    End::Killed(signal) => (Ended::Killed(signal), None),
                    End::NeverBegan { errno, step } => {
                        let step = FailedStep::numbered(step);
                        (Ended::Exited(127), Some(FailedStart { pid, errno, step }))
                    }
                };
                rank.pmi = None;
                self.record_death(proc, ended, failed);
            }
            FromDaemon::Loaded { proc, library } => {
                if self.on_host(Proc(proc), host).is_some() {
                    self.unserved.note(Proc(proc), library.into());
                }
            }
            FromDaemon::Dying(procs) => {
                for proc in procs {
                    if let Some(rank) = self.on_host(Proc(proc), host) {
                        rank.is_dying = true;
                    }
                }
            }
            FromDaemon::Snapshots(glimpses) => {
                for (proc, snapshot) in glimpses {
                    if let Some(rank) = self.on_host(Proc(proc), host) {
                        rank.snapshot = Some(snapshot);
                    }
                }
            }
            FromDaemon::Time { asked, now } => self.add_clock_reading(host, asked, now),
            FromDaemon::EventRing { proc, lost, events } => {
                if self.on_host(Proc(proc), host).is_some() {
                    self.tracing.add_events(proc, lost, &events);
                }
            }
            FromDaemon::EventRingsSent => self.tracing.complete_hosts(host),
            FromDaemon::Fed(bytes) => self.stdin_consumed(host, bytes),
            FromDaemon::Lost { hosts, why } => self.lose_hosts(&hosts, &why),
        }
    }

    /// Returns a rank if it runs on the host that reports about it.
    fn on_host(&mut self, proc: Proc, host: u32) -> Option<&mut Rank> {
        self.ranks
            .get_mut(proc)
            .filter(|rank| rank.host == host && !rank.here)
    }

    fn take_output(&mut self, host: u32, proc: Proc, stderr: bool, bytes: &[u8]) {
        let outputs = &mut self.outputs;
        let Some(rank) = self
            .ranks
            .get_mut(proc)
            .filter(|rank| rank.host == host && !rank.here)
        else {
            return;
        };
        let slot = match stderr {
            true => &mut rank.stderr,
            false => &mut rank.stdout,
        };
        if let Some(stream) = slot {
            let sink = outputs.sink(stream.to);
            match bytes.is_empty() {
                true => {
                    stream.flush(sink);
                    *slot = None;
                }
                false => stream.take(bytes, sink),
            }
        }
    }

    /// The ranks of a job that were to start on `host` will never run.
    pub(super) fn never_began(&mut self, job: Job, host: u32) {
        let ranks = self.ranks.iter();
        let never = |rank: &Rank| rank.host == host && rank.job == job && rank.pid == 0;
        let never: Vec<Proc> = ranks
            .filter(|(_, rank)| never(rank))
            .map(|(proc, _)| proc)
            .collect();
        for proc in never {
            self.is_gone(proc);
        }
    }

    /// Nothing more arrives of a rank whose end was not reported.
    fn is_gone(&mut self, proc: Proc) {
        if let Some(rank) = self.ranks.get_mut(proc) {
            rank.alive = false;
            rank.pmi = None;
        }
        self.end_streams(proc);
    }

    fn lose_link(&mut self, number: usize, why: &str) {
        let Some(link) = self.links.get_mut(number) else {
            return;
        };
        link.close();
        let hosts = link.branch.hosts();
        // The hosts behind it are lost with it.
        self.lose_hosts(&hosts, why);
    }

    fn lose_hosts(&mut self, hosts: &[u32], why: &str) {
        self.tracing.give_up(hosts);
        let lost: Vec<Proc> = self
            .ranks
            .iter()
            .filter(|(_, rank)| rank.alive && !rank.here && hosts.contains(&rank.host))
            .map(|(proc, _)| proc)
            .collect();
        // Ranks that have ended may have left a pipe to a process that is lost with the host.
        let silent: Vec<Proc> = (self.ranks.iter())
            .filter(|(_, rank)| !rank.here && hosts.contains(&rank.host))
            .map(|(proc, _)| proc)
            .collect();
        silent.into_iter().for_each(|proc| self.is_gone(proc));
        if self.plan.tolerates_deaths && self.were_reached(&lost) {
            return self.lose_with_hosts(hosts, &lost, why);
        }
        self.fail_with_hosts(&lost, why);
        let jobs: BTreeSet<Job> = (lost.iter())
            .filter_map(|&proc| self.ranks.get(proc))
            .map(|rank| rank.job)
            .collect();
        jobs.into_iter().for_each(|job| self.give_back(job));
    }

    /// Ranks are lost with their hosts, and their job does not survive that.
    fn fail_with_hosts(&mut self, lost: &[Proc], why: &str) {
        if let Some(&first) = lost.first() {
            let host = self.ranks.get(first).map_or(0, |rank| rank.host);
            let cause = Cause::HostLost {
                host: self.host_name(host),
                why: why.to_string(),
            };
            self.fail(first, cause, 1);
        }
    }

    /// Sends keep-alive frames, and gives up hosts that are late.
    pub(super) fn keep_links(&mut self) {
        for (number, why) in link::keep(&mut self.links, &self.plan.remote.limits) {
            self.lose_link(number, &why);
        }
    }

    /// The job ends: hosts that have not answered run nothing, so they are not waited for.
    pub(super) fn close_unanswered(&mut self) {
        for number in 0..self.links.len() {
            if self.links[number].is_unanswered() {
                self.lose_link(number, "it has not answered");
            }
        }
    }

    pub(super) fn next_heartbeat(&self) -> Option<Instant> {
        let linked = self.links.iter().any(Link::is_open);
        let heartbeat = self.plan.remote.limits.heartbeat().filter(|_| linked)?;
        Some(Instant::now() + heartbeat)
    }

    /// All ranks have ended: receives the other hosts' last output and closes the links.
    pub(super) fn part(&mut self, limit: Option<Instant>) {
        self.collect_event_rings(limit);
        self.send_all_hosts(&ToDaemon::Finish);
        self.serve_links(limit, |supervisor| {
            !supervisor.links.iter().any(Link::is_open)
        });
        for link in &mut self.links {
            link.close();
        }
    }

    /// Serves the other hosts until `has_come` returns true, the time is over, or no link is open.
    pub(super) fn serve_links(&mut self, limit: Option<Instant>, has_come: impl Fn(&Self) -> bool) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        while !has_come(self) && self.links.iter().any(Link::is_open) {
            let late = limit.is_some_and(|limit| Instant::now() >= limit);
            if late || !self.front_end_alive {
                break;
            }
            for link in &mut self.links {
                link.drain();
            }
            let open: Vec<usize> = (0..self.links.len())
                .filter(|&number| self.links[number].is_open())
                .collect();
            let mut fds: Vec<PollFd<'_>> = open
                .iter()
                .filter_map(|&number| self.links[number].read_fd())
                .map(|read_fd| PollFd::from_borrowed_fd(read_fd, PollFlags::IN))
                .collect();
            fds.push(PollFd::new(&self.wires.front, PollFlags::RDHUP));
            let pause = Timespec {
                tv_sec: 0,
                tv_nsec: 100_000_000,
            };
            match poll(&mut fds, Some(&pause)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(_) => break,
            }
            let front = fds.pop().map(|fd| fd.revents());
            if front.is_some_and(|events| !events.is_empty()) {
                self.front_end_alive = false;
            }
            drop(fds);
            for number in open {
                self.read_link(number);
            }
            self.keep_links();
            if self.outputs.is_full() {
                self.write_out(limit);
            }
        }
    }
}

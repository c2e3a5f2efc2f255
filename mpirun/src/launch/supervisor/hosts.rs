//! Other hosts: opening of links, handling of the daemons' reports, and loss of hosts.

use super::poller::Watch;
use super::{Supervisor, unserved};
use crate::launch::link::Starter;
use crate::launch::output::Target;
use crate::launch::program::Plan;
use crate::launch::wire::{self, Branch, FromDaemon, Hello, ImagesThere, Order, VERSION};
use crate::pmi::{Job, Proc};
use rustix::fd::AsFd as _;
use std::io;
use std::time::Instant;

/// Returns the settings of images of processes for the guards of daemons.
fn images_there(plan: &Plan) -> Option<ImagesThere> {
    let checkpoints = plan.checkpoints.as_ref()?;
    let images = checkpoints.images.as_ref()?;
    Some(ImagesThere {
        program: images.program.clone(),
        dir: checkpoints.dir.clone(),
        limit: images.limit,
        silence: plan.remote.limits.silence,
    })
}

impl Supervisor<'_> {
    /// Opens links to the hosts of a job that have no link yet.
    pub(super) fn reach(&mut self, order: &Order) -> io::Result<()> {
        let control = &mut self.control;
        let mut missing: Vec<(u32, String)> = Vec::new();
        for &host in &order.hosts {
            let known = host == control.ranks.jobs.here() || control.ranks.links.covers(host);
            if !known && !missing.iter().any(|(other, _)| *other == host) {
                missing.push((host, control.ranks.jobs.host_name(host)));
            }
        }
        let dir = std::env::current_dir().unwrap_or_else(|_| "/".into());
        for branch in Branch::tree(&missing, self.plan.remote.fanout) {
            let hello = Hello {
                version: VERSION.into(),
                branch,
                remote: self.plan.remote.clone(),
                grace: self.plan.grace,
                tolerates_deaths: self.plan.tolerates_deaths,
                dir: dir.clone(),
                env: self.plan.env.clone(),
                images: images_there(self.plan),
            };
            let by = match hello.images {
                Some(_) => Starter::FrontEnd(self.front.as_fd()),
                None => Starter::Itself {
                    report: control.ranks.local.report_fd(),
                    nofile: control.ranks.local.nofile(),
                },
            };
            let (number, link) = control.ranks.links.open(hello, &by)?;
            if let (Some(read_fd), Some(write_fd)) = (link.read_fd(), link.write_fd()) {
                self.poller.watch(read_fd, Watch::Link(number));
                self.poller.watch_writable(write_fd);
            }
        }
        Ok(())
    }

    /// Reads a link with one system call and handles the received frames.
    pub(super) fn read_link(&mut self, number: usize) {
        // While mpirun's own output is full, no link is read; data then waits in the pipe.
        if self.control.ranks.outputs.is_full() {
            return;
        }
        let arrived = self.control.ranks.links.read(number);
        for (host, body) in arrived.frames {
            match wire::open::<FromDaemon>(&body) {
                Ok(report) => self.handle_report(host, report),
                Err(error) => return self.lose_link(number, &error.to_string()),
            }
        }
        if let Some(lost) = arrived.lost {
            self.lose_link(number, &lost.sentence(&self.plan.remote));
        }
    }

    fn handle_report(&mut self, host: u32, report: FromDaemon) {
        let control = &mut self.control;
        control.losses.note_reached(host);
        let proc = report.proc().map(Proc);
        if proc.is_some_and(|proc| !control.ranks.jobs.is_on(proc, host)) {
            // The rank runs on another host or was removed, so the report is ignored.
            return;
        }
        match report {
            FromDaemon::Heartbeat => {}
            FromDaemon::Started { proc, pid, bound } => {
                control.ranks.jobs.record_start(Proc(proc), pid);
                self.report_start(Proc(proc), bound.as_deref());
                self.show_debuggers_the_ranks();
            }
            FromDaemon::NotStarted { job, why, code } => {
                let job = Job(job);
                control.ranks.never_began(job, host);
                let is_dismissed = control.ranks.jobs.of(job).any(|rank| rank.is_dismissed);
                if !is_dismissed {
                    let why = format!("on {}: {why}", control.ranks.jobs.host_name(host));
                    control.fail_job_start(job, &why, code);
                }
                control.give_back(job);
            }
            FromDaemon::Pmi { proc, bytes } => {
                control.ranks.jobs.receive(Proc(proc), &bytes);
                control.answer(Proc(proc));
                self.start_spawned();
            }
            FromDaemon::Output {
                proc,
                stderr,
                bytes,
            } => {
                let of = match stderr {
                    true => Target::Stderr,
                    false => Target::Stdout,
                };
                match bytes.is_empty() {
                    true => control.ranks.outputs.end(Proc(proc), of),
                    false => control.ranks.outputs.take(Proc(proc), of, &bytes),
                }
            }
            FromDaemon::Ended {
                proc,
                end,
                snapshot,
            } => {
                control.ranks.jobs.record_snapshot(Proc(proc), snapshot);
                control.ranks.jobs.disconnect(Proc(proc));
                control.record_death(Proc(proc), end);
            }
            FromDaemon::Loaded { proc, library } => self.unserved.note(Proc(proc), library.into()),
            FromDaemon::Dying(procs) => {
                for proc in procs.into_iter().map(Proc) {
                    if control.ranks.jobs.is_on(proc, host) {
                        control.ranks.jobs.record_dying(proc);
                    }
                }
            }
            FromDaemon::Snapshots(snapshots) => {
                for (proc, snapshot) in snapshots {
                    if control.ranks.jobs.is_on(Proc(proc), host) {
                        control
                            .ranks
                            .jobs
                            .record_snapshot(Proc(proc), Some(snapshot));
                    }
                }
            }
            FromDaemon::Time { asked, now } => {
                let links = &mut control.ranks.links;
                self.tracing.add_clock_reading(host, (asked, now), links);
            }
            FromDaemon::EventRing { proc, lost, events } => {
                self.tracing.add_events(proc, lost, &events)
            }
            FromDaemon::EventRingsSent => self.tracing.complete_host(host),
            FromDaemon::Fed(bytes) => {
                self.input.record_taken(host, bytes);
                self.pump_input();
            }
            FromDaemon::Lost { hosts, why } => self.lose_hosts(&hosts, &why),
            FromDaemon::Held => control.ranks.links.set_silent(host),
            // The front end reads these.
            FromDaemon::Guard(_) => {}
        }
    }

    pub(super) fn lose_link(&mut self, number: usize, why: &str) {
        // The hosts that are reached through this link are lost too.
        let hosts = self.control.ranks.links.close(number);
        self.lose_hosts(&hosts, why);
    }

    fn lose_hosts(&mut self, hosts: &[u32], why: &str) {
        self.tracing.give_up(hosts);
        self.control.lose_hosts(hosts, why);
        self.input.drop_hosts(hosts);
        self.pump_input();
    }

    /// Sends due keep-alive frames and gives up overdue links.
    pub(super) fn keep_links(&mut self) {
        for (number, why) in self.control.ranks.links.keep(&self.plan.remote.limits) {
            self.lose_link(number, &why);
        }
    }

    pub(super) fn next_heartbeat(&self) -> Option<Instant> {
        let linked = self.control.ranks.links.any_open();
        let heartbeat = self.plan.remote.limits.heartbeat().filter(|_| linked)?;
        Some(Instant::now() + heartbeat)
    }

    /// After the end of all ranks, reports each job whose ranks used another MPI library.
    pub(super) fn report_unserved(&mut self) {
        let control = &mut self.control;
        let sentences = self
            .unserved
            .sentences(self.plan, &control.ranks.jobs, &control.server);
        for sentence in sentences {
            control.ranks.outputs.say(&sentence);
            control.ending.fail(unserved::STATUS);
        }
    }
}

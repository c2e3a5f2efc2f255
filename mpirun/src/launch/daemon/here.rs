//! Local ranks of a daemon: starting them, and reporting their requests, output and ends.

use super::super::local_ranks::Read;
use super::super::output::Target;
use super::super::pmi_socket::Received;
use super::super::starter::{Inherited, StartError};
use super::super::sys::{self, Ended};
use super::super::wire::{End, FromDaemon, Order};
use super::{Daemon, watch_writable};
use crate::pmi::{Job, Proc};
use std::time::Instant;

impl Daemon {
    /// Starts the ranks of a job that belong to this daemon's host.
    pub(super) fn launch(&mut self, order: &Order) {
        if let Err((why, code)) = self.start(order) {
            let job = order.job;
            self.report(&FromDaemon::NotStarted { job, why, code });
        }
    }

    fn start(&mut self, order: &Order) -> Result<(), (String, i32)> {
        let Some(hello) = &self.hello else {
            return Err((
                "the launcher that started it has sent no hello message".into(),
                1,
            ));
        };
        let inherited = Inherited {
            env: &hello.env,
            dir: Some(&hello.dir),
        };
        let explained = |error: StartError| (error.to_string(), error.code());
        let prepared = self.local.prepare(order, hello.branch.host, inherited);
        let (feed, epoll) = (&mut self.feed, &self.epoll);
        let input = |rank: u32| match order.readers.contains(&rank) {
            true => feed.add(|pipe| watch_writable(epoll, pipe)).map(Some),
            false => Ok(None),
        };
        let prepared = prepared.map_err(explained)?;
        let (begun, outcome) = self.local.start(prepared, inherited, input);
        for rank in begun {
            let (proc, pid, bound) = (rank.proc.0, rank.pid, rank.bound);
            self.report(&FromDaemon::Started { proc, pid, bound });
        }
        outcome.map_err(explained)
    }

    pub(super) fn read_signals(&mut self) {
        while let Some(signal) = sys::next_request(&self.signals) {
            self.lose_launcher(signal);
        }
        while let Some((proc, ended)) = self.local.reap() {
            self.on_exit(proc, ended);
        }
    }

    fn on_exit(&mut self, proc: Proc, ended: Ended) {
        // The rank's requests are forwarded before the report of its death.
        self.read_requests(proc);
        let end = self.local.record_end(proc, ended);
        let snapshot = self.local.snapshot(proc);
        if end != End::Exited(0) {
            // In a fault-tolerant job no other process ends the group of a dead rank.
            // After a clean exit the rank's children may still work, so their group is left alone.
            if (self.hello.as_ref()).is_some_and(|hello| hello.tolerates_deaths) {
                self.local.end_group_of(proc);
            }
            self.report_dying();
        }
        self.report(&FromDaemon::Ended {
            proc: proc.0,
            end,
            snapshot,
        });
        if let Some(job) = self.local.job_of(proc) {
            self.give_back(job);
        }
    }

    /// Reports the ranks whose exit the kernel has begun.
    fn report_dying(&mut self) {
        let dying: Vec<usize> = self.local.dying().map(|proc| proc.0).collect();
        if !dying.is_empty() {
            self.report(&FromDaemon::Dying(dying));
        }
    }

    /// Releases the memory of a spawned job that has ended on this host, unless a trace needs it.
    /// Otherwise a program that spawns jobs for days would exhaust the memory.
    fn give_back(&mut self, job: Job) {
        if job.0 > 0 && self.local.is_over(job) {
            self.local.release(job);
        }
    }

    /// Reports the ranks that have loaded another MPI library.
    pub(super) fn report_libraries(&mut self) {
        for (proc, library) in self.local.take_libraries(Instant::now()) {
            let (proc, library) = (proc.0, library.to_string_lossy().into_owned());
            self.report(&FromDaemon::Loaded { proc, library });
        }
    }

    /// Reads all ranks' sockets and pipes, unless the queue to the launcher above is full.
    pub(super) fn read_ranks(&mut self) {
        if self.uplink.is_full() {
            return;
        }
        for proc in self.local.open() {
            self.read_requests(proc);
            self.relay(proc, Target::Stdout);
            self.relay(proc, Target::Stderr);
        }
    }

    /// Forwards PMI requests of a rank to the supervisor.
    fn read_requests(&mut self, proc: Proc) {
        loop {
            let mut bytes = Vec::new();
            let received = self.local.receive(proc, |received| bytes.extend(received));
            if received != Received::Bytes {
                return;
            }
            let proc = proc.0;
            self.report(&FromDaemon::Pmi { proc, bytes });
        }
    }

    /// Reads a rank's output stream with one system call and forwards the bytes.
    pub(super) fn relay(&mut self, proc: Proc, of: Target) -> Read {
        let mut bytes = Vec::new();
        let read = self.local.read_output(proc, of, |read| bytes.extend(read));
        // An `Output` report with empty `bytes` means that the stream has ended.
        if read == Read::End || !bytes.is_empty() {
            let (proc, stderr) = (proc.0, of == Target::Stderr);
            self.report(&FromDaemon::Output {
                proc,
                stderr,
                bytes,
            });
        }
        read
    }
}

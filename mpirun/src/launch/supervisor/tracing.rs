//! The collector of a trace: the clocks and event rings of all hosts, and the file that is made of them.
//!
//! While a traced job starts and again when it has ended, the supervisor asks each host for its clock several times;
//! the quickest answers give the offset to this host's clock ([`Clock`]). When all ranks have ended the hosts send their event rings.

use super::super::link::Link;
use super::super::ranks::Rank;
use super::super::wire::ToDaemon;
use super::Supervisor;
use crate::io_report::IoReport;
use crate::node;
use crate::pmi::Proc;
use crate::trace::clock::{Clock, Reading};
use crate::trace::lane::{Lane, Trace};
use mpi_base::node::{Event, Played};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

/// The number of clock requests in a row to one host.
const QUESTIONS: u32 = 32;

/// The clocks and event rings that other hosts have sent.
#[derive(Debug, Default)]
pub(super) struct Tracing {
    clocks: BTreeMap<u32, Clock>,
    /// The number of clock requests still to be sent to a host.
    unasked: BTreeMap<u32, u32>,
    /// By process number.
    tapes: BTreeMap<usize, Played>,
    /// Hosts that have sent all their event rings.
    complete_hosts: BTreeSet<u32>,
    /// Hosts that are unreachable.
    lost: BTreeSet<u32>,
}

impl Tracing {
    pub(super) fn add_events(&mut self, proc: usize, lost: u64, events: &[[u64; 8]]) {
        let tape = self.tapes.entry(proc).or_default();
        tape.lost = lost;
        tape.events
            .extend(events.iter().filter_map(|words| Event::of(*words)));
    }

    pub(super) fn complete_hosts(&mut self, host: u32) {
        self.complete_hosts.insert(host);
    }

    pub(super) fn give_up(&mut self, hosts: &[u32]) {
        self.lost.extend(hosts);
    }
}

impl Supervisor<'_> {
    /// Returns the hosts that are reached by open links.
    fn remote_hosts(&self) -> Vec<u32> {
        let open = self.links.iter().filter(|link| link.is_open());
        let hosts = open.flat_map(|link: &Link| link.branch.hosts());
        hosts
            .filter(|host| !self.tracing.lost.contains(host))
            .collect()
    }

    /// Begins to ask all hosts for their clocks, if the job is traced.
    pub(super) fn compare_clocks(&mut self) {
        if !self.plan.needs_event_rings() {
            return;
        }
        for host in self.remote_hosts() {
            self.tracing.clocks.entry(host).or_default().begin();
            self.tracing.unasked.insert(host, QUESTIONS);
            self.ask_clock(host);
        }
    }

    fn ask_clock(&mut self, host: u32) {
        if let Some(left) = self.tracing.unasked.get_mut(&host)
            && *left > 0
        {
            *left -= 1;
            self.send_host(host, &ToDaemon::Time(node::now_ns()));
        } else {
            self.tracing.unasked.remove(&host);
        }
    }

    pub(super) fn add_clock_reading(&mut self, host: u32, asked: u64, their_clock: u64) {
        if let Some(clock) = self.tracing.clocks.get_mut(&host) {
            clock.read(Reading::between(asked, node::now_ns(), their_clock));
            self.ask_clock(host);
        }
    }

    /// All ranks have ended: receives the other hosts' event rings.
    pub(super) fn collect_event_rings(&mut self, limit: Option<Instant>) {
        if !self.plan.needs_event_rings() || self.remote_hosts().is_empty() {
            return;
        }
        // The clocks first: answers are slow while event rings are in flight.
        self.compare_clocks();
        self.serve_links(limit, |supervisor| {
            let told = |host: &u32| !supervisor.tracing.unasked.contains_key(host);
            supervisor.remote_hosts().iter().all(told)
        });
        self.send_all_hosts(&ToDaemon::EventRings);
        self.serve_links(limit, |supervisor| {
            let told = |host: &u32| supervisor.tracing.complete_hosts.contains(host);
            supervisor.remote_hosts().iter().all(told)
        });
    }

    /// Writes the report of the ranks' file I/O.
    fn write_io_report(&mut self, file: &Path, lanes: &[Lane]) {
        let report = IoReport::of(lanes);
        let written = match file.as_os_str() == "-" {
            true => {
                printable::to_stderr(&report.table());
                Ok(())
            }
            false => report.write(file),
        };
        if let Err(error) = written {
            let name = printable::name(file);
            self.lose_output(&format!(
                "the report of files cannot be written to {name}: {error}, so it is printed instead"
            ));
            printable::to_stderr(&report.table());
        }
    }

    /// Writes the trace and the I/O report that the user asked for.
    pub(super) fn write_trace(&mut self) {
        let plan = self.plan;
        if !plan.needs_event_rings() {
            return;
        }
        let mut tracing = std::mem::take(&mut self.tracing);
        let mut missing = BTreeMap::<u32, usize>::new();
        let mut lane = |(proc, rank): (Proc, &Rank)| {
            let tape = if rank.here {
                let node = self.nodes.get(rank.job.0)?.as_ref()?;
                node.tape_of(rank.local_rank)
            } else if tracing.complete_hosts.contains(&rank.host) {
                let mut tape = tracing.tapes.remove(&proc.0).unwrap_or_default();
                if let Some(clock) = tracing.clocks.get(&rank.host) {
                    tape.events.iter_mut().for_each(|event| clock.set(event));
                }
                tape
            } else {
                *missing.entry(rank.host).or_default() += 1;
                return None;
            };
            Some(Lane {
                job: rank.job.0,
                rank: rank.rank,
                host: self.host_name(rank.host),
                tape,
            })
        };
        let lanes: Vec<Lane> = self.ranks.iter().filter_map(&mut lane).collect();
        if let Some(file) = &plan.io_report {
            self.write_io_report(file, &lanes);
        }
        let Some(file) = &plan.trace else { return };
        let clocks = tracing.clocks.iter();
        let clocks = clocks.map(|(host, clock)| (self.host_name(*host), clock.precision()));
        let mut trace = Trace {
            lanes,
            clocks: clocks.collect(),
        };
        trace.align();
        if let Err(error) = trace.write(file, node::call_name) {
            let name = printable::name(file);
            return self.lose_output(&format!("the trace cannot be written to {name}: {error}"));
        }
        for (host, ranks) in missing {
            let host = self.host_name(host);
            let ranks = match ranks {
                1 => "the rank".to_string(),
                more => format!("the {more} ranks"),
            };
            self.say(&format!(
                "the trace lacks {ranks} of {host}, which could not be asked any more"
            ));
        }
        if trace.lost() > 0 {
            self.say(&format!(
                "the trace has the latest events; {} earlier ones were forgotten (--mca mpi_base_trace N keeps N of each rank)",
                trace.lost()
            ));
        }
    }
}

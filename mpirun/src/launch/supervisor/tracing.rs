//! Trace collector: clocks and event rings of all hosts, and the files that are written from them.
//!
//! The supervisor reads each host's clock several times at the start and the end of a traced job.
//! The answers with the shortest round trip give the offset to this host's clock ([`Clock`]).
//! After all ranks have ended, the hosts send their event rings.

use super::jobs::{Jobs, Rank};
use super::outputs::Outputs;
use crate::io_report::IoReport;
use crate::launch::links::Links;
use crate::launch::local_ranks::LocalRanks;
use crate::launch::program::Plan;
use crate::launch::wire::ToDaemon;
use crate::matrix::Matrix;
use crate::node;
use crate::pmi::Proc;
use crate::trace::clock::{Clock, Reading};
use crate::trace::lane::{Lane, Trace};
use mpi_base::clock::now_ns;
use mpi_base::node::{Event, Played};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The number of successive clock requests to one host.
const QUESTIONS: u32 = 32;

/// Clocks and event rings of other hosts.
pub(super) struct Tracing<'a> {
    plan: &'a Plan,
    clocks: BTreeMap<u32, Clock>,
    /// The number of clock requests that remain for each host.
    unasked: BTreeMap<u32, u32>,
    /// The received event rings, by process index.
    played: BTreeMap<usize, Played>,
    /// Hosts that have sent all event rings.
    complete_hosts: BTreeSet<u32>,
    /// Unreachable hosts.
    lost: BTreeSet<u32>,
}

impl<'a> Tracing<'a> {
    pub(super) fn new(plan: &'a Plan) -> Tracing<'a> {
        Tracing {
            plan,
            clocks: BTreeMap::new(),
            unasked: BTreeMap::new(),
            played: BTreeMap::new(),
            complete_hosts: BTreeSet::new(),
            lost: BTreeSet::new(),
        }
    }

    /// Returns true if event rings are needed from other hosts.
    pub(super) fn needs_hosts(&self, links: &Links) -> bool {
        self.plan.needs_event_rings() && !self.hosts(links).is_empty()
    }

    /// Returns the hosts that open links reach.
    fn hosts(&self, links: &Links) -> Vec<u32> {
        let mut hosts = links.open_hosts();
        hosts.retain(|host| !self.lost.contains(host));
        hosts
    }

    /// Appends events to a rank's received event ring; `lost` events were overwritten at the rank.
    pub(super) fn add_events(&mut self, proc: usize, lost: u64, events: &[[u64; 8]]) {
        let played = self.played.entry(proc).or_default();
        played.lost = lost;
        played
            .events
            .extend(events.iter().filter_map(|words| Event::of(*words)));
    }

    /// Records that a host has sent all its event rings.
    pub(super) fn complete_host(&mut self, host: u32) {
        self.complete_hosts.insert(host);
    }

    /// Records that hosts are lost.
    pub(super) fn give_up(&mut self, hosts: &[u32]) {
        self.lost.extend(hosts);
    }

    /// Begins to read the clocks of all hosts, if the job is traced.
    pub(super) fn compare_clocks(&mut self, links: &mut Links) {
        if !self.plan.needs_event_rings() {
            return;
        }
        for host in self.hosts(links) {
            self.clocks.entry(host).or_default().begin();
            self.unasked.insert(host, QUESTIONS);
            self.ask_clock(host, links);
        }
    }

    fn ask_clock(&mut self, host: u32, links: &mut Links) {
        if let Some(left) = self.unasked.get_mut(&host)
            && *left > 0
        {
            *left -= 1;
            links.send(host, &ToDaemon::Time(now_ns()));
        } else {
            self.unasked.remove(&host);
        }
    }

    /// Adds a clock reading of a host (`asked` is the request's time), and sends the next request.
    pub(super) fn add_clock_reading(
        &mut self,
        host: u32,
        (asked, their_clock): (u64, u64),
        links: &mut Links,
    ) {
        if let Some(clock) = self.clocks.get_mut(&host) {
            clock.read(Reading::between(asked, now_ns(), their_clock));
            self.ask_clock(host, links);
        }
    }

    /// Returns true if every host has answered all clock requests.
    pub(super) fn has_all_clocks(&self, links: &Links) -> bool {
        let hosts = self.hosts(links);
        hosts.iter().all(|host| !self.unasked.contains_key(host))
    }

    /// Returns true if every host has sent all event rings.
    pub(super) fn has_all_rings(&self, links: &Links) -> bool {
        let hosts = self.hosts(links);
        hosts.iter().all(|host| self.complete_hosts.contains(host))
    }

    /// Writes the requested trace, communication matrix and I/O report.
    pub(super) fn write(&mut self, jobs: &Jobs<'_>, local: &LocalRanks, outputs: &mut Outputs<'_>) {
        if !self.plan.needs_event_rings() {
            return;
        }
        let mut missing = BTreeMap::<u32, usize>::new();
        let mut lanes = Vec::new();
        for (proc, rank) in jobs.iter() {
            match self.played(proc, rank, local) {
                Some(played) => lanes.push(Lane {
                    job: rank.job.0,
                    rank: rank.rank,
                    host: jobs.host_name(rank.host),
                    played,
                }),
                None if rank.here => {}
                None => *missing.entry(rank.host).or_default() += 1,
            }
        }
        if let Some(file) = &self.plan.io_report {
            write_io_report(file, &lanes, outputs);
        }
        if let Some(file) = &self.plan.matrix {
            write_matrix(file, &lanes, outputs);
        }
        if let Some(file) = &self.plan.trace {
            self.write_trace(file, lanes, &missing, (jobs, outputs));
        }
    }

    /// Returns a rank's events with times of this host's clock; `None` if they were not received.
    fn played(&mut self, proc: Proc, rank: &Rank, local: &LocalRanks) -> Option<Played> {
        if rank.here {
            return local.played(proc);
        }
        if !self.complete_hosts.contains(&rank.host) {
            return None;
        }
        let mut played = self.played.remove(&proc.0).unwrap_or_default();
        if let Some(clock) = self.clocks.get(&rank.host) {
            played.events.iter_mut().for_each(|event| clock.set(event));
        }
        Some(played)
    }

    fn write_trace(
        &self,
        file: &Path,
        lanes: Vec<Lane>,
        missing: &BTreeMap<u32, usize>,
        (jobs, outputs): (&Jobs<'_>, &mut Outputs<'_>),
    ) {
        let clocks = self.clocks.iter();
        let clocks = clocks.map(|(host, clock)| (jobs.host_name(*host), clock.precision()));
        let mut trace = Trace {
            lanes,
            clocks: clocks.collect(),
        };
        trace.align();
        if let Err(error) = trace.write(file, node::call_name) {
            let name = printable::name(file);
            return outputs.lose(&format!("the trace cannot be written to {name}: {error}"));
        }
        for (&host, ranks) in missing {
            let host = jobs.host_name(host);
            let ranks = match ranks {
                1 => "the rank".to_string(),
                more => format!("the {more} ranks"),
            };
            outputs.say(&format!(
                "the trace lacks {ranks} of {host}, which could not be asked any more"
            ));
        }
        if trace.lost() > 0 {
            outputs.say(&format!(
                "the trace has the latest events; {} earlier ones were forgotten (--mca mpi_base_trace N keeps N of each rank)",
                trace.lost()
            ));
        }
    }
}

/// Writes the communication matrix (`--matrix`).
fn write_matrix(file: &Path, lanes: &[Lane], outputs: &mut Outputs<'_>) {
    if let Err(error) = Matrix::of(lanes).write(file) {
        let name = printable::name(file);
        outputs.lose(&format!(
            "the communication matrix cannot be written to {name}: {error}"
        ));
    }
}

/// Writes the report of the ranks' file I/O (`--io-report`).
fn write_io_report(file: &Path, lanes: &[Lane], outputs: &mut Outputs<'_>) {
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
        outputs.lose(&format!(
            "the report of files cannot be written to {name}: {error}, so it is printed instead"
        ));
        printable::to_stderr(&report.table());
    }
}

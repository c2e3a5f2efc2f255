//! Starting jobs: the launched one, and those that are spawned.

use super::super::output::{Stream, StreamId, Style, Target};
use super::super::pmi_socket::PmiSocket;
use super::super::program::{App, Plan, StdinTo};
use super::super::ranks::{Client, Rank, StartError, StartedRank, Starter};
use super::super::wire::{Order, ToDaemon};
use super::{Adopted, Supervisor, Watch, Wires, system, watch};
use crate::node::Node;
use crate::pmi::{Job, Proc, SpawnRequest};
use mpi_base::ranges;
use mpi_core::rte::wire::Lines;
use printable::name;
use rustix::fd::{AsFd, OwnedFd};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};

/// A host number that is none of the plan's: this host is not in the plan.
const NOWHERE: u32 = u32::MAX;

impl Supervisor<'_> {
    /// Returns this host's index among the plan's.
    pub(super) fn here(&self) -> u32 {
        let here = self.plan.hosts.iter().position(|host| host.here);
        here.map_or(NOWHERE, |host| host as u32)
    }

    /// Starts a job; if one of its programs is missing on this host, nothing is started here.
    pub(super) fn launch(
        &mut self,
        apps: &[App],
        preput: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<Job, StartError> {
        let (job, known) = (Job(self.server.jobs()), self.ranks.count());
        let started = self.launch_job(apps, preput);
        if started.is_err() && self.ranks.count() == known {
            self.server.take_back(job);
        }
        // Jobs have the same numbers in all tables, even if one failed to start.
        while self.nodes.next() < self.server.jobs() {
            self.nodes.push(None);
        }
        started
    }

    fn launch_job(
        &mut self,
        apps: &[App],
        preput: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<Job, StartError> {
        let placed = self.place(apps).map_err(StartError::Mapping)?;
        let appnums: Vec<usize> = placed
            .iter()
            .enumerate()
            .flat_map(|(appnum, hosts)| std::iter::repeat_n(appnum, hosts.len()))
            .collect();
        let hosts: Vec<u32> = placed
            .concat()
            .into_iter()
            .map(|host| host as u32)
            .collect();
        let here = self.here();
        let job = self.server.add_job(&appnums, &hosts, preput);
        let readers = self.readers(job, hosts.len());
        let order = Order {
            job: job.0,
            kvsname: self.server.kvsname(job).to_string(),
            spawned: self.server.is_spawned(job),
            first: self.ranks.count(),
            apps: apps.to_vec(),
            appnums,
            hosts,
            binding: self.plan.binding,
            readers,
            slots: self.plan.slots(),
            tolerates_deaths: self.plan.tolerates_deaths,
        };
        let starter = starter_of(self.plan, &self.wires, &self.reports.1, &self.null);
        let resolved = starter.resolve(&order, here)?;
        let mut told: Vec<String> = resolved.sentences().collect();
        // Several sections may have one program.
        told.dedup();
        let node = match resolved.count() {
            0 => None,
            count => Some(Node::create(count).map_err(StartError::Node)?),
        };
        // All ranks are registered before any is started, in the order of their numbers.
        let mut ranks = Vec::with_capacity(order.hosts.len());
        for rank in 0..order.hosts.len() as u32 {
            ranks.push(self.expected(&order, rank)?);
        }
        if order.hosts.iter().any(|&host| host != here) {
            self.reach(&order).map_err(system("reaching other hosts"))?;
            self.send_all_hosts(&ToDaemon::Launch(Box::new(order.clone())));
            self.compare_clocks();
        }
        for sentence in told {
            self.say(&sentence);
        }
        for rank in ranks {
            self.ranks.push(rank);
        }
        let mut outcome = Ok(());
        if let Some(node) = &node {
            let mut started_rank = Vec::with_capacity(resolved.count());
            let (wires, feed, epoll) = (&self.wires, &mut self.feed, &self.epoll);
            let direct = order.readers.len() == 1;
            let input = |rank: u32| -> std::io::Result<Option<OwnedFd>> {
                if !order.readers.contains(&rank) {
                    return Ok(None);
                }
                if direct {
                    // The only reader inherits the file itself.
                    return Ok(Some(rustix::io::fcntl_dupfd_cloexec(&wires.stdin, 3)?));
                }
                feed.add(|pipe| super::watch_writable(epoll, pipe))
                    .map(Some)
            };
            let starter = starter_of(self.plan, &self.wires, &self.reports.1, &self.null);
            outcome = starter.start(&order, &resolved, node.fd(), input, |rank| {
                started_rank.push(rank)
            });
            for one in started_rank {
                let proc = Proc(order.first + one.rank as usize);
                self.settle(proc, one);
            }
            if outcome.is_err() {
                // The end of a rank that was not started is never reported, so it is counted as ended here.
                self.never_began(job, here);
            }
        }
        self.nodes.push(node);
        outcome?;
        self.start_pump(&order);
        Ok(job)
    }

    /// Serves the process that has started this launcher, as the first job.
    pub(super) fn adopt(&mut self, adopted: Adopted) -> Result<(), StartError> {
        let Adopted { socket, job: name } = adopted;
        let peer = rustix::net::sockopt::socket_peercred(&socket).map_err(system(
            "asking which process is at the other end of standard input",
        ))?;
        let here = self.here();
        let job = self.server.add_job(&[0], &[here], &[]);
        self.server.rename(job, name);
        let program = self.plan.apps.first();
        let program = program.map(|app| app.program.to_string_lossy().into_owned());
        let socket = PmiSocket::new(socket);
        let proc = Proc(self.ranks.count());
        watch(&self.epoll, &socket, Watch::Pmi(proc));
        self.ranks.push(Rank {
            job,
            rank: 0,
            size: 1,
            program: program.unwrap_or_default(),
            host: here,
            here: true,
            is_adopted: true,
            is_dying: false,
            is_dismissed: false,
            local_rank: 0,
            pid: peer.pid.as_raw_nonzero().get(),
            alive: true,
            lost: None,
            pmi: Some(Client {
                socket: Some(socket),
                lines: Lines::default(),
            }),
            stdout: None,
            stderr: None,
            snapshot: None,
        });
        self.nodes.push(None);
        Ok(())
    }

    /// Returns the entry of a rank that is about to start.
    fn expected(&self, order: &Order, rank: u32) -> Result<Rank, StartError> {
        let at = rank as usize;
        let app = &order.apps[order.appnums[at]];
        let host = order.hosts[at];
        let before = order.hosts[..at].iter().filter(|other| **other == host);
        let here = host == self.here();
        Ok(Rank {
            job: Job(order.job),
            rank,
            size: order.hosts.len(),
            program: app.program.to_string_lossy().into_owned(),
            host,
            here,
            is_adopted: false,
            is_dying: false,
            is_dismissed: false,
            local_rank: before.count() as u32,
            pid: 0,
            alive: true,
            lost: None,
            pmi: Some(Client {
                socket: None,
                lines: Lines::default(),
            }),
            stdout: Some(self.stream(order.job, rank, Target::Stdout)?),
            stderr: Some(self.stream(order.job, rank, Target::Stderr)?),
            snapshot: None,
        })
    }

    fn stream(&self, job: usize, rank: u32, kind: Target) -> Result<Stream, StartError> {
        let io = &self.plan.io;
        let name = match kind {
            Target::Stdout => "stdout",
            Target::Stderr => "stderr",
        };
        let tag = match (io.tag, io.label) {
            (true, _) => format!("[{},{rank}]<{name}>: ", job + 1),
            (false, true) => format!("[{rank}] "),
            (false, false) => String::new(),
        };
        let file = io.folder.as_deref().map(|folder| {
            let merged = if io.merge { "stdout" } else { name };
            create(folder, job, rank, merged)
        });
        let style = Style {
            tag,
            timestamp: io.timestamp,
            file: file.transpose()?,
            silent: io.folder.is_some() && !io.echo,
            unbuffered: io.unbuffered,
        };
        let to = if io.merge { Target::Stdout } else { kind };
        let output = match kind {
            Target::Stdout => "output",
            Target::Stderr => "error",
        };
        let name = match job {
            0 => format!("rank {rank}'s standard {output}"),
            job => format!("the standard {output} of rank {rank} of spawned job {job}"),
        };
        Ok(Stream::new(
            StreamId::new(job, rank, kind),
            name,
            None,
            to,
            style,
        ))
    }

    /// Registers a started rank of this host.
    fn settle(&mut self, proc: Proc, started_rank: StartedRank) {
        watch(&self.epoll, &started_rank.pmi, Watch::Pmi(proc));
        watch(&self.epoll, &started_rank.stdout, Watch::Stdout(proc));
        watch(&self.epoll, &started_rank.stderr, Watch::Stderr(proc));
        if let Some(rank) = self.ranks.get_mut(proc) {
            rank.pid = started_rank.pid;
            if let Some(client) = &mut rank.pmi {
                client.socket = Some(started_rank.pmi);
            }
            if let Some(stream) = &mut rank.stdout {
                stream.fd = Some(started_rank.stdout);
            }
            if let Some(stream) = &mut rank.stderr {
                stream.fd = Some(started_rank.stderr);
            }
        }
        self.watch_libraries_of(proc);
        self.report_start(proc, started_rank.bound.as_deref());
    }

    /// Reports that a rank was started, and where, if that was asked for.
    pub(super) fn report_start(&mut self, proc: Proc, bound: Option<&str>) {
        if self.plan.verbose {
            let name = self.name_of(proc);
            self.say(&format!("{name} was started"));
        }
        if self.plan.report_bindings
            && let Some(rank) = self.ranks.get(proc)
        {
            let host = self.host_name(rank.host);
            let bound = bound.unwrap_or("not bound");
            let line = format!("[{host}:{}] Rank {} {bound}", rank.pid, rank.rank);
            self.say(&line);
        }
    }

    pub(super) fn spawn(&mut self, parent: Proc, request: SpawnRequest) {
        if crate::recording::is_asked_for(&self.plan.env) {
            // Spawned ranks have the same rank numbers as launched ones, and a recording has one file per rank number.
            let why = "a run that is recorded or replayed cannot spawn";
            let name = self.name_of(parent);
            self.say(&format!("{name} called MPI_Comm_spawn, which fails: {why}"));
            let effects = self.server.spawned(parent, Err(why.into()));
            return self.apply(effects);
        }
        let asked = request.apps.into_iter();
        let apps = asked.map(|app| crate::cli::spawned_app(app, &self.plan.hosts));
        let next = self.server.jobs();
        let outcome = match apps.collect::<Result<Vec<App>, String>>() {
            Ok(apps) => self.launch(&apps, &request.preput).map_err(|error| {
                // A partly started job is ended.
                self.dismiss(&BTreeSet::from([next]), libc::SIGKILL);
                self.give_back(Job(next));
                error.to_string()
            }),
            Err(why) => Err(why),
        };
        let effects = self.server.spawned(parent, outcome);
        self.apply(effects);
    }

    /// Returns the ranks of a job that read mpirun's standard input; spawned ranks read nothing.
    fn readers(&self, job: Job, size: usize) -> Vec<u32> {
        let stdin = match job.0 {
            0 => self.plan.io.stdin,
            _ => StdinTo::NoRank,
        };
        (0..size as u32)
            .filter(|&rank| stdin.goes_to(rank))
            .collect()
    }

    /// Prints `--display-map`, and with `--verbose` or on a terminal a line if cores are oversubscribed.
    pub(super) fn show_map(&mut self) {
        if self.plan.display_map {
            let mut text = String::from("where ranks run:");
            for (number, host) in (0..).zip(&self.plan.hosts) {
                for (appnum, app) in self.plan.apps.iter().enumerate() {
                    let ranks: Vec<usize> = self
                        .ranks
                        .iter()
                        .filter(|(_, rank)| rank.host == number)
                        .map(|(_, rank)| rank)
                        .filter(|rank| rank.program == app.program.to_string_lossy())
                        .map(|rank| rank.rank as usize)
                        .collect();
                    if !ranks.is_empty() && appnum == self.first_app_named(&app.program) {
                        text += &format!(
                            "\n  {}: {} ({}) of {} slot{}",
                            name(&host.name),
                            ranges::write(&ranks),
                            name(&app.program),
                            host.slots,
                            if host.slots == 1 { "" } else { "s" },
                        );
                    }
                }
            }
            self.say(&text);
        }
        let cores = mpi_base::cpu::Cores::of_this_process().usable;
        let here = self.ranks.iter().filter(|(_, rank)| rank.here).count();
        let watched = self.plan.verbose || rustix::termios::isatty(rustix::stdio::stderr());
        if here > cores && watched && !self.plan.oversubscribe {
            self.say(&format!(
                "{here} ranks share {cores} core{} (--oversubscribe: do not mention it)",
                if cores == 1 { "" } else { "s" }
            ));
        }
    }

    fn first_app_named(&self, program: &std::ffi::OsStr) -> usize {
        let named = |app: &App| app.program == program;
        self.plan.apps.iter().position(named).unwrap_or(0)
    }
}

/// Creates `FOLDER/JOB/rank.N/stdout`, jobs counted from 1, as users count them.
fn create(folder: &Path, job: usize, rank: u32, name: &str) -> Result<(PathBuf, File), StartError> {
    let place = folder.join(format!("{}/rank.{rank}", job + 1));
    let path = place.join(name);
    std::fs::create_dir_all(&place)
        .and_then(|()| match name {
            // Two streams of a rank may share a file, so both append.
            "stdout" | "stderr" => File::options()
                .create(true)
                .append(true)
                .open(&path)
                .and_then(|file| file.set_len(0).map(|()| file)),
            _ => File::create(&path),
        })
        .map_err(|error| StartError::Output {
            path: path.display().to_string(),
            error,
        })
        .map(|file| (path, file))
}

/// Creates the starter of this host's ranks.
fn starter_of<'a>(
    plan: &'a Plan,
    wires: &Wires,
    report: &'a OwnedFd,
    null: &'a OwnedFd,
) -> Starter<'a> {
    Starter {
        env: &plan.env,
        dir: None,
        report: report.as_fd(),
        null: null.as_fd(),
        nofile: wires.nofile,
    }
}

//! Start of jobs: the launched job, an adopted process, and spawned jobs.

use super::poller::Watch;
use super::{Adopted, Supervisor};
use crate::launch::local_ranks::Begun;
use crate::launch::output::Target;
use crate::launch::pmi_socket::PmiSocket;
use crate::launch::program::App;
use crate::launch::starter::{Inherited, StartError, system};
use crate::launch::under::Under;
use crate::launch::wire::{Order, ToDaemon};
use crate::pmi::{Job, Proc, SpawnRequest};
use mpi_base::ranges;
use printable::name;
use std::collections::BTreeSet;

impl Supervisor<'_> {
    /// Starts a job; if a program is missing on this host, no rank is started on this host.
    pub(super) fn launch(
        &mut self,
        apps: &[App],
        preput: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<Job, StartError> {
        let control = &self.control;
        let (job, known) = (Job(control.server.jobs()), control.ranks.jobs.count());
        let started = self.launch_job(apps, preput);
        if started.is_err() && self.control.ranks.jobs.count() == known {
            self.control.server.take_back(job);
        }
        started
    }

    fn launch_job(
        &mut self,
        apps: &[App],
        preput: &[(Vec<u8>, Vec<u8>)],
    ) -> Result<Job, StartError> {
        let order = self.order(apps, preput)?;
        let job = Job(order.job);
        let control = &mut self.control;
        let inherited = Inherited {
            env: &self.plan.env,
            dir: None,
        };
        let here = control.ranks.jobs.here();
        let prepared = control.ranks.local.prepare(&order, here, inherited)?;
        let mut sentences: Vec<String> = prepared.sentences().collect();
        sentences.extend(order.under.as_ref().map(Under::sentence));
        // If several sections of the command line name one program, its message is printed once.
        sentences.dedup();
        let streams = control.ranks.outputs.prepare(&order)?;
        if order.hosts.iter().any(|&host| host != here) {
            self.reach(&order).map_err(system("reaching other hosts"))?;
            let links = &mut self.control.ranks.links;
            links.send_all(&ToDaemon::Launch(Box::new(order.clone())));
            self.tracing.compare_clocks(links);
        }
        let control = &mut self.control;
        for sentence in sentences {
            control.ranks.outputs.say(&sentence);
        }
        // All ranks are registered in rank order before the first rank starts.
        control.ranks.jobs.add(&order);
        control.ranks.outputs.add(order.first, streams);
        let (poller, input) = (&self.poller, &mut self.input);
        let input = |rank: u32| input.of_rank(&order, rank, poller);
        let (begun, outcome) = control.ranks.local.start(prepared, inherited, input);
        begun.into_iter().for_each(|rank| self.register(rank));
        if outcome.is_err() {
            // The end of a rank that was not started is recorded here, since no process will end.
            self.control.ranks.never_began(job, here);
        }
        outcome?;
        let links = &mut self.control.ranks.links;
        self.input.start(&order, here, &self.poller, links);
        Ok(job)
    }

    /// Registers a job with the PMI server; returns the order that starts the job.
    fn order(&mut self, apps: &[App], preput: &[(Vec<u8>, Vec<u8>)]) -> Result<Order, StartError> {
        let control = &mut self.control;
        let placed = control.losses.place(self.plan, apps, &control.ranks.jobs);
        let placed = placed.map_err(StartError::Mapping)?;
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
        let job = control.server.add_job(&appnums, &hosts, preput);
        Ok(Order {
            job: job.0,
            kvsname: control.server.kvsname(job).to_string(),
            spawned: control.server.is_spawned(job),
            first: control.ranks.jobs.count(),
            apps: apps.to_vec(),
            appnums,
            readers: self.input.readers(job, hosts.len()),
            hosts,
            binding: self.plan.binding,
            slots: self.plan.slots(),
            tolerates_deaths: self.plan.tolerates_deaths,
            takes_checkpoints: self.plan.checkpoints.is_some() && job == Job(0),
            under: self.plan.under.clone().filter(|_| job == Job(0)),
        })
    }

    /// Registers the process that has started this launcher as the first job.
    pub(super) fn adopt(&mut self, adopted: Adopted) -> Result<(), StartError> {
        let Adopted { socket, job: name } = adopted;
        let peer = rustix::net::sockopt::socket_peercred(&socket).map_err(system(
            "asking which process is at the other end of standard input",
        ))?;
        let control = &mut self.control;
        let here = control.ranks.jobs.here();
        let job = control.server.add_job(&[0], &[here], &[]);
        control.server.rename(job, name);
        let program = self.plan.apps.first();
        let program = program.map(|app| app.program.to_string_lossy().into_owned());
        let pid = peer.pid.as_raw_nonzero().get();
        let proc = (control.ranks.jobs).add_adopted(job, program.unwrap_or_default(), pid);
        let socket = PmiSocket::new(socket);
        self.poller.watch(&socket, Watch::Pmi(proc));
        control.ranks.local.adopt(proc, job, socket);
        Ok(())
    }

    /// Registers a started rank of this host with the epoll.
    fn register(&mut self, rank: Begun) {
        let Begun { proc, pid, bound } = rank;
        let control = &mut self.control;
        control.ranks.jobs.record_start(proc, pid);
        if let Some(socket) = control.ranks.local.socket(proc) {
            self.poller.watch(socket, Watch::Pmi(proc));
        }
        for of in [Target::Stdout, Target::Stderr] {
            if let Some(pipe) = control.ranks.local.pipe(proc, of) {
                self.poller.watch(pipe, Watch::output(proc, of));
            }
        }
        self.report_start(proc, bound.as_deref());
    }

    /// Reports the start of a rank (`--verbose`) and its processors (`--report-bindings`).
    pub(super) fn report_start(&mut self, proc: Proc, bound: Option<&str>) {
        let control = &mut self.control;
        if self.plan.verbose {
            let name = control.ranks.jobs.name_of(proc);
            control.ranks.outputs.say(&format!("{name} was started"));
        }
        if self.plan.report_bindings
            && let Some(rank) = control.ranks.jobs.get(proc)
        {
            let host = control.ranks.jobs.host_name(rank.host);
            let bound = bound.unwrap_or("not bound");
            let line = format!("[{host}:{}] Rank {} {bound}", rank.pid, rank.rank);
            control.ranks.outputs.say(&line);
        }
    }

    /// Starts the jobs that ranks have requested by `MPI_Comm_spawn`.
    pub(super) fn start_spawned(&mut self) {
        while let Some((parent, request)) = self.control.take_spawn() {
            self.spawn(parent, request);
        }
    }

    fn spawn(&mut self, parent: Proc, request: SpawnRequest) {
        let control = &mut self.control;
        if crate::recording::is_asked_for(&self.plan.env) {
            // A recording has one file per rank number.
            // Spawned ranks have the same numbers as launched ranks, so their files would collide.
            let why = "a run that is recorded or replayed cannot spawn";
            let name = control.ranks.jobs.name_of(parent);
            control
                .ranks
                .outputs
                .say(&format!("{name} called MPI_Comm_spawn, which fails: {why}"));
            let effects = control.server.spawned(parent, Err(why.into()));
            return control.apply(effects);
        }
        let asked = request.apps.into_iter();
        let apps = asked.map(|app| crate::launch::spawned::spawned_app(app, &self.plan.hosts));
        let next = control.server.jobs();
        let outcome = match apps.collect::<Result<Vec<App>, String>>() {
            Ok(apps) => self.launch(&apps, &request.preput).map_err(|error| {
                // A partly started job is ended immediately.
                self.control.dismiss(&BTreeSet::from([next]), libc::SIGKILL);
                self.control.give_back(Job(next));
                error.to_string()
            }),
            Err(why) => Err(why),
        };
        let effects = self.control.server.spawned(parent, outcome);
        self.control.apply(effects);
    }

    /// Prints the map of `--display-map`.
    /// With `--verbose` or on a terminal, oversubscribed cores are reported as well.
    pub(super) fn show_map(&mut self) {
        let jobs = &self.control.ranks.jobs;
        if self.plan.display_map {
            let mut text = String::from("where ranks run:");
            for (number, host) in (0..).zip(&self.plan.hosts) {
                for (appnum, app) in self.plan.apps.iter().enumerate() {
                    let ranks: Vec<usize> = jobs
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
            self.control.ranks.outputs.say(&text);
        }
        let cores = mpi_base::cpu::Cores::of_this_process().usable;
        let here = jobs.iter().filter(|(_, rank)| rank.here).count();
        let watched = self.plan.verbose || rustix::termios::isatty(rustix::stdio::stderr());
        if here > cores && watched && !self.plan.oversubscribe {
            self.control.ranks.outputs.say(&format!(
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

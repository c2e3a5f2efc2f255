//! Supervisor: the process that owns the ranks of all jobs of one `mpirun`.
//!
//! The supervisor has one thread with one epoll. Ranks of this host are its children.
//! Ranks of another host are children of that host's [daemon](super::daemon).
//! A daemon executes the supervisor's orders and reports events over a [link](super::link).
//! The supervisor alone decides what an end, output or request of a rank means.
//!
//! Lifecycle: all jobs are started, and the loop runs until no rank is alive.
//! Then orphans are killed, pipes are drained, and the exit code is returned.
//! The first failure decides the exit code and begins the *ending*: SIGTERM to all ranks' process
//! groups, a grace period, SIGKILL ([`term_signals`](super::term_signals)).
//! Jobs that are not connected with the failed job (MPI 5.0, section 11.10.4) continue.
//! Later failures of the ranks being ended are consequences and are not reported.
//! In a fault-tolerant job (`--with-ft`), the death of a rank is a loss and not a failure.
//!
//! [`Supervisor`] is the event loop: it receives events and calls the responsible module.
//!
//! | module | subject |
//! |---|---|
//! | [`control`] | rules for requests, ends and losses of ranks |
//! | [`deferred_cause`] | a failure that is held back, since another failure may explain it |
//! | [`ending`], [`lifecycle`] | termination of jobs by signals and grace periods |
//! | [`all_ranks`] | operations on all ranks of all hosts: signals, answers, losses |
//! | [`jobs`] | the table of all ranks of all jobs |
//! | [`outputs`], [`input`], [`tracebacks`] | output, standard input, Python exceptions |
//! | [`front_end`], [`poller`] | signals from the user; the epoll |
//! | [`watching`], [`hang_detector`] | hang reports; detection of missing progress |
//! | [`dead_job`] | termination of a deadlocked job |
//! | [`checkpoints`] | checkpoints of the launched job |
//! | [`process_images`] | checkpoints that are images of all processes |
//! | [`unsaved`] | what images of processes cannot contain |
//! | [`remote_control`] | requests of `mpi-ctl` |
//! | [`debuggers`] | process table and abort notices for debuggers |
//! | [`tracing`] | clocks and event rings of all hosts |
//! | [`unserved`] | ranks that have loaded another MPI library |
//! | [`start`], [`hosts`], [`finish`] | start of jobs, reports of hosts, end of a launch |
//!
//! A daemon uses the same tables for its host:
//! [`local_ranks`](super::local_ranks) and [`links`](super::links).

mod all_ranks;
mod checkpoints;
mod control;
mod dead_job;
mod debuggers;
mod deferred_cause;
mod ending;
mod finish;
mod front_end;
mod hang_detector;
mod hosts;
mod input;
mod jobs;
mod lifecycle;
mod outputs;
mod poller;
mod process_images;
mod remote_control;
mod start;
mod tracebacks;
mod tracing;
mod unsaved;
mod unserved;
mod watching;

use super::descendants;
use super::ending::list;
use super::hold;
use super::local_ranks::Read;
use super::mpir::TableFile;
use super::output::Target;
use super::program::Plan;
use super::starter::StartError;
use super::sys::{self, Signal};
use super::trim_memory::MemoryTrim;
use crate::pmi::Proc;
use control::JobControl;
use control::checkpoint_rounds;
pub(super) use control::checkpoint_rounds::STOPPED;
use dead_job::{DeadJob, Seems};
use debuggers::Debuggers;
use front_end::{FromUser, FrontEnd};
use input::Input;
use jobs::Rank;
use poller::{Poller, Waited, Watch};
use remote_control::RemoteControl;
use rustix::event::Timespec;
use rustix::fd::OwnedFd;
use std::time::Instant;
use tracing::Tracing;
use unserved::Unserved;
use watching::HangReports;

/// The exit code of a job that exceeded its time limit, as in timeout(1).
pub const TIMED_OUT: i32 = 124;

/// The exit code of a successful job with incomplete output (EX_IOERR of sysexits.h).
pub const OUTPUT_LOST: i32 = 74;

/// The exit code of a deadlocked job that was ended (`--end-dead`).
pub const CANNOT_GO_ON: i32 = 125;

/// The descriptors that the front end passes to the supervisor.
pub struct Wires {
    /// The socket to the front end, with one byte per signal; closed when the front end has died.
    pub front: OwnedFd,
    /// The read end of the ranks' standard input.
    pub stdin: OwnedFd,
    /// The signalfd for signals to the supervisor itself, including SIGCHLD.
    pub signals: OwnedFd,
    pub nofile: Option<u64>,
    /// The singleton process that this launcher serves but did not start, if any.
    pub adopted: Option<Adopted>,
    /// The process table for debuggers, which the front end publishes.
    pub table: Option<TableFile>,
}

/// A singleton process that has started this launcher; it is the only rank of the first job.
pub struct Adopted {
    /// The socket on which the process speaks PMI-1.
    pub socket: OwnedFd,
    /// The job's name, which the process has chosen.
    pub job: String,
}

/// Runs a plan until all ranks have ended; returns mpirun's exit code.
pub fn run(plan: &Plan, mut wires: Wires) -> i32 {
    let adopted = wires.adopted.take();
    match Supervisor::new(plan, wires).and_then(|mut supervisor| supervisor.run(adopted)) {
        Ok(code) => code,
        Err(error) => {
            descendants::end_all();
            printable::eprintln!("mpirun: {error}");
            error.code()
        }
    }
}

struct Supervisor<'a> {
    plan: &'a Plan,
    control: JobControl<'a>,
    input: Input,
    front: FrontEnd,
    signals: OwnedFd,
    poller: Poller,
    hang_reports: HangReports<'a>,
    dead_job: DeadJob,
    debuggers: Debuggers,
    tracing: Tracing<'a>,
    unserved: Unserved,
    remote_control: RemoteControl,
    memory_trim: MemoryTrim,
}

impl<'a> Supervisor<'a> {
    fn new(plan: &'a Plan, wires: Wires) -> Result<Self, StartError> {
        let supervisor = Supervisor {
            plan,
            control: JobControl::new(plan, wires.nofile)?,
            input: Input::new(wires.stdin, plan.io.stdin),
            front: FrontEnd::new(wires.front),
            signals: wires.signals,
            poller: Poller::new()?,
            hang_reports: HangReports::new(plan.hang_after, plan.hang_report.as_deref()),
            dead_job: DeadJob::new(plan),
            debuggers: Debuggers::new(wires.table),
            tracing: Tracing::new(plan),
            unserved: Unserved::default(),
            remote_control: RemoteControl::default(),
            memory_trim: MemoryTrim::default(),
        };
        let poller = &supervisor.poller;
        poller.watch(&supervisor.front, Watch::Front);
        poller.watch(&supervisor.signals, Watch::Signals);
        Ok(supervisor)
    }

    fn run(&mut self, adopted: Option<Adopted>) -> Result<i32, StartError> {
        match adopted {
            Some(adopted) => self.adopt(adopted)?,
            None => {
                self.remote_control = RemoteControl::listen();
                remote_control::watch(self);
                self.say_origin();
                self.launch(&self.plan.apps, &[])?;
                self.show_map();
                self.show_debuggers_the_ranks();
            }
        }
        while self.control.is_busy() || self.control.checkpoints.is_silencing() {
            let timeout = self.memory_trim.pause(self.until_next_step());
            match self.poller.wait(timeout.as_ref())? {
                Waited::Nothing => self.memory_trim.trim_once(),
                Waited::Events(events) => events.into_iter().for_each(|event| self.serve(event)),
            }
            self.step();
            process_images::step(self);
            remote_control::answer_waiting(self);
            self.show_debuggers_an_abort();
        }
        self.finish();
        if self.control.ranks.outputs.is_incomplete() {
            self.control.ending.fail(OUTPUT_LOST);
        }
        if self.control.ending.is_by_death() {
            self.front.send(hold::DEATH);
        }
        let is_elsewhere = |rank: &Rank| rank.alive && !rank.here;
        let mut ranks = self.control.ranks.jobs.iter().map(|(_, rank)| rank);
        if self.control.ending.host_is_lost() || ranks.any(is_elsewhere) {
            self.front.send(hold::HOST_LOST);
        }
        Ok(self.control.ending.status())
    }

    /// Reports the checkpoint that the job restarts from.
    fn say_origin(&mut self) {
        let checkpoints = self.plan.checkpoints.iter();
        for note in checkpoints.flat_map(|checkpoints| &checkpoints.notes) {
            self.control.ranks.outputs.say(note);
        }
    }

    // ---- events ---------------------------------------------------------------------------------------------------

    fn serve(&mut self, event: Watch) {
        match event {
            Watch::Front => self.read_front_end(),
            Watch::Signals => self.read_signals(),
            Watch::Pmi(proc) => {
                self.control.send_queued(proc);
                self.read_requests(proc);
            }
            Watch::Stdout(proc) => {
                self.read_output(proc, Target::Stdout);
            }
            Watch::Stderr(proc) => {
                self.read_output(proc, Target::Stderr);
            }
            Watch::SinkWritable => {
                self.control.ranks.links.drain();
                self.pump_input();
            }
            Watch::Stdin => self.pump_input(),
            Watch::Link(number) => self.read_link(number),
            Watch::Control => remote_control::accept(self),
            Watch::Controller(number) => remote_control::read(self, number),
        }
    }

    fn read_front_end(&mut self) {
        match self.front.read() {
            FromUser::Signals(signals) => {
                signals.into_iter().for_each(|signal| self.pass_on(signal))
            }
            FromUser::Died => {
                self.poller.unwatch(&self.front);
                self.control.end(128 + libc::SIGKILL, libc::SIGTERM);
            }
        }
    }

    fn read_signals(&mut self) {
        while let Some(signal) = sys::next_request(&self.signals) {
            self.pass_on(signal);
        }
        while let Some((proc, ended)) = self.control.ranks.local.reap() {
            // A rank's requests before its death, such as abort or finalize, are served first.
            self.read_requests(proc);
            self.control.on_exit(proc, ended);
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        if self.control.checkpoints.is_signal(signal) {
            checkpoint_rounds::ask_by_signal(&mut self.control);
        } else if super::ends_the_job(signal) {
            let ranks = &mut self.control.ranks;
            self.control.ending.begin_by_signal(signal, ranks);
        } else if [libc::SIGUSR1, hold::HANG].contains(&signal) {
            self.hang_reports
                .request(&mut self.control.ranks.links, false);
        } else {
            self.control.ranks.signal(signal);
        }
    }

    fn read_requests(&mut self, proc: Proc) {
        while self.control.read_requests(proc) {
            self.start_spawned();
        }
        self.start_spawned();
    }

    /// Reads an output stream of a rank of this host with one system call.
    fn read_output(&mut self, proc: Proc, of: Target) -> Read {
        let control = &mut self.control;
        let outputs = &mut control.ranks.outputs;
        let read =
            (control.ranks.local).read_output(proc, of, |bytes| outputs.take(proc, of, bytes));
        if read == Read::End {
            outputs.end(proc, of);
        }
        read
    }

    fn pump_input(&mut self) {
        self.input.pump(&self.poller, &mut self.control.ranks.links);
    }

    // ---- time -----------------------------------------------------------------------------------------------------

    fn until_next_step(&self) -> Option<Timespec> {
        let control = &self.control;
        let next = [
            control.next_step(),
            control.ranks.outputs.next_prompt(),
            control.ranks.local.next_maps(),
            self.next_heartbeat(),
            self.hang_reports.next(control.is_running()),
            self.dead_job.next(control.is_running()),
            control.checkpoints.next(),
        ];
        let next = next.into_iter().flatten().min()?;
        let left = next.saturating_duration_since(Instant::now());
        Some(Timespec {
            tv_sec: left.as_secs() as i64,
            // Rounds up by a microsecond, so that the loop does not spin just before the deadline.
            tv_nsec: i64::from(left.subsec_nanos().saturating_add(1000).min(999_999_999)),
        })
    }

    fn step(&mut self) {
        let now = Instant::now();
        if self.control.step(now) {
            self.time_out();
        }
        checkpoint_rounds::step(&mut self.control, now);
        for (proc, library) in self.control.ranks.local.take_libraries(now) {
            self.unserved.note(proc, library);
        }
        let timed_out = self.hang_reports.step(now, &mut self.control);
        match self.dead_job.step(now, &mut self.control) {
            Seems::Alive => {}
            Seems::Dead => self.report_dead_job(),
            Seems::InPart(found) => {
                for finding in &found {
                    let sentence = dead_job::part_sentence(finding);
                    self.control.ranks.outputs.say(&sentence);
                }
            }
        }
        self.check_outputs();
        if timed_out {
            self.control.end(TIMED_OUT, libc::SIGTERM);
        }
        self.keep_links();
        self.control.ranks.outputs.show_prompts(now);
        self.control.ranks.outputs.drain();
        self.check_outputs();
        if self.control.ranks.outputs.is_closed() {
            // The job ends silently, as a program without a launcher would die by SIGPIPE.
            self.control.end(128 + libc::SIGPIPE, libc::SIGTERM);
        }
        let (outputs, local) = (&mut self.control.ranks.outputs, &self.control.ranks.local);
        outputs.throttle(&self.poller, local);
        for proc in self.control.ranks.take_requeued() {
            if let Some(socket) = self.control.ranks.local.socket(proc) {
                self.poller.watch_client(socket, proc);
            }
        }
    }

    /// Reports failed writes of output; ends the job if output of the ranks is permanently lost.
    /// Other incomplete output sets the exit status only at the end of the job, if nothing else has failed.
    fn check_outputs(&mut self) {
        if self.control.ranks.outputs.check() {
            self.control.end(OUTPUT_LOST, libc::SIGTERM);
        }
    }

    /// Reports a deadlocked job, and ends it if `--end-dead` is `yes`.
    fn report_dead_job(&mut self) {
        let (ranks, ends) = (&mut self.control.ranks, self.dead_job.ends());
        let living = ranks.jobs.alive().count();
        ranks.outputs.say(&dead_job::sentence(living, ends));
        (self.hang_reports).print(&ranks.jobs, &ranks.local, &mut ranks.outputs);
        if ends {
            self.control.end(CANNOT_GO_ON, libc::SIGTERM);
        }
    }

    fn time_out(&mut self) {
        let alive = self.control.ranks.jobs.alive();
        let late: Vec<u32> = alive.map(|(_, rank)| rank.rank).collect();
        let limit = self.plan.timeout.unwrap_or_default();
        self.control.ranks.outputs.say(&format!(
            "the time limit of {} s is over; rank{} {} had not finished. All ranks are ended.",
            limit.as_secs_f64(),
            if late.len() == 1 { "" } else { "s" },
            list(&late)
        ));
        self.hang_reports
            .request(&mut self.control.ranks.links, true);
    }
}

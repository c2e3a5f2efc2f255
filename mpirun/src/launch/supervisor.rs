//! The supervisor: one thread, one epoll, that owns the ranks of all jobs of one `mpirun`.
//!
//! Ranks of this host are its children; those of other hosts are children of a [daemon](super::daemon) there,
//! which carries out the supervisor's orders and reports events over a [link](super::link). The supervisor alone decides
//! what a rank's end, output or request means, on whichever host the rank runs.
//!
//! Lifecycle: everything starts, the loop runs until no rank lives, then orphans are killed, pipes are emptied, and the exit code
//! is returned. The first failure decides the exit code and begins the *ending*: SIGTERM to every rank's group, a grace period,
//! SIGKILL ([`term_signals`](super::term_signals)).
//! Jobs that are not connected with the failure (MPI 5.0, section 11.10.4) go on; see [`dismissals`].
//! What the ranks do after that is a consequence and is not reported.
//!
//! If a job survives deaths (`--with-ft`), a dead rank is a loss and not a failure; see [`losses`].

mod clients;
mod deaths;
mod deferred_cause;
mod dismissals;
mod events;
mod hang_detector;
mod input;
mod lifecycle;
mod links;
mod losses;
mod outputs;
mod relay;
mod start;
mod tracing;
mod unserved;
mod watching;

use super::descendants;
use super::ending::list;
use super::link::Link;
use super::output::Target;
use super::program::Plan;
use super::ranks::{Ranks, StartError};
use super::stdin_fanout::Feed;
use super::sys::{self, Signal};
use super::trim_memory::MemoryTrim;
use super::wire::ToDaemon;
use crate::ledger::Ledger;
use crate::node::{self, Node};
use crate::pmi::{Job, Server};
use events::{Watch, watch, watch_writable};
use rustix::event::Timespec;
use rustix::event::epoll;
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::io;
use std::time::{Duration, Instant};

/// The exit code of a job that ran out of time, as of timeout(1).
pub const TIMED_OUT: i32 = 124;

/// The exit code of a job that ended well but whose output could not be written completely, as sysexits.h's EX_IOERR.
pub const OUTPUT_LOST: i32 = 74;

/// An ended job waits no longer than this for a reader of its output.
const FINAL_OUTPUT_LIMIT: Duration = Duration::from_secs(1);

/// The descriptors that the front end passes to the supervisor.
pub struct Wires {
    /// Carries one byte for each signal to forward; closed when the front end has died.
    pub front: OwnedFd,
    /// Rank 0's standard input.
    pub stdin: OwnedFd,
    /// Signals sent to the supervisor itself, SIGCHLD among them.
    pub signals: OwnedFd,
    pub nofile: Option<u64>,
    /// The process that is served although this launcher did not start it.
    pub adopted: Option<Adopted>,
}

/// A process that has started this launcher; it is the only rank of the first job.
pub struct Adopted {
    /// The socket on which it speaks PMI-1.
    pub socket: OwnedFd,
    /// Its own name of its job.
    pub job: String,
}

/// Runs a plan to its end; returns mpirun's exit code.
pub fn run(plan: &Plan, wires: Wires) -> i32 {
    match Supervisor::new(plan, wires).and_then(|mut supervisor| supervisor.run()) {
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
    wires: Wires,
    server: Server,
    ranks: Ranks,
    /// The node segment of each job that has ranks on this host; `None` for a job without, or one that was forgotten.
    nodes: Ledger<Option<Node>>,
    /// Spawned jobs whose ranks have all ended and may still have unread data.
    ended_jobs: BTreeSet<Job>,
    links: Vec<Link>,
    feed: Feed,
    pump: input::Pump,
    epoll: OwnedFd,
    null: OwnedFd,
    reports: (OwnedFd, OwnedFd),
    outputs: outputs::Outputs,
    lifecycle: lifecycle::Lifecycle,
    /// An abort that may be the consequence of a death that another host has yet to report.
    deferred_cause: deferred_cause::DeferredCause,
    losses: losses::Losses,
    dismissals: dismissals::Dismissals,
    hang_detector: hang_detector::HangDetector,
    tracing: tracing::Tracing,
    unserved: unserved::Unserved,
    memory_trim: MemoryTrim,
    front_end_alive: bool,
}

fn system<E: Into<io::Error>>(doing: &'static str) -> impl FnOnce(E) -> StartError {
    move |error| StartError::System {
        doing,
        error: error.into(),
    }
}

impl<'a> Supervisor<'a> {
    fn new(plan: &'a Plan, wires: Wires) -> Result<Self, StartError> {
        use rustix::fs::{Mode, OFlags};
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("epoll_create"))?;
        let null = rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .map_err(system("opening /dev/null"))?;
        let reports = rustix::pipe::pipe_with(
            rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK,
        )
        .map_err(system("making a pipe"))?;
        let own = |fd: BorrowedFd<'_>| {
            rustix::io::fcntl_dupfd_cloexec(fd, 3).map_err(system("copying an output"))
        };
        let host = crate::hosts::own_name();
        let stem = format!("{}_{}_{host}", rustix::process::getpid(), node::unique());
        let supervisor = Supervisor {
            lifecycle: lifecycle::Lifecycle::new(plan.timeout),
            plan,
            wires,
            server: Server::new(stem, plan.slots()),
            ranks: Ranks::default(),
            nodes: Ledger::default(),
            ended_jobs: BTreeSet::new(),
            links: Vec::new(),
            feed: Feed::default(),
            pump: input::Pump::default(),
            epoll,
            null,
            reports,
            outputs: outputs::Outputs::new(
                own(rustix::stdio::stdout())?,
                own(rustix::stdio::stderr())?,
            ),
            deferred_cause: deferred_cause::DeferredCause::default(),
            losses: losses::Losses::default(),
            dismissals: dismissals::Dismissals::default(),
            hang_detector: hang_detector::HangDetector::default(),
            tracing: tracing::Tracing::default(),
            unserved: unserved::Unserved::default(),
            memory_trim: MemoryTrim::default(),
            front_end_alive: true,
        };
        watch(&supervisor.epoll, &supervisor.wires.front, Watch::Front);
        watch(&supervisor.epoll, &supervisor.wires.signals, Watch::Signals);
        Ok(supervisor)
    }

    fn run(&mut self) -> Result<i32, StartError> {
        match self.wires.adopted.take() {
            Some(adopted) => self.adopt(adopted)?,
            None => {
                self.launch(&self.plan.apps, &[])?;
                self.show_map();
            }
        }
        let mut events = Vec::with_capacity(64);
        while (self.ranks.any_alive() || self.deferred_cause.is_there())
            && !self.lifecycle.has_given_up()
        {
            events.clear();
            let timeout = self.memory_trim.pause(self.until_next_step());
            match epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                timeout.as_ref(),
            ) {
                Ok(0) => {
                    self.memory_trim.trim_once();
                }
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(system("epoll_wait")(error)),
            }
            for event in &events {
                self.serve(Watch::of(event.data.u64()));
            }
            self.step();
        }
        self.count_losses();
        self.report_unserved();
        self.finish_output();
        Ok(self.lifecycle.status())
    }

    // ---- events ---------------------------------------------------------------------------------------------------

    fn serve(&mut self, event: Watch) {
        match event {
            Watch::Front => self.read_frontend(),
            Watch::Signals => self.read_signals(),
            Watch::Pmi(proc) => self.serve_client(proc),
            Watch::Stdout(proc) => self.relay(proc, Target::Stdout),
            Watch::Stderr(proc) => self.relay(proc, Target::Stderr),
            Watch::SinkWritable => {
                for link in &mut self.links {
                    link.drain();
                }
                self.pump_stdin();
            }
            Watch::Stdin => self.pump_stdin(),
            Watch::Link(number) => self.read_link(number),
        }
    }

    fn read_frontend(&mut self) {
        let mut bytes = [0u8; 64];
        match rustix::net::recv(
            &self.wires.front,
            &mut bytes,
            rustix::net::RecvFlags::DONTWAIT,
        ) {
            Ok((0, _)) => {
                // The front end was killed; no process is left to report to.
                let _ = epoll::delete(&self.epoll, &self.wires.front);
                self.front_end_alive = false;
                self.end(128 + libc::SIGKILL, libc::SIGTERM);
            }
            Ok((got, _)) => {
                for &byte in &bytes[..got] {
                    self.pass_on(Signal::from(byte));
                }
            }
            Err(_) => {}
        }
    }

    fn read_signals(&mut self) {
        while let Some(signal) = sys::next_signal(&self.wires.signals) {
            if signal != libc::SIGCHLD {
                self.pass_on(signal);
            }
        }
        while let Some((pid, ended)) = sys::reap() {
            // Other pids are orphans, which this process inherited when their parents died, and commands that reached other hosts,
            // whose end is detected on their link.
            if let Some(proc) = self.ranks.by_pid(pid) {
                self.on_exit(proc, ended);
            }
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        if super::ends_the_job(signal) {
            // The second signal shortens the grace period to zero.
            if self.lifecycle.is_asked() {
                self.kill();
            }
            self.end_by_signal(signal);
        } else if signal == libc::SIGUSR1 {
            self.look(false);
        } else {
            self.signal_all(signal);
        }
    }

    /// Sends a signal to every rank on every host.
    fn signal_all(&mut self, signal: Signal) {
        self.ranks.signal(signal);
        self.send_all_hosts(&ToDaemon::Signal(signal));
    }

    // ---- time -----------------------------------------------------------------------------------------------------

    fn until_next_step(&self) -> Option<Timespec> {
        let end = self.lifecycle.next();
        let prompt = self.next_prompt();
        let heartbeat = self.next_heartbeat();
        let verdict = self.deferred_cause.next();
        let report = self.hang_detector.next_report();
        let still = self.plan.hang_after.filter(|_| self.is_running());
        let still = still.map(|_| self.hang_detector.next_check());
        let (maps, dismissal) = (self.unserved.next(), self.dismissals.next());
        let next = [
            end, dismissal, prompt, heartbeat, verdict, report, still, maps,
        ]
        .into_iter()
        .flatten()
        .min()?;
        let left = next.saturating_duration_since(Instant::now());
        Some(Timespec {
            tv_sec: left.as_secs() as i64,
            // Rounded up, so that the loop does not spin through the last microsecond.
            tv_nsec: i64::from(left.subsec_nanos().saturating_add(1000).min(999_999_999)),
        })
    }

    fn step(&mut self) {
        let now = Instant::now();
        if self.lifecycle.take_deadline(now) {
            self.time_out();
        } else if let Some(due) = self.lifecycle.take_due(now) {
            self.go_on_ending(due);
        }
        self.kill_dismissed(now);
        self.forget_jobs();
        self.settle_deferred_cause();
        self.unserved.read_maps(now);
        self.watch_job();
        self.keep_links();
        self.show_prompts(now);
        self.outputs.drain();
        self.check_outputs();
        if self.outputs.is_closed() && self.is_running() {
            // As a program without a launcher would die by SIGPIPE, silently.
            self.end(128 + libc::SIGPIPE, libc::SIGTERM);
        }
        self.throttle_reading();
    }

    fn time_out(&mut self) {
        let late: Vec<u32> = self
            .ranks
            .iter()
            .filter(|(_, rank)| rank.alive)
            .map(|(_, rank)| rank.rank)
            .collect();
        let limit = self.plan.timeout.unwrap_or_default();
        self.say(&format!(
            "the time limit of {} s is over; rank{} {} had not finished. All ranks are ended.",
            limit.as_secs_f64(),
            if late.len() == 1 { "" } else { "s" },
            list(&late)
        ));
        self.look(true);
    }
}

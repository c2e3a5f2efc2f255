//! The loop of a front end whose job is saved as images of its processes.

use super::STOPPED;
use super::attention::{Attention, Times};
use super::relay::Relay;
use super::remote::{ENDED_BY_USER, Remote, ask};
use super::requests::Requests;
use super::several::{self, done};
use super::still::Processes;
use super::take::{Outside, TakeError, Taken, Tree, Wanted};
use super::work::Work;
use crate::launch::frontend::{Done, REPORTS, feed_rank_0, in_foreground, pass_on};
use crate::launch::hold::{self, FromSupervisor, Go, Held, NamedHost, Reach};
use crate::launch::link::start_command;
use crate::launch::program::{Images, RemoteLaunch};
use crate::launch::wire::ToGuard;
use crate::launch::{descendants, ends_the_job, sys};
use mpi_core::crs::store::Store;
use printable::name;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Instant;

/// The exit code of a job that is ended because CRIU was killed while it dumped the job.
const DAMAGED: i32 = 1;

pub(super) struct Attendant<'a> {
    pub images: &'a Images,
    /// How other hosts are reached.
    pub reach: &'a RemoteLaunch,
    /// The folder of the checkpoints.
    pub dir: &'a Path,
    pub store: Store,
    /// The child whose end is the end of the job: the supervisor, or the keeper of a restored job.
    pub child: i32,
    /// The supervisor's pid in its own PID namespace.
    pub supervisor: i32,
    /// Whether the child is the keeper.
    pub is_restored: bool,
    pub socket: OwnedFd,
    pub outside: Outside,
    pub signals: OwnedFd,
    pub relay: Relay,
    pub input: Input,
    pub is_quiet: bool,
    /// Whether the job ends because of the death of a rank.
    pub by_death: bool,
    /// Whether ranks may still run on a host that is lost.
    pub host_is_lost: bool,
}

/// The input of the user for the rank that reads it.
#[derive(Default)]
pub(super) struct Input {
    /// The pipe to the rank; `None` at the end of the input.
    pub pipe: Option<OwnedFd>,
    pub pending: Vec<u8>,
    /// Whether the input is a terminal, which only a process in the foreground may read.
    pub is_terminal: bool,
}

impl Input {
    fn is_ours(&self) -> bool {
        self.pipe.is_some() && (!self.is_terminal || in_foreground())
    }
}

impl Attendant<'_> {
    /// Serves the job until its end.
    pub(super) fn attend(mut self) -> Done {
        let mut hung_up = false;
        loop {
            self.relay.step();
            let input = self.wait(hung_up);
            self.relay.step();
            if !hung_up {
                match hold::receive(&self.socket) {
                    FromSupervisor::Nothing => {}
                    report @ (FromSupervisor::Death | FromSupervisor::HostLost) => {
                        self.note(&report);
                    }
                    FromSupervisor::Closed => hung_up = true,
                    FromSupervisor::Unreadable => hold::go(&self.socket, &refusal()),
                    FromSupervisor::Reach(reach) => start(reach),
                    FromSupervisor::Held(held) => {
                        if let Some(code) = self.hold(held) {
                            return self.finish(code);
                        }
                    }
                }
            }
            while let Some(signal) = sys::next_request(&self.signals) {
                pass_on(&self.socket, signal);
            }
            // A checkpoint reads the signals, too, so children may have ended without one.
            while let Some((pid, ended)) = sys::reap() {
                if pid == self.child {
                    // Its last report may have arrived with its end.
                    for _ in 0..REPORTS {
                        let last = hold::receive(&self.socket);
                        self.note(&last);
                    }
                    return self.finish(ended.code());
                }
            }
            if input {
                feed_rank_0(&mut self.input.pipe, &mut self.input.pending);
            }
        }
    }

    /// Records a report of the supervisor about the end of the job.
    fn note(&mut self, report: &FromSupervisor) {
        self.by_death |= matches!(report, FromSupervisor::Death);
        self.host_is_lost |= matches!(report, FromSupervisor::HostLost);
    }

    /// Waits for an event. Returns true if the input can be read or written.
    fn wait(&self, hung_up: bool) -> bool {
        let ours = self.input.is_ours();
        let stdin = rustix::stdio::stdin();
        let mut fds = Vec::new();
        match &self.input.pipe {
            Some(pipe) if !self.input.pending.is_empty() => {
                fds.push(PollFd::new(pipe, PollFlags::OUT));
            }
            Some(_) if ours => fds.push(PollFd::new(&stdin, PollFlags::IN)),
            _ => {}
        }
        let has_input = !fds.is_empty();
        fds.push(PollFd::new(&self.signals, PollFlags::IN));
        if !hung_up {
            fds.push(PollFd::new(&self.socket, PollFlags::IN));
        }
        self.relay.poll(&mut fds);
        // A background process checks every 200 ms whether it is in the foreground again.
        let pause = (self.input.pipe.is_some() && !ours).then_some(Timespec {
            tv_sec: 0,
            tv_nsec: 200_000_000,
        });
        match poll(&mut fds, pause.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            // The kernel lacks memory for a moment.
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(10)),
        }
        has_input && fds.first().is_some_and(|fd| !fd.revents().is_empty())
    }

    /// Takes a checkpoint, and lets the supervisor go on.
    /// Returns the exit code if the job has ended after the checkpoint.
    fn hold(&mut self, held: Held) -> Option<i32> {
        let begun = Instant::now();
        self.relay.empty_pipes();
        let Held {
            stop,
            waiting,
            hosts,
            placement,
            ranks,
            signal,
        } = held;
        let placement = names_of(&placement, &hosts);
        let remotes = hosts.into_iter();
        let remotes = remotes.filter_map(|(host, pipes)| Some(Remote::new(host, pipes?, false)));
        let mut remotes: Vec<Remote> = remotes.collect();
        let mut processes = Processes::new(self.child, self.is_restored);
        let requests = Requests::open(self.dir, (ranks, stop), waiting);
        let times = Times {
            step: self.images.limit,
            limits: self.reach.limits,
        };
        let attention = Attention::new(&self.signals, times, Some(requests));
        let mut attention = match attention {
            Ok(attention) => attention,
            Err(error) => {
                self.relay.say(&format!("no checkpoint was taken: {error}"));
                descendants::end_all();
                return Some(DAMAGED);
            }
        };
        attention.set_request(signal);
        let wanted = (stop, placement);
        let taken = self.take(wanted, (&mut processes, &mut remotes), &mut attention);
        let is_taken = taken.is_ok();
        let end = attention.end().filter(|_| !is_taken);
        // A killed CRIU may have left code of its own in the processes, and their sockets stopped.
        let is_damaged = taken.as_ref().is_err_and(TakeError::is_damaged);
        let outcome = taken.map(|taken| {
            let Taken {
                number,
                folder,
                bytes,
            } = taken;
            let then = match stop {
                true => "; the job is ended",
                false => "",
            };
            let took = begun.elapsed().as_secs_f64();
            format!(
                "checkpoint {number} is in {}: {bytes} bytes, {took:.2} s after it was asked for{then}",
                name(&folder)
            )
        });
        let then = match is_damaged && end.is_none() {
            true => "; the processes may be damaged, so the job is ended",
            false => "",
        };
        let outcome = outcome.map_err(|why| match end {
            Some(_) => format!("no checkpoint was taken: {ENDED_BY_USER}"),
            None => format!("no checkpoint was taken: {why}{then}"),
        });
        if is_taken && stop {
            processes.forget_connections();
            // A host that is lost now has no processes either.
            let order = |_: &Remote| ToGuard::End;
            let here = || Work::Done(Ok(()));
            // A signal that has arrived since the commit does not prevent the end.
            attention.give_time();
            let _ = ask(&mut attention, &mut remotes, order, here, done);
        }
        let (signals, requests) = attention.close();
        if let Some(requests) = requests {
            requests.close(&outcome);
        }
        if is_damaged || (is_taken && stop) {
            let (Ok(sentence) | Err(sentence)) = &outcome;
            if is_damaged || !self.is_quiet {
                self.relay.say(sentence);
            }
            descendants::end_all();
            self.prune(is_taken);
            let ended = end.map_or(DAMAGED, |signal| 128 + signal);
            return Some(if is_damaged { ended } else { STOPPED });
        }
        processes.go_on();
        let lost = remotes.iter().filter_map(Remote::lost).collect();
        let go = Go {
            outcome,
            front_end: rustix::process::getpid().as_raw_pid(),
            is_restored: false,
            lost,
        };
        for remote in &mut remotes {
            // The supervisor finds out that a host is lost.
            let _ = remote.send_go(&go);
        }
        // A signal that ends the job comes before the losses of hosts, which would otherwise be the cause of the end.
        let (ends, others): (Vec<_>, Vec<_>) = signals.into_iter().partition(|s| ends_the_job(*s));
        ends.into_iter()
            .for_each(|signal| pass_on(&self.socket, signal));
        hold::go(&self.socket, &go);
        others
            .into_iter()
            .for_each(|signal| pass_on(&self.socket, signal));
        // The removal takes long for large images, and no host waits for this process any more.
        self.prune(is_taken);
        None
    }

    /// Removes the checkpoints that are older than those to keep, after a new one.
    fn prune(&self, is_taken: bool) {
        if is_taken {
            // The next checkpoint retries a failed removal.
            let _ = self.store.prune(self.images.keep);
        }
    }

    fn take(
        &mut self,
        (stays_stopped, placement): (bool, Vec<OsString>),
        (processes, remotes): (&mut Processes, &mut [Remote]),
        attention: &mut Attention,
    ) -> Result<Taken, TakeError> {
        let mounts = match self.is_restored {
            true => Some(File::open(format!("/proc/{}/ns/mnt", self.child))),
            false => None,
        };
        let mounts = mounts.transpose().map_err(TakeError::Keeper)?;
        let tree = Tree {
            launcher: self.supervisor,
            outside: self.outside,
            mounts: mounts.as_ref().map(|mounts| mounts.as_fd()),
        };
        let hosts = several::Hosts {
            tree,
            processes,
            remotes,
            reach: self.reach,
            attention,
        };
        let wanted = Wanted {
            images: self.images,
            dir: self.dir,
            placement,
            stays_stopped,
        };
        several::take(hosts, &wanted, &mut self.store)
    }

    /// Ends what is left of the job, and writes the rest of its output.
    fn finish(mut self, code: i32) -> Done {
        descendants::end_all();
        let signals = &self.signals;
        let mut waits = true;
        let lost = self.relay.finish(|| {
            waits &= sys::next_request(signals).is_none();
            waits
        });
        let code = match lost && code == 0 {
            true => crate::launch::supervisor::OUTPUT_LOST,
            false => code,
        };
        Done {
            code,
            by_death: self.by_death,
            host_is_lost: self.host_is_lost,
        }
    }
}

/// Returns the name of each rank's host. A host without a link is this one.
fn names_of(placement: &[u32], hosts: &[(NamedHost, Option<(OwnedFd, OwnedFd)>)]) -> Vec<OsString> {
    let own: OsString = crate::hosts::own_name().into();
    let name = |host: &u32| {
        let mut named = hosts.iter().map(|(named, _)| named);
        let other = named.find(|(number, _)| number == host);
        other.map_or_else(|| own.clone(), |(_, name)| name.into())
    };
    placement.iter().map(name).collect()
}

/// Returns the answer to a request of a supervisor of another version.
fn refusal() -> Go {
    Go {
        outcome: Err("no checkpoint was taken: the job is run by another version of mpirun".into()),
        front_end: rustix::process::getpid().as_raw_pid(),
        is_restored: false,
        lost: Vec::new(),
    }
}

/// Starts the command of a link; the supervisor finds out if it has failed.
fn start(reach: Reach) {
    let Reach {
        command,
        stdin,
        stdout,
    } = reach;
    let started = null().and_then(|null| {
        let files = (stdin.as_fd(), stdout.as_fd());
        start_command(&command, files, null.as_fd(), None)
    });
    if let Err(error) = started {
        printable::eprintln!("mpirun: another host cannot be reached: {error}");
    }
}

/// Opens the file to which the report of a failed start is written, which no process reads:
/// the end of the link's pipes shows it.
pub(super) fn null() -> io::Result<OwnedFd> {
    Ok(File::options().write(true).open("/dev/null")?.into())
}

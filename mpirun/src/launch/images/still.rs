//! The processes of a job on one host, stopped for images of a job on several hosts.
//!
//! All hosts are stopped before the first dump and continue after the last one. Kernels acknowledge data
//! also for stopped processes; what has arrived is then in the receive queue, which CRIU saves.
//! So after some round trips nothing is in flight, and the images of all hosts fit together.

use crate::launch::outside;
use crate::launch::sys;
use crate::launch::wire::{Connection, Failure, Quiet};
use crate::process_tree::{children, descendants_of};
use mpi_core::crs::criu::CriuError;
use rustix::net::sockopt::set_socket_linger;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// The maximum time in which a process stops.
const LIMIT: Duration = Duration::from_secs(20);

pub(super) struct Processes {
    /// The launcher of this host, or the keeper of a restored job.
    child: i32,
    is_restored: bool,
    /// Processes that the user or a program has stopped.
    stopped_before: Vec<i32>,
}

impl Processes {
    pub(super) fn new(child: i32, is_restored: bool) -> Processes {
        Processes {
            child,
            is_restored,
            stopped_before: Vec::new(),
        }
    }

    /// Returns the launcher of this host, as this process numbers it.
    fn launcher(&self) -> i32 {
        match self.is_restored {
            true => children(self.child).first().copied().unwrap_or(self.child),
            false => self.child,
        }
    }

    fn all(&self) -> Vec<i32> {
        let below = descendants_of(self.child);
        let first = (!self.is_restored).then_some(self.child);
        first.into_iter().chain(below).collect()
    }

    /// Records the processes that the user or a program has stopped: they stay stopped.
    pub(super) fn note_stopped(&mut self) {
        let all = self.all().into_iter();
        self.stopped_before = all.filter(|pid| is_stopped(*pid)).collect();
    }

    /// Returns the numbers, in the images, of the processes that were stopped before.
    pub(super) fn stopped_before(&self) -> Vec<i32> {
        let numbers = self.stopped_before.iter();
        numbers.filter_map(|pid| number_inside(*pid)).collect()
    }

    /// Stops all processes, and waits until the kernel has stopped each thread. Calls `tick` meanwhile.
    pub(super) fn stop(&mut self, mut tick: impl FnMut()) -> io::Result<()> {
        self.note_stopped();
        let (end, mut signalled) = (Instant::now() + LIMIT, Vec::new());
        loop {
            let moving: Vec<i32> = self.all();
            let moving = moving.into_iter().filter(|pid| !is_stopped(*pid));
            let moving: Vec<i32> = moving.collect();
            let Some(first) = moving.first() else {
                return Ok(());
            };
            if Instant::now() > end {
                let what = format!("process {first} does not stop");
                return Err(io::Error::other(what));
            }
            for pid in moving {
                if !signalled.contains(&pid) {
                    sys::signal_process(pid, libc::SIGSTOP);
                    signalled.push(pid);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
            tick();
        }
    }

    /// Continues the processes.
    pub(super) fn go_on(&self) {
        for pid in self.all() {
            if !self.stopped_before.contains(&pid) {
                sys::signal_process(pid, libc::SIGCONT);
            }
        }
    }

    /// Returns the TCP connections with other processes.
    /// Fails if a process is or has something that images cannot contain.
    pub(super) fn check(&self) -> Result<Vec<Connection>, CriuError> {
        let launcher = self.launcher();
        let processes = self.all().into_iter().filter(|pid| *pid != launcher);
        let named = processes.map(|pid| (pid, format!("process {pid} of the job")));
        outside::check(&named.collect::<Vec<_>>(), launcher)
    }

    /// Fails if a rank had ended before it was saved: a job that is restored from these images would end at once.
    pub(super) fn check_ranks(&self) -> Result<(), Failure> {
        let sentence = |rank| format!("process {rank} of the job ended while the job was saved");
        match self.ended_rank() {
            Some(rank) => Err(Failure::of(sentence(rank))),
            None => Ok(()),
        }
    }

    /// Returns a child of the launcher that has ended, and not with the exit status 0.
    ///
    /// The launcher collects no child between its request for a checkpoint and the answer.
    /// So after the dump this also finds the ranks that had ended before the dump, which the images contain as ended processes.
    fn ended_rank(&self) -> Option<i32> {
        let mut ranks = children(self.launcher()).into_iter();
        ranks.find(|pid| has_failed(*pid))
    }

    /// Returns the state of the connections of the stopped processes, and a digest of their queues.
    pub(super) fn is_quiet(&self) -> (Quiet, u64) {
        outside::is_quiet(&self.all())
    }

    /// Lets the kernel forget the TCP connections when the processes are killed.
    /// Otherwise some stay for a minute (TIME_WAIT), and a restart on these hosts could not restore them.
    pub(super) fn forget_connections(&self) {
        for pid in self.all() {
            let process = Pid::from_raw(pid).map(|pid| pidfd_open(pid, PidfdFlags::empty()));
            let Some(Ok(process)) = process else { continue };
            for number in sockets(pid) {
                let socket = pidfd_getfd(&process, number, PidfdGetfdFlags::empty());
                if let Ok(socket) = socket {
                    let _ = set_socket_linger(&socket, Some(Duration::ZERO));
                }
            }
        }
    }
}

/// Returns the descriptors of a process that are sockets.
fn sockets(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    let entries = entries.into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| {
        let target = fs::read_link(entry.path()).ok()?;
        let is_socket = target.to_string_lossy().starts_with("socket:");
        entry
            .file_name()
            .to_str()?
            .parse()
            .ok()
            .filter(|_| is_socket)
    });
    numbers.collect()
}

/// Returns true if all threads of a process are stopped or have ended.
fn is_stopped(pid: i32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let mut tasks = tasks.into_iter().flatten().flatten();
    tasks.all(|task| matches!(state(&task.path()), None | Some('T' | 't' | 'Z' | 'X')))
}

/// Returns the number of a process in its own PID namespace, which is that of its image.
fn number_inside(pid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    line?.split_whitespace().last()?.parse().ok()
}

/// Returns true if a process has ended with another status than 0, and its parent has not collected it.
fn has_failed(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let Some((_, rest)) = stat.rsplit_once(')') else {
        return false;
    };
    // Fields 3 and 52 of proc_pid_stat(5): the state, and the status as waitpid(2) reports it.
    let mut fields = rest.split_whitespace();
    let (state, status) = (fields.next(), fields.nth(48));
    matches!(state, Some("Z" | "X")) && status != Some("0")
}

/// Returns the state of a process or a thread, a letter (proc_pid_stat(5)), from its folder.
fn state(folder: &Path) -> Option<char> {
    let stat = fs::read_to_string(folder.join("stat")).unwrap_or_default();
    let (_, rest) = stat.rsplit_once(')')?;
    rest.trim().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn a_child_that_was_killed_and_is_not_collected_is_found_and_one_that_exited_is_not() {
        let is_over = |pid: &i32| state(Path::new(&format!("/proc/{pid}"))) == Some('Z');
        let mut parent = Command::new("sh")
            .args(["-c", "sleep 0 & exec sleep 60"])
            .spawn()
            .expect("started");
        let processes = Processes::new(parent.id() as i32, false);
        while !children(processes.child).iter().any(is_over) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(processes.ended_rank(), None);
        let _ = parent.kill();
        let _ = parent.wait();
        let script = "sleep 60 & sleep 50 & kill -9 $!; exec sleep 60";
        let mut parent = Command::new("sh")
            .args(["-c", script])
            .spawn()
            .expect("started");
        let processes = Processes::new(parent.id() as i32, false);
        while processes.ended_rank().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        for pid in processes.all() {
            sys::signal_process(pid, libc::SIGKILL);
        }
        let _ = parent.wait();
    }

    #[test]
    fn a_process_is_stopped_and_continued_and_one_that_was_stopped_stays_so() {
        let mut sleeper = Command::new("sleep").arg("60").spawn().expect("started");
        let pid = sleeper.id() as i32;
        let mut processes = Processes::new(pid, false);
        assert!(!is_stopped(pid));
        processes.stop(|| ()).expect("stopped");
        assert!(is_stopped(pid));
        assert_eq!(processes.is_quiet().0, Quiet::Yes);
        assert!(processes.stopped_before().is_empty());
        processes.go_on();
        while is_stopped(pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
        sys::signal_process(pid, libc::SIGSTOP);
        while !is_stopped(pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
        processes.stop(|| ()).expect("is stopped");
        assert_eq!(processes.stopped_before(), [pid]);
        processes.go_on();
        assert!(is_stopped(pid));
        let _ = sleeper.kill();
        let _ = sleeper.wait();
    }
}

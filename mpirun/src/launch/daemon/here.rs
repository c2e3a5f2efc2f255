//! A daemon's own ranks: their PMI requests, their output, and their ends.

use super::super::pmi_socket::Received;
use super::super::sys::{self, Ended, FailedStart, Signal};
use super::super::wire::{End, FromDaemon};
use super::{Daemon, LocalRank};
use crate::rank_snapshot::RankSnapshot;
use rustix::io::Errno;
use std::path::Path;
use std::time::Instant;

impl LocalRank {
    /// Returns true if it lives, or has sent something that was not read yet.
    fn may_be_heard(&self) -> bool {
        self.alive || self.pmi.is_some() || self.stdout.is_some() || self.stderr.is_some()
    }
}

/// Removes the ranks that have ended and were read to the end, unless the memory of their job is kept.
fn forget(ranks: &mut Vec<LocalRank>, has_memory: impl Fn(usize) -> bool) {
    ranks.retain(|rank| rank.may_be_heard() || has_memory(rank.job));
}

impl Daemon {
    pub(super) fn signal(&self, signal: Signal) {
        self.leaders()
            .for_each(|leader| sys::signal_group(leader, signal));
    }

    /// Returns the pids of this host's living ranks, each the leader of a process group.
    pub(super) fn leaders(&self) -> impl Iterator<Item = i32> {
        let alive = self.ranks.iter().filter(|rank| rank.alive);
        alive.map(|rank| rank.pid)
    }

    pub(super) fn snapshot(&self, rank: &LocalRank) -> Option<RankSnapshot> {
        let (_, node) = self.nodes.iter().find(|(job, _)| *job == rank.job)?;
        node.snapshot_of(rank.local_rank)
    }

    pub(super) fn read_signals(&mut self) {
        while let Some(signal) = sys::next_signal(&self.signals) {
            if signal != libc::SIGCHLD {
                self.lose_launcher(signal);
            }
        }
        while let Some((pid, ended)) = sys::reap() {
            let found = self
                .ranks
                .iter()
                .position(|rank| rank.pid == pid && rank.alive);
            if let Some(index) = found {
                self.on_exit(index, ended);
            }
        }
    }

    pub(super) fn on_exit(&mut self, index: usize, ended: Ended) {
        // Requests that the rank sent before it died are handled before its death.
        self.read_pmi(index);
        let failed = FailedStart::read(&self.reports.0);
        let end = match (failed, ended) {
            (Some(failed), _) => End::NeverBegan {
                errno: failed.errno,
                step: failed.step as i32,
            },
            (None, Ended::Exited(code)) => End::Exited(code),
            (None, Ended::Killed(signal)) => End::Killed(signal),
        };
        let rank = &mut self.ranks[index];
        rank.alive = false;
        self.loaded.is_settled(rank.proc);
        // While the job goes on no other process ends the group; after a clean exit the rank's children may still be at work.
        if end != End::Exited(0)
            && self
                .hello
                .as_ref()
                .is_some_and(|hello| hello.tolerates_deaths)
        {
            sys::end_group_of(rank.pid);
        }
        let (proc, job) = (rank.proc, rank.job);
        let snapshot = self.snapshot(&self.ranks[index]);
        if end != End::Exited(0) {
            self.report_dying();
        }
        self.report(&FromDaemon::Ended {
            proc,
            end,
            snapshot,
        });
        self.give_back(job);
    }

    /// Reports ranks that have begun to die: the kernel reports their end to this process only after it has released their resources.
    fn report_dying(&mut self) {
        let alive = self.ranks.iter().filter(|rank| rank.alive);
        let dying = alive.filter(|rank| sys::is_dying(rank.pid));
        let dying: Vec<usize> = dying.map(|rank| rank.proc).collect();
        if !dying.is_empty() {
            self.report(&FromDaemon::Dying(dying));
        }
    }

    /// Releases the memory of a spawned job that has ended here, unless a trace will need it: a program may spawn for days.
    fn give_back(&mut self, job: usize) {
        let mut of_job = self.ranks.iter().filter(|rank| rank.job == job);
        if job == 0 || of_job.clone().any(|rank| rank.alive) {
            return;
        }
        let node = self.nodes.iter().position(|(of, _)| *of == job);
        let Some(at) = node else { return };
        let node = &self.nodes[at].1;
        if of_job.all(|rank| node.tape_of(rank.local_rank).events.is_empty()) {
            self.nodes.remove(at);
        }
    }

    /// Removes the ranks of jobs whose memory was released, once their pipes and sockets have been read to the end.
    pub(super) fn forget_ranks(&mut self) {
        let nodes = &self.nodes;
        forget(&mut self.ranks, |job| {
            nodes.iter().any(|(of, _)| *of == job)
        });
    }

    /// Reports ranks that have loaded another MPI library.
    pub(super) fn read_maps(&mut self) {
        for (proc, library) in self.loaded.read(Instant::now()) {
            self.report_loaded(proc, &library);
        }
    }

    fn report_loaded(&mut self, proc: usize, library: &Path) {
        let library = library.to_string_lossy().into_owned();
        self.report(&FromDaemon::Loaded { proc, library });
    }

    pub(super) fn read_ranks(&mut self) {
        if self.uplink.is_full() {
            return;
        }
        for index in 0..self.ranks.len() {
            self.read_pmi(index);
            self.relay(index, false);
            self.relay(index, true);
        }
    }

    pub(super) fn read_pmi(&mut self, index: usize) {
        loop {
            let Some(rank) = self.ranks.get_mut(index) else {
                return;
            };
            let Some(socket) = &rank.pmi else {
                return;
            };
            let mut bytes = Vec::new();
            let heard = socket.receive(|heard| bytes.extend_from_slice(heard));
            let proc = rank.proc;
            match heard {
                Received::Bytes => {
                    self.loaded.is_settled(proc);
                    self.report(&FromDaemon::Pmi { proc, bytes });
                }
                Received::Nothing => return,
                Received::HungUp => {
                    rank.pmi = None;
                    return;
                }
            }
        }
    }

    /// Reads one output of a rank once. Returns true if there may be more.
    pub(super) fn relay(&mut self, index: usize, stderr: bool) -> bool {
        let rank = &mut self.ranks[index];
        let proc = rank.proc;
        let slot = match stderr {
            true => &mut rank.stderr,
            false => &mut rank.stdout,
        };
        let Some(pipe) = slot else {
            return false;
        };
        let mut buffer = vec![0u8; 32 * 1024];
        let got = match rustix::io::read(pipe, &mut buffer) {
            Ok(got) => got,
            Err(Errno::INTR) => return true,
            Err(Errno::AGAIN) => return false,
            Err(_) => 0,
        };
        if got == 0 {
            *slot = None;
        }
        if let Some(library) = self.loaded.has_written(proc) {
            self.report_loaded(proc, &library);
        }
        // An empty `bytes` reports that the last line is complete.
        let bytes = buffer[..got].to_vec();
        self.report(&FromDaemon::Output {
            proc,
            stderr,
            bytes,
        });
        got > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;

    fn ended(proc: usize, job: usize) -> LocalRank {
        LocalRank {
            proc,
            local_rank: 0,
            job,
            pid: 1,
            alive: false,
            pmi: None,
            stdout: None,
            stderr: None,
        }
    }

    #[test]
    fn a_rank_is_kept_while_it_may_be_heard_or_its_job_has_memory() {
        let open = pipe().unwrap().0;
        let (mut lives, mut writes) = (ended(2, 2), ended(3, 3));
        lives.alive = true;
        writes.stdout = Some(open);
        let mut ranks = vec![ended(0, 0), ended(1, 1), lives, writes];
        forget(&mut ranks, |job| job == 0);
        let left: Vec<usize> = ranks.iter().map(|rank| rank.proc).collect();
        assert_eq!(left, [0, 2, 3]);
    }
}

//! Table of the ranks on this host: their processes, PMI sockets, output pipes and shared memory.
//!
//! The supervisor and each daemon own one table. The table starts and reaps ranks, and reads their
//! sockets and pipes. It finds other MPI libraries in memory maps, and takes snapshots.
//! The supervisor decides what each event means for a job; a daemon only reports events.

use super::failed_starts::FailedStarts;
use super::output::Target;
use super::pmi_socket::{PmiSocket, Received, SendOutcome};
use super::starter::{Inherited, Resolved, StartError, Starter};
use super::sys::{self, Ended, Signal};
use super::wire::{End, Order};
use crate::foreign::{loaded, on};
use crate::node::Node;
use crate::pmi::{Job, Proc};
use crate::rank_snapshot::RankSnapshot;
use mpi_base::node::{NodeError, Played};
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Instant;

/// The capacity of an output pipe in bytes.
const PIPE: usize = 64 << 10;

/// The ranks of all jobs on this host.
pub struct LocalRanks {
    ranks: BTreeMap<Proc, LocalRank>,
    /// The shared-memory segment of each job with ranks on this host, until its release.
    nodes: BTreeMap<Job, Node>,
    /// Searches ranks' memory maps for other MPI libraries.
    libraries: loaded::Watch,
    /// Ranks that had loaded another MPI library at their first output, with the library's path.
    found: Vec<(Proc, PathBuf)>,
    failed_starts: FailedStarts,
    null: OwnedFd,
    nofile: Option<u64>,
    /// The read buffer, on the heap: a stack array would fill most of a small stack and be zeroed
    /// for each read.
    buffer: Vec<u8>,
}

struct LocalRank {
    job: Job,
    local_rank: u32,
    pid: i32,
    /// Whether the rank is an unreaped child of this process; false for an adopted process.
    alive: bool,
    pmi: Option<PmiSocket>,
    stdout: Option<OwnedFd>,
    stderr: Option<OwnedFd>,
}

impl LocalRank {
    /// Returns true if the rank is alive or may have unread data in a socket or pipe.
    fn may_be_heard(&self) -> bool {
        self.alive || self.pmi.is_some() || self.stdout.is_some() || self.stderr.is_some()
    }

    fn pipe_mut(&mut self, of: Target) -> &mut Option<OwnedFd> {
        match of {
            Target::Stdout => &mut self.stdout,
            Target::Stderr => &mut self.stderr,
        }
    }
}

/// The ranks of a job that this host must start, with resolved programs and allocated memory.
pub struct Prepared<'a> {
    order: &'a Order,
    resolved: Resolved<'a>,
    /// The job's shared memory; `None` if no rank of the job runs on this host.
    node: Option<Node>,
}

impl Prepared<'_> {
    /// Returns the messages about the programs that run on this host.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        self.resolved.sentences()
    }
}

/// A rank that has been started.
pub struct Begun {
    pub proc: Proc,
    pub pid: i32,
    /// The processors that the rank is bound to, as text; `None` if it is unbound.
    pub bound: Option<String>,
}

/// The result of reading a rank's output stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    Some,
    Nothing,
    End,
}

impl LocalRanks {
    /// Creates an empty table; `nofile` is the limit of open files for ranks.
    pub fn new(nofile: Option<u64>) -> io::Result<LocalRanks> {
        use rustix::fs::{Mode, OFlags};
        Ok(LocalRanks {
            ranks: BTreeMap::new(),
            nodes: BTreeMap::new(),
            libraries: loaded::Watch::default(),
            found: Vec::new(),
            failed_starts: FailedStarts::new()?,
            null: rustix::fs::open("/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?,
            nofile,
            buffer: Vec::new(),
        })
    }

    // ---- starts ---------------------------------------------------------------------------------------------------

    /// Resolves the programs of a job's ranks on `host` (this host) and allocates their memory.
    /// If resolving or allocating fails, no rank is started.
    pub fn prepare<'a>(
        &self,
        order: &'a Order,
        host: u32,
        inherited: Inherited<'_>,
    ) -> Result<Prepared<'a>, StartError> {
        let resolved = self.starter(inherited).resolve(order, host)?;
        let node = match resolved.count() {
            0 => None,
            count => Some(Node::create(count, 0).map_err(StartError::Node)?),
        };
        Ok(Prepared {
            order,
            resolved,
            node,
        })
    }

    /// Starts a job's ranks on this host; `input` returns the standard input of a rank, if any.
    ///
    /// Returns the started ranks, also if a later start has failed.
    pub fn start(
        &mut self,
        prepared: Prepared<'_>,
        inherited: Inherited<'_>,
        input: impl FnMut(u32) -> io::Result<Option<OwnedFd>>,
    ) -> (Vec<Begun>, Result<(), StartError>) {
        let Prepared {
            order,
            resolved,
            node,
        } = prepared;
        let Some(node) = node else {
            return (Vec::new(), Ok(()));
        };
        let mut started = Vec::with_capacity(resolved.count());
        let starter = self.starter(inherited);
        let outcome = starter.start(order, &resolved, node.fd(), input, |rank| {
            started.push(rank)
        });
        // Single ranks and ranks of `--on` are not watched: a single rank is right on any library.
        let is_watched = order.hosts.len() > 1 && on::wanted(inherited.env).is_none();
        let job = Job(order.job);
        let mut begun = Vec::with_capacity(started.len());
        for rank in started {
            let proc = Proc(order.first + rank.rank as usize);
            let (pid, bound) = (rank.pid, rank.bound);
            if is_watched {
                self.libraries.began(proc.0, pid);
            }
            self.ranks.insert(
                proc,
                LocalRank {
                    job,
                    local_rank: rank.local_rank,
                    pid,
                    alive: true,
                    pmi: Some(rank.pmi),
                    stdout: Some(rank.stdout),
                    stderr: Some(rank.stderr),
                },
            );
            begun.push(Begun { proc, pid, bound });
        }
        // The memory of a job without ranks here would never be released, so it is not kept.
        if !begun.is_empty() {
            self.nodes.insert(job, node);
        }
        (begun, outcome)
    }

    fn starter<'a>(&'a self, inherited: Inherited<'a>) -> Starter<'a> {
        Starter {
            inherited,
            report: self.report_fd(),
            null: self.null.as_fd(),
            nofile: self.nofile,
        }
    }

    /// Returns the pipe on which a child reports that it could not execute its program.
    pub fn report_fd(&self) -> BorrowedFd<'_> {
        self.failed_starts.report_fd()
    }

    /// Returns the limit of open files for children of this process.
    pub fn nofile(&self) -> Option<u64> {
        self.nofile
    }

    /// Registers a process that this launcher did not start; only its PMI socket is served.
    pub fn adopt(&mut self, proc: Proc, job: Job, socket: PmiSocket) {
        self.ranks.insert(
            proc,
            LocalRank {
                job,
                local_rank: 0,
                pid: 0,
                alive: false,
                pmi: Some(socket),
                stdout: None,
                stderr: None,
            },
        );
    }

    // ---- signals and ends -----------------------------------------------------------------------------------------

    /// Returns the pids of the living ranks, each the leader of a process group.
    pub fn leaders(&self) -> impl Iterator<Item = i32> {
        self.alive().map(|(_, rank)| rank.pid)
    }

    fn alive(&self) -> impl Iterator<Item = (Proc, &LocalRank)> {
        let ranks = self.ranks.iter().filter(|(_, rank)| rank.alive);
        ranks.map(|(proc, rank)| (*proc, rank))
    }

    /// Returns true if at least one started rank is alive.
    pub fn any_alive(&self) -> bool {
        self.alive().next().is_some()
    }

    /// Sends a signal to the process group of each living rank.
    pub fn signal(&self, signal: Signal) {
        self.signal_those(signal, |_| true);
    }

    /// Sends a signal to the process groups of the living ranks for which `meant` returns true.
    pub fn signal_those(&self, signal: Signal, meant: impl Fn(Proc) -> bool) {
        for (_, rank) in self.alive().filter(|(proc, _)| meant(*proc)) {
            sys::signal_group(rank.pid, signal);
        }
    }

    /// Kills all processes that a rank has left in its process group.
    pub fn end_group_of(&self, proc: Proc) {
        if let Some(rank) = self.ranks.get(&proc).filter(|rank| rank.pid > 0) {
            sys::end_group_of(rank.pid);
        }
    }

    /// Reaps processes until one of them is a rank; returns that rank and how it ended.
    ///
    /// The other reaped processes are orphans, or the commands (such as ssh) that started daemons on other hosts.
    /// The end of such a command is detected on the link to its daemon.
    pub fn reap(&mut self) -> Option<(Proc, Ended)> {
        while let Some((pid, ended)) = sys::reap() {
            let of_pid = self.alive().find(|(_, rank)| rank.pid == pid);
            if let Some((proc, _)) = of_pid {
                return Some((proc, ended));
            }
            // A later rank may get the same pid, so the report is removed.
            self.failed_starts.take(pid);
        }
        None
    }

    /// Records that a rank was reaped; returns how it ended.
    /// The error report of a child that could not execute its program takes precedence.
    pub fn record_end(&mut self, proc: Proc, ended: Ended) -> End {
        self.libraries.is_settled(proc.0);
        let report = self.ranks.get_mut(&proc).and_then(|rank| {
            rank.alive = false;
            self.failed_starts.take(rank.pid)
        });
        match (report, ended) {
            (Some(failed), _) => End::NeverBegan {
                errno: failed.errno,
                step: failed.step as i32,
            },
            (None, Ended::Exited(code)) => End::Exited(code),
            (None, Ended::Killed(signal)) => End::Killed(signal),
        }
    }

    /// Returns the ranks whose exit the kernel has begun, before it reports their end.
    /// The kernel reports an end only after it has closed the files and unmapped the memory.
    pub fn dying(&self) -> impl Iterator<Item = Proc> {
        let dying = self.alive().filter(|(_, rank)| sys::is_dying(rank.pid));
        dying.map(|(proc, _)| proc)
    }

    // ---- requests -------------------------------------------------------------------------------------------------

    /// Reads a rank's PMI socket with one system call; `take` receives the bytes.
    pub fn receive(&mut self, proc: Proc, take: impl FnOnce(&[u8])) -> Received {
        let Some(rank) = self.ranks.get_mut(&proc) else {
            return Received::Nothing;
        };
        let Some(socket) = &rank.pmi else {
            return Received::Nothing;
        };
        let received = socket.receive(take);
        match received {
            // The rank speaks PMI to this launcher, so it uses this library: no search is needed.
            Received::Bytes => self.libraries.is_settled(proc.0),
            Received::Nothing => {}
            Received::HungUp => rank.pmi = None,
        }
        received
    }

    /// Sends bytes to a rank's PMI socket; bytes that the socket does not accept are queued.
    pub fn send(&mut self, proc: Proc, bytes: &[u8]) -> SendOutcome {
        self.with_socket(proc, |socket| socket.say(bytes))
    }

    /// Sends the reply that lets a process begin its rank's program `program`, with the memory of this host's ranks for that program.
    pub fn welcome(&mut self, proc: Proc, program: u32, bytes: &[u8]) -> SendOutcome {
        let Some(job) = self.job_of(proc) else {
            return SendOutcome::HungUp;
        };
        let ranks = self.ranks.values().filter(|rank| rank.job == job).count();
        if let Err(error) = renew_memory(&mut self.nodes, ranks, job, program) {
            let host = crate::hosts::own_name();
            printable::eprintln!(
                "mpirun on {host}: the ranks of this host get no memory for their next program: {error}"
            );
            // Without the descriptor, the process fails with a message of its own.
            return self.send(proc, bytes);
        }
        let socket = self.ranks.get_mut(&proc).and_then(|rank| rank.pmi.as_mut());
        match (socket, self.nodes.get(&job)) {
            (Some(socket), Some(node)) => socket.say_with(bytes, node.fd()),
            _ => SendOutcome::HungUp,
        }
    }

    /// Writes the bytes that are queued for a rank's PMI socket, without blocking.
    pub fn send_queued(&mut self, proc: Proc) -> SendOutcome {
        self.with_socket(proc, PmiSocket::drain)
    }

    fn with_socket(
        &mut self,
        proc: Proc,
        send: impl FnOnce(&mut PmiSocket) -> SendOutcome,
    ) -> SendOutcome {
        let socket = self.ranks.get_mut(&proc).and_then(|rank| rank.pmi.as_mut());
        socket.map_or(SendOutcome::HungUp, send)
    }

    /// Writes the queued bytes of all ranks' PMI sockets, without blocking.
    pub fn send_all_queued(&mut self) {
        let sockets = self.ranks.values_mut().filter_map(|rank| rank.pmi.as_mut());
        for socket in sockets.filter(|socket| socket.has_queued()) {
            socket.drain();
        }
    }

    /// Returns a rank's PMI socket; `None` if it is closed.
    pub fn socket(&self, proc: Proc) -> Option<&PmiSocket> {
        self.ranks.get(&proc)?.pmi.as_ref()
    }

    /// Closes a rank's PMI socket; the rank then ends, since it considers its launcher lost.
    pub fn close_socket(&mut self, proc: Proc) {
        if let Some(rank) = self.ranks.get_mut(&proc) {
            rank.pmi = None;
        }
    }

    // ---- output ---------------------------------------------------------------------------------------------------

    /// Reads a rank's output stream with one system call; `take` receives the bytes.
    pub fn read_output(&mut self, proc: Proc, of: Target, take: impl FnOnce(&[u8])) -> Read {
        let Some(rank) = self.ranks.get_mut(&proc) else {
            return Read::Nothing;
        };
        let slot = rank.pipe_mut(of);
        let Some(pipe) = slot else {
            return Read::Nothing;
        };
        // The rank is alive or has just ended, so its maps are still readable.
        // A rank without output may not have loaded its MPI library yet.
        let has_output = rustix::io::ioctl_fionread(&*pipe).is_ok_and(|bytes| bytes > 0);
        let loaded = has_output.then(|| self.libraries.has_written(proc.0));
        if let Some(library) = loaded.flatten() {
            self.found.push((proc, library));
        }
        self.buffer.resize(PIPE, 0);
        match rustix::io::read(pipe, &mut self.buffer[..]) {
            Ok(got @ 1..) => {
                take(&self.buffer[..got]);
                Read::Some
            }
            Err(Errno::INTR) => Read::Some,
            Err(Errno::AGAIN) => Read::Nothing,
            Ok(_) | Err(_) => {
                *slot = None;
                Read::End
            }
        }
    }

    /// Returns an output pipe of a rank; `None` if it is closed.
    pub fn pipe(&self, proc: Proc, of: Target) -> Option<BorrowedFd<'_>> {
        let rank = self.ranks.get(&proc)?;
        let pipe = match of {
            Target::Stdout => &rank.stdout,
            Target::Stderr => &rank.stderr,
        };
        pipe.as_ref().map(AsFd::as_fd)
    }

    /// Returns the open output pipes of all ranks.
    pub fn pipes(&self) -> impl Iterator<Item = (Proc, Target, BorrowedFd<'_>)> {
        self.ranks.keys().flat_map(move |&proc| {
            let both = [Target::Stdout, Target::Stderr].into_iter();
            both.filter_map(move |of| Some((proc, of, self.pipe(proc, of)?)))
        })
    }

    /// Returns the ranks that are alive or may have unread data.
    pub fn open(&self) -> Vec<Proc> {
        let open = self.ranks.iter().filter(|(_, rank)| rank.may_be_heard());
        open.map(|(proc, _)| *proc).collect()
    }

    /// Adds all open sockets and pipes to the poll set `fds`, for reading.
    pub fn poll_readable<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        let sockets = self.ranks.values().filter_map(|rank| rank.pmi.as_ref());
        fds.extend(sockets.map(|socket| PollFd::new(socket, PollFlags::IN)));
        let pipes = self.pipes().map(|(.., fd)| fd);
        fds.extend(pipes.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
    }

    /// Adds the sockets with queued bytes to the poll set `fds`, for writing.
    pub fn poll_writable<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        let sockets = self.ranks.values().filter_map(|rank| rank.pmi.as_ref());
        let queued = sockets.filter(|socket| socket.has_queued());
        fds.extend(queued.map(|socket| PollFd::new(socket, PollFlags::OUT)));
    }

    // ---- memory ---------------------------------------------------------------------------------------------------

    /// Returns the current snapshot of a rank's state in MPI.
    pub fn snapshot(&self, proc: Proc) -> Option<RankSnapshot> {
        let rank = self.ranks.get(&proc)?;
        self.nodes.get(&rank.job)?.snapshot_of(rank.local_rank)
    }

    /// Returns the current snapshots of all living ranks.
    pub fn snapshots(&self) -> Vec<(Proc, RankSnapshot)> {
        let alive = self.alive().map(|(proc, _)| proc);
        alive
            .filter_map(|proc| Some((proc, self.snapshot(proc)?)))
            .collect()
    }

    /// Returns the recorded events of a rank, for the trace.
    pub fn played(&self, proc: Proc) -> Option<Played> {
        let rank = self.ranks.get(&proc)?;
        Some(self.nodes.get(&rank.job)?.played_of(rank.local_rank))
    }

    /// Returns the job of a rank.
    pub fn job_of(&self, proc: Proc) -> Option<Job> {
        self.ranks.get(&proc).map(|rank| rank.job)
    }

    /// Returns all ranks on this host, including ended ones that are still in the table.
    pub fn all(&self) -> Vec<Proc> {
        self.ranks.keys().copied().collect()
    }

    /// Returns ranks with the other MPI library that they have loaded, each rank once.
    /// Includes the libraries found since the last call, and those found by this call, which reads the memory maps that are due.
    pub fn take_libraries(&mut self, now: Instant) -> Vec<(Proc, PathBuf)> {
        let mut found = std::mem::take(&mut self.found);
        let read = self.libraries.read(now).into_iter();
        found.extend(read.map(|(number, library)| (Proc(number), library)));
        found
    }

    /// Returns the time at which the memory maps are next due to be read.
    pub fn next_maps(&self) -> Option<Instant> {
        self.libraries.next()
    }

    /// Returns true if a job has memory here, no living rank, and no recorded events.
    pub fn is_over(&self, job: Job) -> bool {
        let Some(node) = self.nodes.get(&job) else {
            return false;
        };
        let mut of_job = self.ranks.values().filter(|rank| rank.job == job);
        of_job.all(|rank| !rank.alive && node.played_of(rank.local_rank).events.is_empty())
    }

    /// Releases the memory of a job that has ended.
    pub fn release(&mut self, job: Job) {
        self.nodes.remove(&job);
    }

    /// Removes ended ranks of jobs with released memory, once their sockets and pipes are closed.
    pub fn forget_released(&mut self) {
        let nodes = &self.nodes;
        forget(&mut self.ranks, |job| nodes.contains_key(&job));
    }
}

/// Replaces the memory of a job with `ranks` ranks on this host at the first reply of its program `program`.
fn renew_memory(
    nodes: &mut BTreeMap<Job, Node>,
    ranks: usize,
    job: Job,
    program: u32,
) -> Result<(), NodeError> {
    let known = nodes.get(&job);
    if known.is_some_and(|node| node.program() == program) {
        return Ok(());
    }
    let node = Node::create(ranks, program)?;
    if let Some(earlier) = nodes.insert(job, node) {
        earlier.free_contents();
    }
    Ok(())
}

/// Removes ended ranks with closed sockets and pipes, unless their job's memory is kept.
fn forget(ranks: &mut BTreeMap<Proc, LocalRank>, has_memory: impl Fn(Job) -> bool) {
    ranks.retain(|_, rank| rank.may_be_heard() || has_memory(rank.job));
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;

    fn ended(job: usize) -> LocalRank {
        LocalRank {
            job: Job(job),
            local_rank: 0,
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
        let (mut lives, mut writes) = (ended(2), ended(3));
        lives.alive = true;
        writes.stdout = Some(open);
        let ranks = [ended(0), ended(1), lives, writes];
        let mut ranks = ranks.into_iter().enumerate();
        let mut ranks = BTreeMap::from_iter(ranks.by_ref().map(|(n, rank)| (Proc(n), rank)));
        forget(&mut ranks, |job| job == Job(0));
        let left: Vec<Proc> = ranks.keys().copied().collect();
        assert_eq!(left, [0, 2, 3].map(Proc));
    }

    #[test]
    fn an_output_is_read_until_its_writer_has_closed_it() {
        let (read, write) = super::super::link::reading_pipe().unwrap();
        let mut local = LocalRanks::new(None).unwrap();
        let mut rank = ended(0);
        rank.stderr = Some(read);
        local.ranks.insert(Proc(4), rank);
        let mut text = Vec::new();
        let mut next = |local: &mut LocalRanks, of| {
            local.read_output(Proc(4), of, |bytes| text.extend_from_slice(bytes))
        };
        assert_eq!(next(&mut local, Target::Stdout), Read::Nothing);
        assert_eq!(next(&mut local, Target::Stderr), Read::Nothing);
        rustix::io::write(&write, b"a line\n").unwrap();
        assert_eq!(next(&mut local, Target::Stderr), Read::Some);
        drop(write);
        assert_eq!(local.open(), [Proc(4)]);
        // A child that another test forks may hold a copy of the write end until its `exec`.
        while next(&mut local, Target::Stderr) != Read::End {
            std::thread::yield_now();
        }
        assert_eq!(next(&mut local, Target::Stderr), Read::Nothing);
        assert_eq!(text, b"a line\n");
        assert!(local.open().is_empty());
    }

    #[test]
    fn an_adopted_process_is_heard_and_gets_no_signal() {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        let kind = (
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
        );
        let (ours, other) = socketpair(kind.0, kind.1, kind.2, None).unwrap();
        let mut local = LocalRanks::new(None).unwrap();
        local.adopt(Proc(0), Job(0), PmiSocket::new(ours));
        assert!(!local.any_alive() && local.leaders().next().is_none());
        rustix::io::write(&other, b"cmd=init\n").unwrap();
        let mut text = Vec::new();
        let received = local.receive(Proc(0), |bytes| text.extend_from_slice(bytes));
        assert_eq!((received, &text[..]), (Received::Bytes, &b"cmd=init\n"[..]));
        local.close_socket(Proc(0));
        assert_eq!(local.send(Proc(0), b"cmd=finalize\n"), SendOutcome::HungUp);
    }
}

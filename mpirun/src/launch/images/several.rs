//! One checkpoint of a job on one or several hosts.
//!
//! All hosts stop their processes. When no TCP connection between them has anything in flight, all hosts dump.
//! Then the processes continue while each host syncs its images; the checkpoint is committed by one rename.

use super::attention::Attention;
use super::remote::{ENDED_BY_USER, HostError, Remote, ask_all, complete, out_of_order};
use super::run::log_of;
use super::still::Processes;
use super::take::{
    ADDRESSES, AGENT, FROM, MPIRUN, NAME, Sealed, TO, TakeError, Taken, Tree, Wanted, commit,
    entry, sealing,
};
use super::work::Work;
use crate::launch::outside;
use crate::launch::program::RemoteLaunch;
use crate::launch::wire::{Connection, Failure, FromGuard, Quiet, ToGuard};
use mpi_core::crs::manifest::FileEntry;
use mpi_core::crs::store::{Disk as _, Draft, FileSystem, Store};
use std::collections::BTreeSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The maximum time in which the kernels acknowledge everything.
const LIMIT: Duration = Duration::from_secs(20);

/// The number of attempts to take a checkpoint: CRIU cannot dump a process in the middle of some steps,
/// such as the change of an epoll's descriptors.
const ATTEMPTS: usize = 3;

/// The time for which processes run so that they accept connections, or between two attempts.
const RUN: Duration = Duration::from_millis(20);

/// The hosts of a job.
pub(super) struct Hosts<'a> {
    pub tree: Tree<'a>,
    pub processes: &'a mut Processes,
    /// The other hosts; none for a job on one host.
    pub remotes: &'a mut [Remote],
    pub reach: &'a RemoteLaunch,
    pub attention: &'a mut Attention,
}

/// Takes a checkpoint.
pub(super) fn take(
    mut hosts: Hosts<'_>,
    wanted: &Wanted<'_>,
    store: &mut Store,
) -> Result<Taken, TakeError> {
    for _ in 1..ATTEMPTS {
        match hosts.attempt(wanted, store) {
            Err(TakeError::Host(error)) if error.failure.may_repeat => {
                hosts.go_on().map_err(TakeError::Host)?;
                hosts.attention.sleep(RUN);
            }
            done => return done,
        }
    }
    hosts.attempt(wanted, store)
}

impl Hosts<'_> {
    fn attempt(&mut self, wanted: &Wanted<'_>, store: &mut Store) -> Result<Taken, TakeError> {
        let begun = store.begin_after(|_, left| self.remove(left));
        let draft = begun.map_err(TakeError::Store)?;
        let taken = self.write(wanted, store, &draft);
        // A lost host may still write to the draft.
        let is_left = self.remotes.iter().any(|remote| remote.lost().is_some());
        match &taken {
            Err(_) if is_left => store.abandon(&draft),
            // A partial removal is completed by the next attempt.
            Err(_) => drop(self.remove(vec![draft.folder])),
            Ok(_) => {}
        }
        taken
    }

    /// Removes folders, which takes long for large ones. The other hosts get signs of life meanwhile.
    fn remove(&mut self, folders: Vec<PathBuf>) -> io::Result<()> {
        if folders.is_empty() {
            return Ok(());
        }
        let work = Work::in_a_child("the removal of incomplete checkpoints", move || {
            let mut folders = folders.iter();
            let removed = folders.try_for_each(|folder| FileSystem.remove(folder));
            removed.map_err(|error| error.to_string())
        });
        let removed = complete(self.attention, self.remotes, work);
        removed.map_err(|failure| io::Error::other(failure.why))
    }

    fn write(
        &mut self,
        wanted: &Wanted<'_>,
        store: &Store,
        draft: &Draft,
    ) -> Result<Taken, TakeError> {
        let host_error = TakeError::Host;
        let (connections, queues) = self.stop_quietly().map_err(host_error)?;
        let mut entries = self.dump(wanted, draft).map_err(host_error)?;
        if self.quiet().map_err(host_error)? != (Quiet::Yes, queues) {
            let why = "a kernel has moved data of the stopped processes during the dump";
            return Err(TakeError::Host(HostError::here(Failure {
                may_repeat: true,
                ..Failure::of(why)
            })));
        }
        entries.extend(addresses(&connections));
        entries.extend(self.links().map_err(host_error)?);
        if !wanted.stays_stopped {
            self.go_on().map_err(host_error)?;
        }
        let files = self.seal(draft).map_err(host_error)?;
        // Each host has answered each order. A signal that ends the job, or the loss of a host, comes before the commit or after it.
        if self.attention.end().is_some() {
            return Err(TakeError::Host(HostError::here(Failure::of(ENDED_BY_USER))));
        }
        commit(store, draft, wanted, (entries, files))
    }

    /// Stops all processes such that nothing is in flight between hosts.
    /// Returns the connections of each host with others, and the digests of the queues.
    fn stop_quietly(&mut self) -> Result<(Vec<Vec<Connection>>, Vec<u64>), HostError> {
        let end = Instant::now() + LIMIT;
        loop {
            let connections = self.stop()?;
            let mut quiet = self.quiet()?;
            while quiet.0 == Quiet::NotYet && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
                quiet = self.quiet()?;
            }
            match quiet {
                // A connection that is yet to be accepted has one known end only.
                (Quiet::Yes, queues) => {
                    return match foreign(&connections) {
                        Some(connection) => {
                            let error = outside::foreign(connection);
                            Err(HostError::here(Failure::of(error.to_string())))
                        }
                        None => Ok((connections, queues)),
                    };
                }
                _ if Instant::now() > end => {
                    let why = "the kernels have not acknowledged all data between the hosts";
                    return Err(HostError::here(Failure::of(why)));
                }
                _ => {}
            }
            self.go_on()?;
            self.attention.sleep(RUN);
        }
    }

    fn stop(&mut self) -> Result<Vec<Vec<Connection>>, HostError> {
        let Hosts {
            processes,
            remotes,
            attention,
            ..
        } = self;
        let (here, there) = ask_all(
            attention,
            remotes,
            |_| ToGuard::Stop,
            || Work::Done(stop(processes, || ())),
            |remote, answer| match answer {
                FromGuard::Stopped(Ok(connections)) => Ok(connections),
                FromGuard::Stopped(Err(why)) => Err(remote.failed(why)),
                _ => Err(out_of_order(remote)),
            },
        )?;
        Ok(std::iter::once(here).chain(there).collect())
    }

    /// Returns the state of the least quiet host, and the digest of the queues of each host.
    fn quiet(&mut self) -> Result<(Quiet, Vec<u64>), HostError> {
        let processes = &self.processes;
        let (here, there) = ask_all(
            self.attention,
            self.remotes,
            |_| ToGuard::IsQuiet,
            || Work::Done(Ok(processes.is_quiet())),
            |remote, answer| match answer {
                FromGuard::Quiet(quiet, queues) => Ok((quiet, queues)),
                _ => Err(out_of_order(remote)),
            },
        )?;
        let all: Vec<(Quiet, u64)> = std::iter::once(here).chain(there).collect();
        let worst = all.iter().map(|(quiet, _)| *quiet).max();
        let queues = all.into_iter().map(|(_, queues)| queues).collect();
        Ok((worst.unwrap_or(Quiet::Yes), queues))
    }

    fn dump(
        &mut self,
        wanted: &Wanted<'_>,
        draft: &Draft,
    ) -> Result<Vec<(String, String)>, HostError> {
        let numbers: Vec<u32> = self.remotes.iter().map(|remote| remote.number).collect();
        let order = |remote: &Remote| ToGuard::Dump {
            set: draft.folder.clone(),
            number: position(&numbers, remote),
        };
        let (tree, processes) = (&self.tree, &self.processes);
        let here = || {
            let log = log_of(wanted.dir, "dump", 0);
            let set = (draft.folder.as_path(), 0);
            tree.dump(&wanted.images.program, set, &log, processes)
        };
        let (here, there) = ask_all(
            self.attention,
            self.remotes,
            order,
            here,
            |remote, answer| match answer {
                FromGuard::Dumped(Ok(entries)) => Ok(entries),
                FromGuard::Dumped(Err(failure)) => Err(remote.error(failure)),
                _ => Err(out_of_order(remote)),
            },
        )?;
        // The guard of each host has checked its own processes in the same way.
        self.processes.check_ranks().map_err(HostError::here)?;
        Ok(std::iter::once(here).chain(there).flatten().collect())
    }

    /// Continues the processes of all hosts.
    fn go_on(&mut self) -> Result<(), HostError> {
        let processes = &self.processes;
        let here = || {
            processes.go_on();
            Work::Done(Ok(()))
        };
        let order = |_: &Remote| ToGuard::Continue;
        ask_all(self.attention, self.remotes, order, here, done).map(|_| ())
    }

    fn seal(&mut self, draft: &Draft) -> Result<Vec<FileEntry>, HostError> {
        let numbers: Vec<u32> = self.remotes.iter().map(|remote| remote.number).collect();
        let entry = |rank: u32, (name, len, crc): Sealed| FileEntry {
            rank,
            name,
            len,
            crc,
        };
        let (here, there) = ask_all(
            self.attention,
            self.remotes,
            |_| ToGuard::Seal,
            || sealing(draft.folder.clone(), 0),
            |remote, answer| match answer {
                FromGuard::Sealed(Ok(files)) => {
                    let rank = position(&numbers, remote);
                    Ok((rank, files))
                }
                FromGuard::Sealed(Err(why)) => Err(remote.failed(why)),
                _ => Err(out_of_order(remote)),
            },
        )?;
        let hosts = std::iter::once((0, here)).chain(there);
        let files = hosts.flat_map(|(rank, files)| files.into_iter().map(move |file| (rank, file)));
        Ok(files.map(|(rank, file)| entry(rank, file)).collect())
    }

    /// Returns the manifest's entries about the links to other hosts, and how these are reached.
    fn links(&self) -> Result<Vec<(String, String)>, HostError> {
        let mut entries = Vec::new();
        for (host, remote) in (1..).zip(self.remotes.iter()) {
            let [to, from] = remote.inodes()?;
            entries.extend([
                (entry(NAME, host), remote.name.clone()),
                (entry(TO, host), to.to_string()),
                (entry(FROM, host), from.to_string()),
            ]);
        }
        let text = |word: &std::ffi::OsStr| String::from_utf8_lossy(word.as_bytes()).into_owned();
        let words = (1..).zip(&self.reach.agent);
        entries.extend(words.map(|(at, word)| (entry(AGENT, at), text(word))));
        entries.push((MPIRUN.into(), text(self.reach.mpirun.as_os_str())));
        Ok(entries)
    }
}

/// Stops the processes of this host. Returns their connections with others. Calls `tick` meanwhile.
pub(super) fn stop(
    processes: &mut Processes,
    tick: impl FnMut(),
) -> Result<Vec<Connection>, Failure> {
    let stopped = processes.stop(tick);
    stopped.map_err(|error| Failure::of(error.to_string()))?;
    let connections = processes.check();
    connections.map_err(|error| Failure::of(error.to_string()))
}

/// Reads an answer that has no contents.
pub(super) fn done(remote: &Remote, answer: FromGuard) -> Result<(), HostError> {
    match answer {
        FromGuard::Done(Ok(())) => Ok(()),
        FromGuard::Done(Err(failure)) => Err(remote.error(failure)),
        _ => Err(out_of_order(remote)),
    }
}

/// Returns the number of a host in the checkpoint: mpirun's host is 0.
fn position(numbers: &[u32], remote: &Remote) -> u32 {
    let at = numbers.iter().position(|number| *number == remote.number);
    at.map_or(0, |at| at as u32 + 1)
}

/// Returns a connection whose other end is on none of the hosts.
fn foreign(all: &[Vec<Connection>]) -> Option<&Connection> {
    let pair = |connection: &Connection| (connection.local, connection.remote);
    let ours: BTreeSet<_> = all.iter().flatten().map(pair).collect();
    let mut connections = all.iter().flatten();
    connections.find(|connection| !ours.contains(&(connection.remote, connection.local)))
}

/// Returns the manifest's entries with the addresses that a restart needs.
fn addresses(all: &[Vec<Connection>]) -> Vec<(String, String)> {
    let entries = (0..).zip(all).map(|(host, connections)| {
        let addresses = connections.iter().map(|connection| connection.local.ip());
        let addresses: BTreeSet<_> = addresses.collect();
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        (entry(ADDRESSES, host), addresses.join(" "))
    });
    entries.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_between_hosts_has_its_ends_on_both() {
        let connection = |local: &str, remote: &str| Connection {
            owner: local.into(),
            local: local.parse().expect("an address"),
            remote: remote.parse().expect("an address"),
        };
        let one = vec![connection("10.0.0.1:9", "10.0.0.2:7")];
        let other = vec![
            connection("10.0.0.2:7", "10.0.0.1:9"),
            connection("10.0.0.2:8", "10.0.0.3:1"),
        ];
        assert!(foreign(&[one.clone(), other[..1].to_vec()]).is_none());
        let found = [one.clone(), other];
        assert_eq!(
            foreign(&found).map(|found| found.owner.as_str()),
            Some("10.0.0.2:8")
        );
        let expected = [("addresses".to_owned(), "10.0.0.1".to_owned())];
        assert_eq!(addresses(&[one]), expected);
    }
}

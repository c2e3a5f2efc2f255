//! One checkpoint of a job on several hosts.
//!
//! All hosts stop their processes. When no TCP connection between them has anything in flight, all hosts dump.
//! Then the processes continue while each host syncs its images; the checkpoint is committed by one rename.

use super::remote::{HostError, Remote, ask_all, out_of_order};
use super::run::log_of;
use super::still::Processes;
use super::take::{
    ADDRESSES, AGENT, FROM, MPIRUN, NAME, TO, TakeError, Taken, Tree, commit, entry, sealed,
};
use crate::launch::outside;
use crate::launch::program::{Images, RemoteLaunch};
use crate::launch::wire::{Connection, Failure, FromGuard, Quiet, ToGuard};
use mpi_core::crs::criu::After;
use mpi_core::crs::manifest::FileEntry;
use mpi_core::crs::store::{Draft, Store};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The maximum time in which the kernels acknowledge everything.
const LIMIT: Duration = Duration::from_secs(20);

/// The number of attempts to take a checkpoint: CRIU cannot dump a process in the middle of some steps,
/// such as the change of an epoll's descriptors.
const ATTEMPTS: usize = 3;

/// The time for which processes run so that they accept connections, or between two attempts.
const RUN: Duration = Duration::from_millis(20);

/// The state after the dump of processes that were stopped before it. CRIU leaves such processes stopped,
/// and ends the repair mode of their connections, which it would not do with [`After::Stopped`].
pub(super) const STAYS_STOPPED: After = After::Running;

/// The hosts of a job.
pub(super) struct Hosts<'a> {
    pub tree: Tree<'a>,
    pub processes: &'a mut Processes,
    pub remotes: &'a mut [Remote],
    pub reach: &'a RemoteLaunch,
}

/// Takes a checkpoint. With `stays_stopped`, the processes stay stopped after a successful one.
pub(super) fn take(
    mut hosts: Hosts<'_>,
    images: &Images,
    dir: &Path,
    store: &mut Store,
    stays_stopped: bool,
) -> Result<Taken, TakeError> {
    for _ in 1..ATTEMPTS {
        match hosts.attempt(images, dir, store, stays_stopped) {
            Err(TakeError::Host(error)) if !error.failure.is_damaged => {
                hosts.go_on().map_err(TakeError::Host)?;
                std::thread::sleep(RUN);
            }
            done => return done,
        }
    }
    hosts.attempt(images, dir, store, stays_stopped)
}

impl Hosts<'_> {
    fn attempt(
        &mut self,
        images: &Images,
        dir: &Path,
        store: &mut Store,
        stays_stopped: bool,
    ) -> Result<Taken, TakeError> {
        let draft = store.begin().map_err(TakeError::Store)?;
        let taken = self.write(images, dir, store, (&draft, stays_stopped));
        if taken.is_err() {
            store.discard(&draft);
        }
        taken
    }

    fn write(
        &mut self,
        images: &Images,
        dir: &Path,
        store: &Store,
        (draft, stays_stopped): (&Draft, bool),
    ) -> Result<Taken, TakeError> {
        let host_error = TakeError::Host;
        let connections = self.stop_quietly().map_err(host_error)?;
        let mut entries = self.dump(images, dir, draft).map_err(host_error)?;
        if let Some(rank) = self.processes.ended_rank() {
            return Err(TakeError::Ended(rank));
        }
        entries.extend(addresses(&connections));
        entries.extend(self.links().map_err(host_error)?);
        if !stays_stopped {
            self.go_on().map_err(host_error)?;
        }
        let files = self.seal(draft).map_err(host_error)?;
        commit(store, draft, images, (entries, files))
    }

    /// Stops all processes such that nothing is in flight between hosts.
    /// Returns the connections of each host with others.
    fn stop_quietly(&mut self) -> Result<Vec<Vec<Connection>>, HostError> {
        let end = Instant::now() + LIMIT;
        loop {
            let connections = self.stop()?;
            let mut quiet = self.quiet()?;
            while quiet == Quiet::NotYet && Instant::now() < end {
                std::thread::sleep(Duration::from_millis(2));
                quiet = self.quiet()?;
            }
            match quiet {
                // A connection that is yet to be accepted has one known end only.
                Quiet::Yes => {
                    return match foreign(&connections) {
                        Some(connection) => {
                            let error = outside::foreign(connection);
                            Err(HostError::here(Failure::of(error.to_string())))
                        }
                        None => Ok(connections),
                    };
                }
                _ if Instant::now() > end => {
                    let why = "the kernels have not acknowledged all data between the hosts";
                    return Err(HostError::here(Failure::of(why)));
                }
                _ => {}
            }
            self.go_on()?;
            std::thread::sleep(RUN);
        }
    }

    fn stop(&mut self) -> Result<Vec<Vec<Connection>>, HostError> {
        let Hosts {
            processes, remotes, ..
        } = self;
        let mut here = Vec::new();
        let there = ask_all(
            remotes,
            |_| ToGuard::Stop,
            || {
                here = stop(processes).map_err(HostError::here)?;
                Ok(())
            },
            |remote, answer| match answer {
                FromGuard::Stopped(Ok(connections)) => Ok(connections),
                FromGuard::Stopped(Err(why)) => Err(remote.failed(why)),
                _ => Err(out_of_order(remote)),
            },
        )?;
        Ok(std::iter::once(here).chain(there).collect())
    }

    /// Returns the state of the least quiet host.
    fn quiet(&mut self) -> Result<Quiet, HostError> {
        let mut here = Quiet::Yes;
        let there = ask_all(
            self.remotes,
            |_| ToGuard::IsQuiet,
            || {
                here = self.processes.is_quiet();
                Ok(())
            },
            |remote, answer| match answer {
                FromGuard::Quiet(quiet) => Ok(quiet),
                _ => Err(out_of_order(remote)),
            },
        )?;
        Ok(there.into_iter().fold(here, Quiet::max))
    }

    fn dump(
        &mut self,
        images: &Images,
        dir: &Path,
        draft: &Draft,
    ) -> Result<Vec<(String, String)>, HostError> {
        let numbers: Vec<u32> = self.remotes.iter().map(|remote| remote.number).collect();
        let order = |remote: &Remote| ToGuard::Dump {
            set: draft.folder.clone(),
            number: position(&numbers, remote),
        };
        let mut here = Vec::new();
        let there = ask_all(
            self.remotes,
            order,
            || {
                let log = log_of(dir, "dump", 0);
                let set = (draft.folder.as_path(), 0);
                let dumped = self.tree.dump(&images.program, set, &log, STAYS_STOPPED);
                here = dumped.map_err(|error| HostError::here(error.into_failure()))?;
                Ok(())
            },
            |remote, answer| match answer {
                FromGuard::Dumped(Ok(entries)) => Ok(entries),
                FromGuard::Dumped(Err(failure)) => Err(remote.error(failure)),
                _ => Err(out_of_order(remote)),
            },
        )?;
        Ok(std::iter::once(here).chain(there).flatten().collect())
    }

    /// Continues the processes of all hosts.
    fn go_on(&mut self) -> Result<(), HostError> {
        let done = ask_all(
            self.remotes,
            |_| ToGuard::Continue,
            || {
                self.processes.go_on();
                Ok(())
            },
            done,
        );
        done.map(|_| ())
    }

    fn seal(&mut self, draft: &Draft) -> Result<Vec<FileEntry>, HostError> {
        let mut here = Vec::new();
        let numbers: Vec<u32> = self.remotes.iter().map(|remote| remote.number).collect();
        let there = ask_all(
            self.remotes,
            |_| ToGuard::Seal,
            || {
                let files = sealed(&draft.folder, 0);
                here = files.map_err(|error| HostError::here(error.into_failure()))?;
                Ok(())
            },
            |remote, answer| match answer {
                FromGuard::Sealed(Ok(files)) => {
                    let rank = position(&numbers, remote);
                    let files = files.into_iter().map(move |(name, len, crc)| FileEntry {
                        rank,
                        name,
                        len,
                        crc,
                    });
                    Ok(files.collect::<Vec<_>>())
                }
                FromGuard::Sealed(Err(why)) => Err(remote.failed(why)),
                _ => Err(out_of_order(remote)),
            },
        )?;
        Ok(std::iter::once(here).chain(there).flatten().collect())
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

/// Stops the processes of this host. Returns their connections with others.
pub(super) fn stop(processes: &mut Processes) -> Result<Vec<Connection>, Failure> {
    let stopped = processes.stop();
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

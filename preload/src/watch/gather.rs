//! The trace of all ranks, which rank 0 receives and writes to the file.
//!
//! Clocks are compared after `MPI_Init` and before `MPI_Finalize`.
//! Messages use a duplicate of `MPI_COMM_WORLD`, so they cannot match the program's receives.
//! Rank 0 receives the events rank by rank, in messages of at most `EVENTS` events.
//! On each host without rank 0, the lowest rank answers clock queries
//! ([`mpi_report::trace::clock`]).
#![allow(unsafe_code)]

use super::{Watch, call_name};
use coll_hwbarr_foreign::library::{Handle, Library, done};
use mpi_base::clock::now_ns;
use mpi_base::node::{Event, Played};
use mpi_report::trace::clock::{Clock, Reading};
use mpi_report::trace::lane::{Lane, Trace};
use std::collections::BTreeMap;
use std::ffi::c_int;
use std::fs::File;
use std::path::Path;

/// Tag of all messages of the recorder; each pair of ranks has at most one message in flight.
const TAG: c_int = 3;
/// Number of consecutive clock queries to a host.
const QUESTIONS: u32 = 32;
/// Buffer size for a host name, in bytes.
const NAME: usize = 64;
/// Number of `u64` words of an event.
const WORDS: usize = 8;
/// Number of events per message.
const EVENTS: usize = 1 << 14;

/// Point-to-point messages of `u64` words between ranks of the job.
pub struct Wire<'a> {
    pub library: &'a Library,
    pub comm: Handle,
    pub rank: c_int,
    pub size: c_int,
}

impl Wire<'_> {
    pub fn send(&self, to: c_int, words: &[u64]) -> Result<(), String> {
        let bytes = size_of_val(words) as c_int;
        // SAFETY: the buffer is valid for the length that is passed.
        let code = unsafe {
            (self.library.functions.send)(
                words.as_ptr().cast(),
                bytes,
                self.library.constants.byte,
                to,
                TAG,
                self.comm,
            )
        };
        done(code, "MPI_Send")
    }

    pub fn recv(&self, from: c_int, words: &mut [u64]) -> Result<(), String> {
        let bytes = size_of_val(words) as c_int;
        // SAFETY: the buffer is valid for the length that is passed.
        let code = unsafe {
            (self.library.functions.recv)(
                words.as_mut_ptr().cast(),
                bytes,
                self.library.constants.byte,
                from,
                TAG,
                self.comm,
                self.library.constants.status_ignore,
            )
        };
        done(code, "MPI_Recv")
    }

    /// Gathers the host names of all ranks; every rank calls this function.
    pub fn hosts(&self) -> Result<Vec<String>, String> {
        let mine = name_of_host();
        let mut all = vec![[0u8; NAME]; self.size.unsigned_abs() as usize];
        let (bytes, byte) = (NAME as c_int, self.library.constants.byte);
        // SAFETY: the receive buffer has `NAME` bytes per rank.
        let code = unsafe {
            (self.library.functions.allgather)(
                mine.as_ptr().cast(),
                bytes,
                byte,
                all.as_mut_ptr().cast(),
                bytes,
                byte,
                self.comm,
            )
        };
        done(code, "MPI_Allgather")?;
        let text = |name: [u8; NAME]| {
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
            String::from_utf8_lossy(&name[..end]).into_owned()
        };
        Ok(all.into_iter().map(text).collect())
    }

    /// Returns true if all ranks pass true; every rank calls this function.
    pub fn agree(&self, yes: bool) -> Result<bool, String> {
        let mut all = vec![0u8; self.size.unsigned_abs() as usize];
        let byte = self.library.constants.byte;
        // SAFETY: the receive buffer has one byte per rank.
        let code = unsafe {
            (self.library.functions.allgather)(
                (&raw const yes).cast(),
                1,
                byte,
                all.as_mut_ptr().cast(),
                1,
                byte,
                self.comm,
            )
        };
        done(code, "MPI_Allgather")?;
        Ok(all.iter().all(|yes| *yes != 0))
    }

    /// Rank 0 queries the clock of the lowest rank of each other host; these ranks answer;
    /// every rank calls this function.
    pub fn compare(
        &self,
        hosts: &[String],
        clocks: &mut BTreeMap<String, Clock>,
    ) -> Result<(), String> {
        for (host, first) in others(hosts) {
            let mut words = [0];
            if self.rank == 0 {
                let clock = clocks.entry(host).or_default();
                clock.begin();
                for _ in 0..QUESTIONS {
                    let asked = now_ns();
                    self.send(first, &words)?;
                    self.recv(first, &mut words)?;
                    clock.read(Reading::between(asked, now_ns(), words[0]));
                }
            } else if self.rank == first {
                for _ in 0..QUESTIONS {
                    self.recv(0, &mut words)?;
                    self.send(0, &[now_ns()])?;
                }
            }
        }
        Ok(())
    }
}

/// Returns each host other than rank 0's, with its lowest rank.
fn others(hosts: &[String]) -> Vec<(String, c_int)> {
    let mut found: Vec<(String, c_int)> = Vec::new();
    for (rank, host) in (0..).zip(hosts) {
        if Some(host) != hosts.first() && found.iter().all(|(known, _)| known != host) {
            found.push((host.clone(), rank));
        }
    }
    found
}

fn name_of_host() -> [u8; NAME] {
    let mut name = [0; NAME];
    // SAFETY: the buffer is one byte longer than the length that is passed;
    // its last byte stays zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), NAME - 1) };
    name
}

/// Checks at the start of the job that the trace file is writable; creates no lasting file.
pub fn try_to_write(path: &Path) -> Result<(), String> {
    let was_there = path.exists();
    let opened = File::options().append(true).create(true).open(path);
    if opened.is_ok() && !was_there {
        let _ = std::fs::remove_file(path);
    }
    opened.map(drop).map_err(|error| not_written(path, &error))
}

fn not_written(path: &Path, error: &std::io::Error) -> String {
    format!("the trace cannot be written to {}: {error}", path.display())
}

/// Sends this rank's events to rank 0, which writes the file; every rank calls this function.
pub fn write(watch: &Watch, played: Played, path: &Path) -> Result<(), String> {
    let wire = watch.wire();
    let clocks = watch.clocks().clone();
    if wire.rank != 0 {
        return send(&wire, &played);
    }
    let mut trace = Trace::default();
    for (rank, host) in (0..).zip(watch.hosts.iter()) {
        let mut played = match rank {
            0 => played.clone(),
            _ => receive(&wire, rank)?,
        };
        if let Some(clock) = clocks.get(host) {
            played.events.iter_mut().for_each(|event| clock.set(event));
        }
        trace.lanes.push(Lane {
            job: 0,
            rank: rank.unsigned_abs(),
            host: host.clone(),
            played,
        });
    }
    let clocks = clocks.into_iter();
    trace.clocks = clocks
        .map(|(host, clock)| (host, clock.precision()))
        .collect();
    trace.align();
    trace
        .write(path, call_name)
        .map_err(|error| not_written(path, &error))?;
    if trace.lost() > 0 {
        printable::eprintln!(
            "portcullis: the trace has the latest events; {} earlier ones were forgotten (PORTCULLIS_MCA_mpi_base_trace=N keeps N of each rank)",
            trace.lost()
        );
    }
    Ok(())
}

fn send(wire: &Wire, played: &Played) -> Result<(), String> {
    wire.send(0, &[played.lost, played.events.len() as u64])?;
    for events in played.events.chunks(EVENTS) {
        let words: Vec<u64> = events.iter().flat_map(Event::words).collect();
        wire.send(0, &words)?;
    }
    Ok(())
}

fn receive(wire: &Wire, rank: c_int) -> Result<Played, String> {
    let mut head = [0; 2];
    wire.recv(rank, &mut head)?;
    let [lost, mut left] = head;
    let mut events = Vec::new();
    while left > 0 {
        let here = left.min(EVENTS as u64);
        let mut words = vec![[0; WORDS]; here as usize];
        wire.recv(rank, words.as_flattened_mut())?;
        events.extend(words.into_iter().filter_map(Event::of));
        left -= here;
    }
    Ok(Played { events, lost })
}

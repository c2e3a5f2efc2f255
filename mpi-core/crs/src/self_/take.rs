//! Taking a checkpoint: all ranks call [`take`] at the same point.

use super::gather::{flush, gather, share};
use crate::description::Description;
use crate::manifest::{FileEntry, Manifest, read_file};
use crate::store::{Draft, Store, rank_folder, seal};
use crate::words::{decode, encode};
use mpi_engine::comm::Comm;
use mpi_types::error::Error;
use printable::name;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

/// The inputs of one rank for a checkpoint.
pub struct Job<'a> {
    /// The communicator of all ranks of the job.
    pub comm: &'a Comm,
    /// The number of the point at which all ranks are.
    pub point: u64,
    /// The folder of checkpoints; `keep` is the number of checkpoints to keep in it.
    pub dir: &'a Path,
    pub keep: usize,
    /// The programs of the job, as the launcher describes them.
    pub programs: &'a str,
    /// The host name of this rank.
    pub host: OsString,
}

/// The outcome of a checkpoint, the same variant at all ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Taken {
    /// The number of the checkpoint, and its bytes (known to rank 0 only).
    Committed { number: u64, bytes: u64 },
    /// The checkpoint was removed; `why` is the reason at rank 0 and empty at other ranks.
    Dropped { why: String },
}

/// The status values that a rank shares: `READY` to continue, or `FAILED`.
const READY: u64 = 1;
const FAILED: u64 = 0;

/// Takes a checkpoint with the protocol at the head of `self_/mod.rs`.
/// Only rank 0 uses `store`, because rank 0 writes the manifest.
///
/// `is_quiet` checks that this rank has no active operation and no unexpected message.
/// `save` writes this rank's files. On failure both return the reason.
pub fn take(
    job: &Job<'_>,
    store: &mut Option<Store>,
    is_quiet: impl FnOnce() -> Result<(), String>,
    save: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<Taken, Error> {
    let comm = job.comm;
    comm.engine().block_on(flush(comm))?;
    let quiet = is_quiet();
    if let Some(dropped) = agree(comm, &quiet)? {
        return Ok(dropped);
    }
    let begun = (comm.rank() == 0).then(|| {
        let store = store.get_or_insert_with(|| Store::new(job.dir));
        store.begin()
    });
    let number = match &begun {
        Some(Ok(draft)) => draft.number,
        _ => 0,
    };
    let number = share(comm, number)?.first().copied().unwrap_or(0);
    if number == 0 {
        let why = match begun {
            Some(Err(error)) => error.to_string(),
            _ => String::new(),
        };
        return Ok(Taken::Dropped { why });
    }
    let draft = Draft {
        number,
        folder: job.dir.join(format!("{number}.tmp")),
    };
    let written = write(job, &draft, save);
    let text = match &written {
        Ok(files) => listed(job, files),
        Err(why) => why.clone(),
    };
    let all = share(comm, if written.is_ok() { READY } else { FAILED })?;
    let texts = gather(comm, &text)?;
    let outcome = match (comm.rank() == 0, &*store) {
        (true, Some(store)) => {
            let outcome = commit(job, store, &draft, &all, &texts);
            if outcome.is_err() {
                store.discard(&draft);
            }
            outcome
        }
        _ => Ok(0),
    };
    let committed = share(comm, if outcome.is_ok() { READY } else { FAILED })?;
    Ok(match (committed.first(), outcome) {
        (Some(&READY), Ok(bytes)) => Taken::Committed { number, bytes },
        (_, Err(why)) => Taken::Dropped { why },
        _ => Taken::Dropped { why: String::new() },
    })
}

/// Returns `None` if all ranks can continue with the checkpoint.
/// Otherwise returns the outcome, with the error sentences of the ranks that failed.
fn agree(comm: &Comm, mine: &Result<(), String>) -> Result<Option<Taken>, Error> {
    let all = share(comm, if mine.is_ok() { READY } else { FAILED })?;
    if all.iter().all(|word| *word == READY) {
        return Ok(None);
    }
    let text = mine.as_ref().err().map_or("", String::as_str);
    let texts = gather(comm, text)?;
    let why = sentences(&all, &texts);
    Ok(Some(Taken::Dropped { why }))
}

/// The maximum number of failed ranks whose sentences appear in the outcome.
const NAMED: usize = 2;

/// Joins the error sentences of the failed ranks.
fn sentences(all: &[u64], texts: &[String]) -> String {
    let failed = all.iter().zip(texts).filter(|(word, _)| **word != READY);
    let mut named: Vec<&str> = failed.map(|(_, text)| text.as_str()).collect();
    let more = named.len().saturating_sub(NAMED);
    named.truncate(NAMED);
    let more = (more > 0).then(|| format!("{more} more ranks alike"));
    let named = named.into_iter().map(str::to_owned).chain(more);
    named.collect::<Vec<_>>().join("; ")
}

/// Writes, syncs and checksums the files of this rank.
fn write(
    job: &Job<'_>,
    draft: &Draft,
    save: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<Vec<FileEntry>, String> {
    let rank = job.comm.rank();
    let folder = rank_folder(&draft.folder, rank);
    fs::create_dir(&folder).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => format!(
            "rank {rank} on {} does not see the folder {}, which rank 0 has made; the folder of checkpoints must be on a file system that all hosts share",
            name(&job.host),
            name(&draft.folder)
        ),
        _ => format!("rank {rank} cannot make the folder {}: {error}", name(&folder)),
    })?;
    save(&folder)?;
    seal(&folder, rank).map_err(|error| {
        format!(
            "rank {rank} cannot write its files in {}: {error}",
            name(&folder)
        )
    })
}

/// Returns this rank's host and file list as text for rank 0.
fn listed(job: &Job<'_>, files: &[FileEntry]) -> String {
    let mut lines = vec![encode(&job.host)];
    lines.extend(files.iter().map(|file| {
        let FileEntry {
            rank,
            name,
            len,
            crc,
        } = file;
        format!("{rank} {len} {crc:08x} {}", encode(name))
    }));
    lines.join("\n")
}

/// Commits the checkpoint at rank 0. Returns its size in bytes.
fn commit(
    job: &Job<'_>,
    store: &Store,
    draft: &Draft,
    all: &[u64],
    texts: &[String],
) -> Result<u64, String> {
    if all.iter().any(|word| *word != READY) {
        return Err(sentences(all, texts));
    }
    let Some(programs) = Description::read(job.programs) else {
        return Err("the launcher has not described the programs of the job".into());
    };
    let mut manifest = Manifest {
        component: super::NAME.into(),
        number: draft.number,
        point: job.point,
        library: env!("CARGO_PKG_VERSION").into(),
        job: programs,
        system: Vec::new(),
        hosts: Vec::new(),
        files: Vec::new(),
    };
    for (rank, text) in texts.iter().enumerate() {
        let mut lines = text.lines();
        let malformed = || format!("rank {rank} has sent a malformed list of its files");
        let host = lines.next().and_then(decode).ok_or_else(malformed)?;
        manifest.hosts.push(host);
        for line in lines {
            manifest.files.push(read_file(line).ok_or_else(malformed)?);
        }
    }
    let committed = store.commit(draft, &manifest);
    committed.map_err(|error| error.to_string())?;
    let _ = store.prune(job.keep);
    Ok(manifest.bytes())
}

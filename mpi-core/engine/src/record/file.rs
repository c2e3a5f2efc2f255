//! The recording of one rank as a file:
//! a mapped file of words, so that all stored words survive, however the rank ends.
//!
//! Format: `magic, version | rank, size, words...` ([`word`]), each word little-endian.
//! The file may end with zeroes.

use super::RecordError;
use super::word::{self, Asker, Decision};
use mpi_base::atomic::{AtomicU64, Ordering::Release};
use mpi_base::mem::{Segment, fits_file_limit};
use rustix::fs::FallocateFlags;
use std::cell::{Cell, RefCell};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

const MAGIC: u64 = u64::from_le_bytes(*b"PORTREC2");
/// Number of words before the first decision.
const HEAD: usize = 2;
const FIRST: usize = 64 << 10;

/// A recording that is being written; its file grows when needed.
pub(super) struct Writer {
    file: File,
    path: PathBuf,
    segment: RefCell<Segment>,
    next: Cell<usize>,
}

fn trouble(path: &Path, doing: &'static str) -> impl FnOnce(std::io::Error) -> RecordError {
    let path = path.display().to_string();
    move |error| RecordError::File {
        path,
        doing,
        why: error.to_string(),
    }
}

/// Allocates `bytes` bytes of a file on disk and maps them: in a sparse file, a store would raise SIGBUS if the disk is full.
fn mapped(file: &File, path: &Path, bytes: usize) -> Result<Segment, RecordError> {
    fits_file_limit(bytes as u64).map_err(|e| trouble(path, "made longer")(e.into()))?;
    rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes as u64)
        .map_err(|e| trouble(path, "made longer")(e.into()))?;
    Segment::map(file, bytes).map_err(|e| trouble(path, "mapped")(e.into()))
}

impl Writer {
    pub(super) fn create(path: &Path, rank: u32, size: u32) -> Result<Writer, RecordError> {
        if let Some(folder) = path.parent() {
            // On another host the folder may not exist.
            std::fs::create_dir_all(folder).map_err(trouble(path, "made"))?;
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(trouble(path, "made"))?;
        let segment = RefCell::new(mapped(&file, path, FIRST)?);
        let writer = Writer {
            file,
            path: path.to_owned(),
            segment,
            next: Cell::new(0),
        };
        writer.push(MAGIC)?;
        writer.push(u64::from(rank) | u64::from(size) << 32)?;
        Ok(writer)
    }

    fn push(&self, word: u64) -> Result<usize, RecordError> {
        let at = self.next.get();
        if (at + 1) * 8 > self.segment.borrow().len() {
            let longer = 2 * self.segment.borrow().len();
            *self.segment.borrow_mut() = mapped(&self.file, &self.path, longer)?;
        }
        self.set(at, word);
        self.next.set(at + 1);
        Ok(at)
    }

    /// Appends a decision. Returns the index of its first word.
    pub(super) fn append(&self, asker: Asker, decision: Decision) -> Result<usize, RecordError> {
        let at = self.push(word::encode(asker, decision, self.end()))?;
        if word::is_about_a_message(decision) {
            self.push(word::encode_tag(asker, decision, self.end()))?;
        }
        Ok(at)
    }

    /// Overwrites the decision that begins at `at` with another one of the same length.
    pub(super) fn replace(&self, at: usize, asker: Asker, decision: Decision) {
        if word::is_about_a_message(decision) {
            // The tag is stored first: if the rank is killed between the two stores, the earlier decision is valid, and its tag is not used.
            self.set(at + 1, word::encode_tag(asker, decision, at + 1));
        }
        self.set(at, word::encode(asker, decision, at));
    }

    /// Returns the index of the next word.
    pub(super) fn end(&self) -> usize {
        self.next.get()
    }

    /// Returns the number of words of decisions.
    pub(super) fn len(&self) -> usize {
        self.next.get().saturating_sub(HEAD)
    }

    fn set(&self, at: usize, word: u64) {
        if let Some(place) = self.segment.borrow().at::<AtomicU64>(at * 8) {
            // The order of the stores is kept in the file, even if the rank is killed.
            place.store(word, Release);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // An error is ignored: a file with zeroes at its end can be replayed too.
        let _ = self.file.set_len(self.next.get() as u64 * 8);
    }
}

/// Reads the decisions of a recording; returns an error if any of them is damaged.
pub(super) fn read(
    path: &Path,
    rank: u32,
    size: u32,
) -> Result<Vec<(Asker, Decision)>, RecordError> {
    let bytes = std::fs::read(path).map_err(trouble(path, "read"))?;
    let (words, rest) = bytes.as_chunks::<8>();
    let words: Vec<u64> = words.iter().map(|word| u64::from_ne_bytes(*word)).collect();
    let path = path.display().to_string();
    match words.get(..HEAD) {
        Some([MAGIC, whose]) => {
            let (recorded_rank, recorded_size) = (*whose as u32, (*whose >> 32) as u32);
            if (recorded_rank, recorded_size) != (rank, size) {
                return Err(RecordError::Other {
                    path,
                    rank: recorded_rank,
                    size: recorded_size,
                    now: (rank, size),
                });
            }
        }
        _ => return Err(RecordError::NotARecording { path }),
    }
    let damaged = |at: usize| RecordError::Damaged {
        path: path.clone(),
        byte: at * 8,
    };
    if !rest.is_empty() {
        return Err(damaged(words.len()));
    }
    word::decode(&words[HEAD..], HEAD).map_err(damaged)
}

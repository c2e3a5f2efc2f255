//! The descriptor of the node's memory file, for queries that a mapping does not offer.
//!
//! The descriptor has a number in the program's table of descriptors. A program may close it
//! (daemons close all descriptors) and open another file under the same number.
//! So each query compares the file with the identity that was recorded at the start, before and after it.
//! After a difference, the query has no result.

use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use crate::atomic::{AtomicU32, Ordering::Relaxed};
use crate::mem::PAGE;

/// Maximum number of ranges that [`MemoryFile::data`] returns.
const MOST_RANGES: usize = 64;

/// The minimum number of the descriptor, so that a program whose standard streams are closed does not get it as one of them.
const LOWEST: i32 = 64;

/// If data continue for more than this number of bytes behind the queried range, the query has read all of their page table entries.
/// The next [`SKIPPED`] queries are then skipped.
const FAR: usize = 8 << 20;
const SKIPPED: u32 = 64;

/// The node's memory file, if this process could keep a descriptor of it.
#[derive(Debug)]
pub(super) struct MemoryFile(Option<Open>);

#[derive(Debug)]
struct Open {
    descriptor: OwnedFd,
    identity: (u64, u64),
    /// Number of queries that are skipped.
    skipped: AtomicU32,
}

fn identity(file: impl AsFd) -> Option<(u64, u64)> {
    let found = rustix::fs::fstat(file).ok()?;
    Some((found.st_dev, found.st_ino))
}

impl MemoryFile {
    /// Opens the file of the descriptor `file` again.
    ///
    /// Ranks inherit `file` with its position, and each query would lock it.
    /// Without `/proc`, the descriptor is duplicated, and the ranks share the position.
    pub fn keep(file: impl AsFd) -> MemoryFile {
        let open = || {
            let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            let descriptor = rustix::fs::open(path, flags, Mode::empty())
                .and_then(|low| rustix::io::fcntl_dupfd_cloexec(low, LOWEST))
                .or_else(|_| rustix::io::fcntl_dupfd_cloexec(&file, 3))
                .ok()?;
            let identity = identity(&descriptor)?;
            Some(Open {
                descriptor,
                identity,
                skipped: AtomicU32::new(0),
            })
        };
        MemoryFile(open())
    }

    /// Returns the descriptor if it still refers to the node's memory.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        let open = self.0.as_ref()?;
        let is_same = identity(&open.descriptor) == Some(open.identity);
        is_same.then(|| open.descriptor.as_fd())
    }

    /// Returns the ranges of the file inside `pages`, a range of whole pages, that have memory
    /// or are swapped out; all other pages read as zero.
    /// Returns `None` if the kernel reports no such ranges or more than [`MOST_RANGES`],
    /// or if the query would take long, because the file has data for many pages behind the range.
    ///
    /// mincore(2) is no replacement: it reports a page that is swapped out as absent.
    /// lseek(2) reports such a page as data, because the page cache has an entry for it
    /// (`mapping_seek_hole_data` in Linux's mm/filemap.c).
    pub fn data(&self, pages: Range<usize>) -> Option<Vec<Range<usize>>> {
        let file = self.descriptor()?;
        let skipped = &self.0.as_ref()?.skipped;
        let left = skipped.load(Relaxed);
        if left > 0 {
            // If two threads count at the same time, one more query is skipped.
            skipped.store(left - 1, Relaxed);
            return None;
        }
        let mut found = Vec::new();
        let mut at = pages.start;
        while at < pages.end {
            let start = match rustix::fs::seek(file, SeekFrom::Data(at as u64)) {
                Ok(start) => usize::try_from(start).ok()? / PAGE * PAGE,
                // The file has no data behind `at`.
                Err(Errno::NXIO) => break,
                Err(_) => return None,
            };
            if start >= pages.end {
                break;
            }
            let end = rustix::fs::seek(file, SeekFrom::Hole(start as u64)).ok()?;
            let end = usize::try_from(end).ok()?.next_multiple_of(PAGE);
            if end <= start || found.len() == MOST_RANGES {
                return None;
            }
            if end.saturating_sub(pages.end) > FAR {
                skipped.store(SKIPPED, Relaxed);
            }
            found.push(start.max(pages.start)..end.min(pages.end));
            at = end;
        }
        self.descriptor().map(|_| found)
    }
}

impl Drop for MemoryFile {
    fn drop(&mut self) {
        let is_foreign = self.descriptor().is_none();
        if let Some(open) = self.0.take()
            && is_foreign
        {
            // The number now belongs to a file of the program, or to none.
            let _ = open.descriptor.into_raw_fd();
        }
    }
}

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use super::*;
    use crate::atomic::AtomicU64;
    use crate::mem::{Segment, memfd};

    #[test]
    fn pages_with_memory_are_found_by_ranges() {
        let fd = memfd("test", 16 * PAGE as u64).unwrap();
        let segment = Segment::map(&fd, 16 * PAGE).unwrap();
        let file = MemoryFile::keep(&fd);
        let pages = |range: Range<usize>| {
            let found = file.data(range.start * PAGE..range.end * PAGE).unwrap();
            let found = found.into_iter();
            found
                .map(|range| range.start / PAGE..range.end / PAGE)
                .collect::<Vec<_>>()
        };
        assert_eq!(pages(0..16), []);
        for page in [1, 2, 5, 9] {
            let word = segment.at::<AtomicU64>(page * PAGE + 8).unwrap();
            word.store(1, Relaxed);
        }
        assert_eq!(pages(0..16), [1..3, 5..6, 9..10]);
        assert_eq!(pages(2..6), [2..3, 5..6]);
        assert_eq!(pages(3..5), []);
        assert_eq!(pages(10..16), []);
    }

    #[test]
    fn many_ranges_are_not_listed() {
        let fd = memfd("test", 256 * PAGE as u64).unwrap();
        let segment = Segment::map(&fd, 256 * PAGE).unwrap();
        let file = MemoryFile::keep(&fd);
        for page in 0..=MOST_RANGES {
            let word = segment.at::<AtomicU64>(2 * page * PAGE).unwrap();
            word.store(1, Relaxed);
        }
        assert!(file.data(0..2 * MOST_RANGES * PAGE).is_some());
        assert_eq!(file.data(0..256 * PAGE), None);
    }

    #[test]
    fn a_descriptor_that_the_program_replaced_is_not_used() {
        let fd = memfd("test", PAGE as u64).unwrap();
        let file = MemoryFile::keep(&fd);
        let other = memfd("other", PAGE as u64).unwrap();
        let number = file.0.as_ref().unwrap().descriptor.as_raw_fd();
        // SAFETY: `number` belongs to `file`, which survives its replacement by its contract.
        let replaced = unsafe { libc::dup2(other.as_raw_fd(), number) };
        assert_eq!(replaced, number);
        assert_eq!(file.data(0..PAGE), None);
        drop(file);
        // SAFETY: `F_GETFD` only reads a flag.
        let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
        assert!(flags >= 0, "the program's file was closed");
        // SAFETY: this test owns the descriptor since `dup2`.
        unsafe { libc::close(number) };
    }

    #[test]
    fn after_a_query_beside_many_pages_the_next_ones_are_skipped() {
        let len = 2 * FAR;
        let fd = memfd("test", len as u64).unwrap();
        let segment = Segment::map(&fd, len).unwrap();
        for word in segment.slice::<AtomicU64>(0, len / 8).unwrap() {
            word.store(1, Relaxed);
        }
        let file = MemoryFile::keep(&fd);
        assert_eq!(file.data(0..PAGE), Some(std::iter::once(0..PAGE).collect()));
        for _ in 0..SKIPPED {
            assert_eq!(file.data(0..PAGE), None);
        }
        assert!(file.data(0..PAGE).is_some());
    }
}

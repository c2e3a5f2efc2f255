//! Anonymous memory shared by processes (memfd), and the types that may be stored in it.
//!
//! A [`Segment`] is a shared mapping of a memfd.
//! A memfd has no name in any file system, is not limited by the size of `/dev/shm`,
//! and is freed with its last descriptor and mapping,
//! so nothing remains, even if processes are killed.
//! A memfd is sparse: a page uses memory only after its first access.
//! So a layout may have unused parts.
//!
//! Other processes read and write a segment's contents at any time.
//! Safe code therefore accesses it only as types that are [`Shared`], which consist of atomics.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::Arc;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::atomic::{AtomicU32, AtomicU64};

/// The page size in bytes on every machine that this library supports.
pub const PAGE: usize = 4096;

/// Populates all pages of `len` bytes at `start` in one system call,
/// which costs less than a page fault per page.
///
/// The contents do not change. If the kernel refuses, pages are populated on their first access.
#[cfg(not(any(loom, miri)))]
pub(crate) fn populate(start: NonNull<u8>, len: usize) {
    let before = start.addr().get() % PAGE;
    let first = start.as_ptr().wrapping_sub(before);
    let len = (before + len).next_multiple_of(PAGE);
    // SAFETY: this advice changes no contents and no mapping (madvise(2), MADV_POPULATE_WRITE), so it is harmless on any range.
    let _ = unsafe { rustix::mm::madvise(first.cast::<c_void>(), len, Advice::LinuxPopulateWrite) };
}

/// Maps those pages of `len` bytes at `start` that have memory, and allocates the others.
///
/// One call maps all pages, so it costs much less than the page faults of later accesses.
/// If the kernel refuses, pages are mapped on their first access.
#[cfg(not(miri))]
pub(crate) fn map_present(start: NonNull<u8>, len: usize) {
    let before = start.addr().get() % PAGE;
    let first = start.as_ptr().wrapping_sub(before);
    let len = (before + len).next_multiple_of(PAGE);
    // SAFETY: this advice changes no contents and no mapping (madvise(2), MADV_POPULATE_READ), so it is harmless on any range.
    let _ = unsafe { rustix::mm::madvise(first.cast::<c_void>(), len, Advice::LinuxPopulateRead) };
}

/// Does nothing: Miri has no `madvise`, and its pages need no mapping.
#[cfg(miri)]
pub(crate) fn map_present(_start: NonNull<u8>, _len: usize) {}

/// A type that may be stored in memory which other processes write at any time.
///
/// # Safety
/// Every bit pattern must be a valid value, and every byte that any process writes must be inside an atomic.
pub unsafe trait Shared {}

// SAFETY: an atomic integer has no invalid bit pattern.
unsafe impl Shared for AtomicU32 {}
// SAFETY: an atomic integer has no invalid bit pattern.
unsafe impl Shared for AtomicU64 {}
// SAFETY: every element is `Shared`, and an array has no bytes beside its elements.
unsafe impl<T: Shared, const N: usize> Shared for [T; N] {}
// SAFETY: every element is `Shared`, and a slice has no bytes beside its elements.
unsafe impl<T: Shared> Shared for [T] {}

/// Returns the maximum length of a file of this process (`ulimit -f`) in bytes;
/// `None` if the length is not limited.
pub fn file_limit() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Fsize).current
}

/// Returns an error if a file of `len` bytes exceeds the limit of [`file_limit`].
///
/// The kernel sends SIGXFSZ for a longer file,
/// which ends a process without a message (setrlimit(2)),
/// so code that extends a file calls this first.
pub fn fits_file_limit(len: u64) -> Result<(), Errno> {
    match file_limit() {
        Some(limit) if len > limit => Err(Errno::FBIG),
        _ => Ok(()),
    }
}

/// Creates a sparse, zero-filled memory file (memfd) of `len` bytes, closed on `exec`.
///
/// The label appears only in `/proc/PID/maps`, for human readers.
pub fn memfd(label: &str, len: u64) -> Result<OwnedFd, Errno> {
    fits_file_limit(len)?;
    let fd = memfd_create(label, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    ftruncate(&fd, len)?;
    // The seals prevent other processes from truncating the file,
    // after which an access would raise SIGBUS.
    fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
    Ok(fd)
}

/// A shared mapping of part of a memfd; unmapped when dropped.
#[derive(Debug)]
pub struct Segment {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a segment is an address range that stays mapped until drop. Its contents are accessed as
// atomics (`Shared`), or by unsafe code with a safety argument of its own.
unsafe impl Send for Segment {}
// SAFETY: the contents are accessed as atomics or by such unsafe code (see `Send`),
// and no method changes the segment's own fields.
unsafe impl Sync for Segment {}

impl Segment {
    /// Maps the first `len` bytes of `fd` for reading and writing, without reserving memory for them.
    pub fn map(fd: impl AsFd, len: usize) -> Result<Segment, Errno> {
        // Access to a page past the end of the file would raise SIGBUS;
        // this check returns an error instead.
        let size = rustix::fs::fstat(&fd)?.st_size;
        if len == 0 || u64::try_from(size).unwrap_or(0) < len as u64 {
            return Err(Errno::INVAL);
        }
        // SAFETY: the kernel chooses a free address range, so no existing memory is affected.
        let base = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                fd,
                0,
            )
        }?;
        let base = NonNull::new(base.cast::<u8>()).ok_or(Errno::FAULT)?;
        Ok(Segment { base, len })
    }

    /// Returns the length of the mapping in bytes; its file may be longer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always returns false, because an empty range cannot be mapped.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Maps the last page of this segment and the next `more` bytes of the file;
    /// `None` if the kernel refuses.
    pub(crate) fn extended(&self, more: usize) -> Option<Segment> {
        let last = self.range(self.len.checked_sub(PAGE)?, PAGE)?;
        let len = PAGE.checked_add(more)?;
        // SAFETY: with an old length of 0, mremap(2) keeps the old mapping. It maps the same
        // shared file one more time, at addresses that the kernel chooses.
        let base = unsafe {
            rustix::mm::mremap(
                last.as_ptr().cast::<c_void>(),
                0,
                len,
                rustix::mm::MremapFlags::MAYMOVE,
            )
        };
        let base = NonNull::new(base.ok()?.cast::<u8>())?;
        Some(Segment { base, len })
    }

    /// Returns the address of `len` bytes at `offset`; `None` outside of the segment.
    pub fn range(&self, offset: usize, len: usize) -> Option<NonNull<u8>> {
        let end = offset.checked_add(len)?;
        if end > self.len {
            return None;
        }
        // SAFETY: offset <= end <= self.len, so the result stays in the mapping.
        Some(unsafe { self.base.add(offset) })
    }

    /// Returns the `T` at `offset`; `None` if the value is not within the segment or not aligned.
    pub fn at<T: Shared>(&self, offset: usize) -> Option<&T> {
        self.slice(offset, 1).map(|s| &s[0])
    }

    /// Returns the `count` values of `T` from `offset` on;
    /// `None` if the values are not within the segment or not aligned.
    pub fn slice<T: Shared>(&self, offset: usize, count: usize) -> Option<&[T]> {
        let p = self.range(offset, size_of::<T>().checked_mul(count)?)?;
        let p = p.cast::<T>();
        if !p.is_aligned() {
            return None;
        }
        // SAFETY: `range` has checked the bounds, and the line above the alignment.
        // `Shared` ensures that every bit pattern is valid and all writes are atomic.
        Some(unsafe { std::slice::from_raw_parts(p.as_ptr(), count) })
    }

    /// Returns the memory of all whole pages in the range to the kernel; they then read as zero.
    ///
    /// # Safety
    /// No process may use the range until it is allocated again.
    pub unsafe fn punch_hole(&self, offset: usize, len: usize) -> Result<(), Errno> {
        let first = offset.checked_next_multiple_of(PAGE).ok_or(Errno::INVAL)?;
        let end = offset.checked_add(len).ok_or(Errno::INVAL)?;
        let last = end / PAGE * PAGE;
        if first >= last {
            return Ok(());
        }
        let p = self.range(first, last - first).ok_or(Errno::INVAL)?;
        // SAFETY: `range` has checked that the range is inside the mapping,
        // and by this function's contract no process uses it.
        unsafe {
            rustix::mm::madvise(
                p.as_ptr().cast::<c_void>(),
                last - first,
                Advice::LinuxRemove,
            )
        }
    }
}

/// A reference to a `T` or a slice of `T` in a segment, which keeps the segment mapped.
#[derive(Debug)]
pub struct Held<T: ?Sized> {
    at: NonNull<T>,
    segment: Arc<Segment>,
}

// SAFETY: `Held` returns only `&T` of a `Shared` type, which any thread may use.
unsafe impl<T: Shared + ?Sized> Send for Held<T> {}
// SAFETY: `Held` returns only `&T` of a `Shared` type, which any thread may use.
unsafe impl<T: Shared + ?Sized> Sync for Held<T> {}

impl<T: Shared> Held<T> {
    /// Returns the `T` at `offset` of `segment`; `None` if it is outside or not aligned.
    pub fn new(segment: &Arc<Segment>, offset: usize) -> Option<Held<T>> {
        Some(Held {
            at: NonNull::from(segment.at::<T>(offset)?),
            segment: Arc::clone(segment),
        })
    }
}

impl<T: Shared> Held<[T]> {
    /// Returns the `count` values of `T` from `offset` of `segment` on;
    /// `None` if the values are not within the segment or not aligned.
    pub fn slice(segment: &Arc<Segment>, offset: usize, count: usize) -> Option<Held<[T]>> {
        Some(Held {
            at: NonNull::from(segment.slice::<T>(offset, count)?),
            segment: Arc::clone(segment),
        })
    }
}

impl<T: Shared + ?Sized> Deref for Held<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: `at` came from a reference into `segment` (`new` and `slice`),
        // which stays mapped because self has a reference to it.
        unsafe { self.at.as_ref() }
    }
}

impl<T: ?Sized> Clone for Held<T> {
    fn clone(&self) -> Held<T> {
        Held {
            at: self.at,
            segment: Arc::clone(&self.segment),
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: `map` or `extended` mapped the range,
        // and no borrow from the segment outlives the segment.
        // If the call fails, the range stays mapped until the process ends, which is harmless.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast::<c_void>(), self.len) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atomic::Ordering::Relaxed;

    #[test]
    fn two_mappings_of_one_memfd_see_the_same_memory() {
        let fd = memfd("test", 1 << 30).unwrap();
        let a = Segment::map(&fd, 1 << 30).unwrap();
        let b = Segment::map(&fd, 1 << 30).unwrap();
        a.at::<AtomicU64>(512 << 20).unwrap().store(7, Relaxed);
        assert_eq!(b.at::<AtomicU64>(512 << 20).unwrap().load(Relaxed), 7);
    }

    #[test]
    fn nothing_outside_the_segment_or_misaligned_is_handed_out() {
        let fd = memfd("test", 8192).unwrap();
        let s = Segment::map(&fd, 8192).unwrap();
        assert!(s.range(8192, 0).is_some());
        assert!(s.range(8192, 1).is_none());
        assert!(s.range(usize::MAX, 2).is_none());
        assert!(s.at::<AtomicU64>(8188).is_none());
        assert!(s.at::<AtomicU64>(4).is_none());
        assert!(s.slice::<AtomicU64>(0, usize::MAX).is_none());
        assert!(Segment::map(&fd, 8193).is_err());
    }

    #[test]
    fn a_punched_hole_reads_as_zero_and_frees_its_memory() {
        let len = 1 << 20;
        let fd = memfd("test", len as u64).unwrap();
        let s = Segment::map(&fd, len).unwrap();
        for w in s.slice::<AtomicU64>(0, len / 8).unwrap() {
            w.store(1, Relaxed);
        }
        let before = rustix::fs::fstat(&fd).unwrap().st_blocks;
        // SAFETY: only this test uses this segment.
        unsafe { s.punch_hole(100, len - 200) }.unwrap();
        let after = rustix::fs::fstat(&fd).unwrap().st_blocks;
        assert!(after < before);
        let words = s.slice::<AtomicU64>(0, len / 8).unwrap();
        assert_eq!(words[0].load(Relaxed), 1);
        assert_eq!(words[PAGE / 8].load(Relaxed), 0);
    }
}

//! Memory trimming: when the launcher becomes idle, it returns memory that only the start needed.
//!
//! While the ranks run, mpirun mostly sleeps beside programs that need the memory.
//! Most of its memory is pages of its own file: option parsing, help, rank mapping.
//! These pages are not used again.
//! So each launcher process does the following once, after [`QUIET`] without an event:
//! * it returns free heap pages to the kernel;
//! * it drops the stack pages below the current frame, which option parsing has filled;
//! * it unmaps the pages of its file's read-only segments (`madvise(2)`, `MADV_DONTNEED`).
//!   A page that is needed later is mapped again from the page cache.
//!
//! A launcher under a debugger keeps its pages, since breakpoints are written into them.
#![allow(unsafe_code)]

use rustix::event::Timespec;
use std::ops::Range;

/// The idle time after which memory is trimmed.
const QUIET: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The trimming state of one launcher process.
#[derive(Debug, Default)]
pub struct MemoryTrim {
    done: bool,
}

impl MemoryTrim {
    /// Returns the poll timeout: `pause`, or at most [`QUIET`] until memory has been trimmed.
    pub fn pause(&self, pause: Option<Timespec>) -> Option<Timespec> {
        match self.done {
            true => pause,
            false => Some(pause.map_or(QUIET, |pause| pause.min(QUIET))),
        }
    }

    /// Trims the memory once; called if no event occurred during [`pause`](Self::pause).
    pub fn trim_once(&mut self) {
        if !std::mem::replace(&mut self.done, true) && !is_traced() {
            trim();
        }
    }
}

/// Returns true if a debugger is attached to this process.
fn is_traced() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| {
        let tracer = status
            .lines()
            .find_map(|line| line.strip_prefix("TracerPid:"));
        tracer.is_some_and(|pid| pid.trim() != "0")
    })
}

fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: malloc_trim releases only free heap memory.
    unsafe {
        libc::malloc_trim(0);
    }
    // SAFETY: the stack has no data below the frames of this function and its callees.
    // No signal handler runs there, since signals are read from a signalfd.
    // The kernel keeps a gap of 1 MiB below a stack (`stack_guard_gap`): no other mapping is hit.
    unsafe { drop_pages(stack_below()) };
    for pages in unwritable() {
        // SAFETY: [`unwritable`] returns private read-only mappings of this program's file.
        // So the kernel restores each page with the same bytes at the next access.
        unsafe { drop_pages(pages) };
    }
}

/// Drops pages; the kernel maps them again at the next access. A failure has no effect.
///
/// # Safety
/// The program must tolerate the new content of the pages: zeroes, or the bytes of the mapped file.
unsafe fn drop_pages(pages: Range<usize>) {
    // SAFETY: by this function's contract the content of the pages may be replaced.
    unsafe {
        libc::madvise(
            pages.start as *mut libc::c_void,
            pages.len(),
            libc::MADV_DONTNEED,
        );
    }
}

/// A stack size in bytes that covers the following calls and the ABI's red zone.
const FRAMES: usize = 8 << 10;

/// The maximum stack depth in bytes that any function of the launcher has used.
const DEPTH: usize = 256 << 10;

/// Returns the range of whole pages of this thread's stack below all current frames.
fn stack_below() -> Range<usize> {
    let page = rustix::param::page_size();
    let here = (&raw const page).addr() / page * page;
    here.saturating_sub(DEPTH)..here.saturating_sub(FRAMES)
}

/// Returns the page ranges of this program's read-only segments.
///
/// Memory that the dynamic linker protects (`PT_GNU_RELRO`) is in a writable segment.
fn unwritable() -> Vec<Range<usize>> {
    unsafe extern "C" fn collect(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        found: *mut libc::c_void,
    ) -> libc::c_int {
        let page = rustix::param::page_size();
        // SAFETY: dl_iterate_phdr passes a valid `info` whose table has `dlpi_phnum` entries.
        // `found` is the pointer to the vector in the call below.
        let (info, table, found) = unsafe {
            let info = &*info;
            (
                info,
                std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)),
                &mut *found.cast::<Vec<Range<usize>>>(),
            )
        };
        let segments = table
            .iter()
            .filter(|header| header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_W == 0);
        found.extend(segments.map(|header| {
            let start = (info.dlpi_addr + header.p_vaddr) as usize;
            let end = start + header.p_memsz as usize;
            start / page * page..end.next_multiple_of(page)
        }));
        // Stops after the program itself; libraries are shared with other processes.
        1
    }
    let mut found = Vec::new();
    // SAFETY: this thread calls `collect` before dl_iterate_phdr returns, while `found` lives.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut found).cast()) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    /// Serialises the tests that trim memory or measure it, since tests run concurrently.
    static MEMORY: Mutex<()> = Mutex::new(());

    /// Returns the resident size of the segments of [`unwritable`] in KiB.
    fn resident() -> u64 {
        let segments = unwritable();
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let (mut counts, mut sum) = (false, 0);
        for line in smaps.lines() {
            let address = line.split_once('-').map(|(start, _)| start);
            if let Some(Ok(start)) = address.map(|a| usize::from_str_radix(a, 16)) {
                counts = segments.iter().any(|pages| pages.contains(&start));
            } else if let (true, Some(rss)) = (counts, line.strip_prefix("Rss:")) {
                let kib = rss.trim().trim_end_matches(" kB");
                sum += kib.parse::<u64>().unwrap();
            }
        }
        sum
    }

    #[test]
    fn code_that_was_looked_at_is_not_kept() {
        let _alone = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
        for at in unwritable().into_iter().flatten().step_by(64) {
            // SAFETY: `unwritable` returns addresses in readable segments of this program.
            unsafe { std::ptr::with_exposed_provenance::<u8>(at).read_volatile() };
        }
        let before = resident();
        trim();
        let after = resident();
        assert!(after < before / 2, "{after} KiB of {before} are left");
    }

    #[test]
    fn code_is_given_back_and_what_can_be_written_is_not() {
        let found = unwritable();
        let inside = |address: usize| found.iter().any(|pages| pages.contains(&address));
        static mut WRITABLE: u64 = 7;
        assert!(inside(trim as *const () as usize));
        assert!(!inside((&raw const WRITABLE) as usize));
        assert!(!inside(found.as_ptr() as usize));
    }

    #[test]
    fn the_stack_is_dropped_only_below_every_frame() {
        let mine = 0u8;
        let range = stack_below();
        assert!(range.end < (&raw const mine).addr() && range.start < range.end);
    }

    #[test]
    fn a_program_goes_on_without_the_pages_it_has_given_back() {
        let _alone = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
        let before: Vec<String> = (0..1000).map(|n| format!("{n:x}")).collect();
        trim();
        let after: Vec<String> = (0..1000).map(|n| format!("{n:x}")).collect();
        assert_eq!(before, after);
    }

    #[test]
    fn waiting_is_cut_short_until_memory_was_given_back_once() {
        let long = Timespec {
            tv_sec: 7,
            tv_nsec: 0,
        };
        let mut memory_trim = MemoryTrim::default();
        assert_eq!(memory_trim.pause(None), Some(QUIET));
        assert_eq!(memory_trim.pause(Some(long)), Some(QUIET));
        let _alone = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
        memory_trim.trim_once();
        assert_eq!(memory_trim.pause(None), None);
        assert_eq!(memory_trim.pause(Some(long)), Some(long));
    }
}

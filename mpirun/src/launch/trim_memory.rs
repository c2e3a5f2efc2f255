//! Memory trimming: at the first quiet moment the launcher returns to the kernel the memory that only the start of a job needed.
//!
//! Once the ranks run, mpirun mostly sleeps, for days perhaps, beside programs that need the memory.
//! Most of its memory then are pages of its own file: option parsing, help, mapping ranks to hosts; they are not used again.
//! So each process of the launcher, once it has waited [`QUIET`] without an event, does this once:
//! * returns free pages of the heap to the kernel;
//! * drops the pages of the stack below the current frame, which parsing the options has filled;
//! * unmaps the pages of its file's read-only segments, code and constants (`madvise(2)`, `MADV_DONTNEED`).
//!   A page that is needed after all is mapped again from the kernel's cache, as it was the first time.
//!
//! A launcher under a debugger keeps its pages, as breakpoints are written into them.
#![allow(unsafe_code)]

use rustix::event::Timespec;
use std::ops::Range;

/// How long no event must have occurred.
const QUIET: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// Whether a process of the launcher has trimmed its memory.
#[derive(Debug, Default)]
pub struct MemoryTrim {
    done: bool,
}

impl MemoryTrim {
    /// Returns how long to wait for an event, where the caller would wait for `pause`.
    pub fn pause(&self, pause: Option<Timespec>) -> Option<Timespec> {
        match self.done {
            true => pause,
            false => Some(pause.map_or(QUIET, |pause| pause.min(QUIET))),
        }
    }

    /// No event occurred during [`pause`](Self::pause): trims the memory, once.
    pub fn trim_once(&mut self) {
        if !std::mem::replace(&mut self.done, true) && !is_traced() {
            trim();
        }
    }
}

/// Returns true if a debugger is attached.
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
    // SAFETY: malloc_trim returns to the kernel only what is free.
    unsafe {
        libc::malloc_trim(0);
    }
    // SAFETY: the stack holds nothing below the frame of this function and its callees. No signal handler runs there, as signals
    // are read from a file. The kernel keeps a gap of 1 MiB below a stack (`stack_guard_gap`), so nothing else is in the range.
    unsafe { drop_pages(stack_below()) };
    for pages in unwritable() {
        // SAFETY: [`unwritable`] returns private mappings of this program's file that no code can write,
        // so each page comes back with the same bytes at its next use.
        unsafe { drop_pages(pages) };
    }
}

/// Drops the pages, which are mapped anew at their next use; a failure has no effect.
///
/// # Safety
/// The program must tolerate the pages' content after the new mapping: zeroes, or the bytes of their file.
unsafe fn drop_pages(pages: Range<usize>) {
    // SAFETY: the caller promises by this function's contract that the pages may be replaced.
    unsafe {
        libc::madvise(
            pages.start as *mut libc::c_void,
            pages.len(),
            libc::MADV_DONTNEED,
        );
    }
}

/// More stack than the following system calls need, and more than the red zone of the ABI.
const FRAMES: usize = 8 << 10;

/// No function has used more stack than this.
const DEPTH: usize = 256 << 10;

/// Returns whole pages of this thread's stack that no function uses now.
fn stack_below() -> Range<usize> {
    let page = rustix::param::page_size();
    let here = (&raw const page).addr() / page * page;
    here.saturating_sub(DEPTH)..here.saturating_sub(FRAMES)
}

/// Returns the memory of this program's segments that are not writable, in whole pages.
///
/// Memory that the dynamic linker writes and then protects (`PT_GNU_RELRO`) belongs to a writable segment.
fn unwritable() -> Vec<Range<usize>> {
    unsafe extern "C" fn collect(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        found: *mut libc::c_void,
    ) -> libc::c_int {
        let page = rustix::param::page_size();
        // SAFETY: dl_iterate_phdr passes a valid `info`, whose table has `dlpi_phnum` entries, and the pointer to `found` that it got
        // below.
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
        // The program itself is the first entry; its libraries, if any, are shared with other processes anyway.
        1
    }
    let mut found = Vec::new();
    // SAFETY: `collect` is called before this returns, with a pointer to a live vector, by this thread.
    unsafe { libc::dl_iterate_phdr(Some(collect), (&raw mut found).cast()) };
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Mutex, PoisonError};

    /// Held by the test that trims memory or reads what is left, as tests run concurrently.
    static MEMORY: Mutex<()> = Mutex::new(());

    /// The resident part of the memory of [`unwritable`], in KiB.
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
            // SAFETY: the address is in a readable segment of this program.
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

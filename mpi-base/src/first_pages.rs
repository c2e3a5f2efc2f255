//! Maps pages that the first calls of most programs use, at the start of a process.
//!
//! A program calls most functions a few times, so the page faults of their first calls matter:
//! a fault takes 3 to 8 us on a virtual machine, longer than most calls.
//! The start of a process maps most of the library's code already.
//! [`map_code`] maps the rest, and [`populate_heap`] allocates memory for small objects.
#![allow(unsafe_code)]

use std::hint::black_box;
use std::ops::Range;
use std::ptr::NonNull;

use crate::mem;

/// The kernel maps the pages of a file that are in memory in aligned ranges of this many bytes
/// around a fault (`fault_around_bytes` in Linux's mm/memory.c).
const FAULT_AROUND: usize = 64 << 10;

/// Maximum length in bytes of code that is mapped; only builds without optimisation are longer.
const LONGEST_CODE: usize = 16 << 20;

/// Number of bytes of the heap that are populated.
const HEAP: usize = 64 << 10;

/// Maps the code of the program or library that contains this function.
///
/// Code that is in memory takes 2 to 3 us per 64 KiB. Other processes use the same memory.
pub fn map_code() {
    let Some(code) = code_around((map_code as fn()) as usize) else {
        return;
    };
    if code.len() > LONGEST_CODE {
        return;
    }
    let aligned = code.start / FAULT_AROUND * FAULT_AROUND;
    for start in (aligned..code.end).step_by(FAULT_AROUND) {
        let byte = std::ptr::with_exposed_provenance::<u8>(start.max(code.start));
        // SAFETY: the byte is inside a readable segment of this library, which stays loaded.
        black_box(unsafe { byte.read_volatile() });
    }
}

/// Populates memory of the heap that later allocations use.
///
/// The memory is allocated and freed at once. The allocator returns freed memory to the kernel
/// only if much more of it is free (128 KiB by default, `M_TRIM_THRESHOLD` in mallopt(3)).
pub fn populate_heap() {
    let mut memory: Vec<u8> = Vec::with_capacity(HEAP);
    if let Some(start) = NonNull::new(black_box(memory.as_mut_ptr())) {
        mem::populate(start, HEAP);
    }
    drop(black_box(memory));
}

/// Returns the readable, executable segment that contains an address.
fn code_around(address: usize) -> Option<Range<usize>> {
    struct Search {
        address: usize,
        found: Option<Range<usize>>,
    }
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _size: libc::size_t,
        search: *mut libc::c_void,
    ) -> libc::c_int {
        // SAFETY: dl_iterate_phdr passes a valid `info` whose table has `dlpi_phnum` entries.
        // `search` is the pointer to the local variable in the call below.
        let (info, table, search) = unsafe {
            let info = &*info;
            (
                info,
                std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)),
                &mut *search.cast::<Search>(),
            )
        };
        let mut segments = table.iter().filter_map(|header| {
            let start = usize::try_from(info.dlpi_addr.wrapping_add(header.p_vaddr)).ok()?;
            let end = start.checked_add(usize::try_from(header.p_memsz).ok()?)?;
            let rights = libc::PF_R | libc::PF_X;
            let is_code = header.p_type == libc::PT_LOAD && header.p_flags & rights == rights;
            is_code.then_some(start..end)
        });
        search.found = segments.find(|segment| segment.contains(&search.address));
        libc::c_int::from(search.found.is_some())
    }
    let mut search = Search {
        address,
        found: None,
    };
    // SAFETY: this thread calls `visit` before dl_iterate_phdr returns, while `search` lives.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_around_a_function_is_found() {
        let address = (map_code as fn()) as usize;
        let code = code_around(address).unwrap();
        assert!(code.contains(&address));
        assert_eq!(code_around(16), None);
        map_code();
    }

    #[test]
    fn the_heap_can_be_populated_again_and_again() {
        for _ in 0..3 {
            populate_heap();
        }
    }
}

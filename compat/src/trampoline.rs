//! Functions that are made while the program runs: each is its own address and knows its context.
//!
//! Operators and error handlers of other libraries are called without a word that says which they are. A function made here
//! calls another one with the context as the fifth argument. Its code is one of a page of equal stubs in this library's file,
//! which is mapped again for each page of functions; what a stub calls lies in the page of data behind it. So there is no
//! memory that can be written and executed, and no limit. A function lives as long as the process.
#![allow(unsafe_code)]

use crate::lock::lock;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Mutex;

/// The bytes of a stub, of a page of stubs, and from a stub to its words.
const STUB: usize = 16;
#[cfg(target_arch = "x86_64")]
const PAGE: usize = 4096;
#[cfg(target_arch = "aarch64")]
const PAGE: usize = 65536;

#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".section .text.portcullis_stubs, \"ax\", @progbits",
    ".p2align 12",
    ".globl portcullis_stubs",
    ".hidden portcullis_stubs",
    "portcullis_stubs:",
    ".rept 256",
    "2:",
    "mov r8, qword ptr [rip + 2b + 4096]",
    "jmp qword ptr [rip + 2b + 4104]",
    ".p2align 4",
    ".endr",
    ".text",
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".section .text.portcullis_stubs, \"ax\", @progbits",
    ".p2align 16",
    ".globl portcullis_stubs",
    ".hidden portcullis_stubs",
    "portcullis_stubs:",
    ".rept 4096",
    "2:",
    "ldr x4, 2b + 65536",
    "ldr x16, 2b + 65544",
    "br x16",
    "nop",
    ".endr",
    ".text",
);

unsafe extern "C" {
    #[link_name = "portcullis_stubs"]
    static STUBS: [u8; PAGE];
}

/// A page of functions, of which the first `used` are made.
struct Page {
    stubs: usize,
    used: usize,
}

static LAST: Mutex<Option<Page>> = Mutex::new(None);

/// The address of a function that takes up to four arguments and calls `target` with these and the context.
pub fn make(target: usize, context: usize) -> io::Result<usize> {
    let mut last = lock(&LAST);
    if last.as_ref().is_none_or(|page| page.used == PAGE / STUB) {
        *last = Some(Page {
            stubs: map()?,
            used: 0,
        });
    }
    let Some(page) = last.as_mut() else {
        return Err(io::Error::other("no page"));
    };
    let stub = page.stubs + page.used * STUB;
    page.used += 1;
    let words = std::ptr::with_exposed_provenance_mut::<[usize; 2]>(stub + PAGE);
    // SAFETY: the words of this stub, in the page behind it, which no other code uses and no thread runs yet.
    unsafe { words.write([context, target]) };
    Ok(stub)
}

/// Maps the stubs once more, with a page of data behind them.
fn map() -> io::Result<usize> {
    let (file, offset) = own_file()?;
    // SAFETY: a fresh mapping, which nothing refers to yet.
    let room = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            3 * PAGE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if room == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // Where the system's pages are smaller, stubs still begin at a multiple of ours.
    let stubs = room.expose_provenance().next_multiple_of(PAGE);
    // SAFETY: replaces pages of the mapping above.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::with_exposed_provenance_mut(stubs),
            PAGE,
            libc::PROT_READ | libc::PROT_EXEC,
            libc::MAP_PRIVATE | libc::MAP_FIXED,
            file.as_raw_fd(),
            offset,
        )
    };
    if mapped == libc::MAP_FAILED {
        let error = io::Error::last_os_error();
        // SAFETY: the mapping above, which no code uses.
        unsafe { libc::munmap(room, 3 * PAGE) };
        return Err(error);
    }
    Ok(stubs)
}

/// What the loader says of the file that holds the stubs.
struct Search {
    address: usize,
    found: Option<(std::path::PathBuf, i64)>,
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: the loader's description of a loaded file, and our own search.
    unsafe {
        let (info, search) = (&*info, &mut *search.cast::<Search>());
        for i in 0..usize::from(info.dlpi_phnum) {
            let segment = &*info.dlpi_phdr.add(i);
            let begin = info.dlpi_addr as usize + segment.p_vaddr as usize;
            let inside = search.address.wrapping_sub(begin);
            if segment.p_type == libc::PT_LOAD && inside < segment.p_filesz as usize {
                let name = std::ffi::CStr::from_ptr(info.dlpi_name);
                let name = match name.is_empty() {
                    true => "/proc/self/exe".into(),
                    false => {
                        use std::os::unix::ffi::OsStrExt as _;
                        std::ffi::OsStr::from_bytes(name.to_bytes()).into()
                    }
                };
                search.found = Some((name, segment.p_offset as i64 + inside as i64));
                return 1;
            }
        }
    }
    0
}

/// The file that the stubs were loaded from, and where they lie in it.
fn own_file() -> io::Result<(File, i64)> {
    let mut search = Search {
        address: (&raw const STUBS).addr(),
        found: None,
    };
    // SAFETY: `visit` gets the search for the length of the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    let (name, offset) = search
        .found
        .ok_or_else(|| io::Error::other("the loader does not know this library"))?;
    Ok((File::open(name)?, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn sum(a: usize, b: usize, c: usize, d: usize, context: usize) -> usize {
        a + b + c + d + context
    }

    #[test]
    fn thousands_of_functions_each_know_their_context() {
        let target = sum as *const c_void;
        let made: Vec<usize> = (0..5000)
            .map(|context| make(target.expose_provenance(), context * 10).unwrap())
            .collect();
        for (i, function) in made.iter().enumerate() {
            type Function = unsafe extern "C" fn(usize, usize, usize, usize) -> usize;
            let function = std::ptr::with_exposed_provenance::<c_void>(*function);
            // SAFETY: made above, of this type.
            let sum = unsafe {
                let function: Function = std::mem::transmute(function);
                function(1, 2, 3, 4)
            };
            assert_eq!(sum, 10 + i * 10);
        }
    }
}

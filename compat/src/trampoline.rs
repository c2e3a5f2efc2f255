//! Trampolines: functions created at run time, each with its own address and context.
//!
//! MPICH and Open MPI pass no context argument to operators and error handlers.
//! A trampoline calls a target function and passes a context as the fifth argument.
//! Its code is a stub that reads the target and the context from the page after the stub's page.
//! This library's file has one page of identical stubs, which is mapped once more
//! for every `PAGE / STUB` trampolines, each time with a page of data after it.
//! So no memory is both writable and executable, and the number of trampolines is unlimited.
//! A trampoline exists until process exit.
#![allow(unsafe_code)]

use crate::lock::lock;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::sync::Mutex;

/// The sizes of a stub and of a page of stubs, in bytes. A stub's data are `PAGE` bytes after it.
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

/// A mapped page of stubs. The first `used` stubs are trampolines.
struct Page {
    stubs: usize,
    used: usize,
}

static LAST: Mutex<Option<Page>> = Mutex::new(None);

/// Makes a trampoline, a function with up to four arguments, and returns its address.
/// The function calls `target` with its arguments, and with `context` as the fifth argument.
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
    // SAFETY: these are the data of this stub, in the page that `map` has mapped after the stubs.
    // `used` only increases, so each stub is used once, and no thread executes the stub yet.
    unsafe { words.write([context, target]) };
    Ok(stub)
}

/// Maps the page of stubs once more, with a data page after it. Returns the address of the stubs.
fn map() -> io::Result<usize> {
    let (file, offset) = own_file()?;
    // SAFETY: an anonymous mapping at an address chosen by the kernel replaces no other mapping.
    let buffer = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            3 * PAGE,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    if buffer == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // The stubs must begin at a multiple of [`PAGE`], even if system pages are smaller.
    let stubs = buffer.expose_provenance().next_multiple_of(PAGE);
    // SAFETY: this replaces one page of the mapping above.
    // The mapping has three pages, so it contains two aligned pages.
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
        // SAFETY: this unmaps the mapping above, to which no pointer is kept.
        unsafe { libc::munmap(buffer, 3 * PAGE) };
        return Err(error);
    }
    Ok(stubs)
}

/// The search for the loaded file that contains `address`, and the offset in that file.
struct Search {
    address: usize,
    found: Option<(std::path::PathBuf, i64)>,
}

unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> c_int {
    // SAFETY: `info` is the loader's description of a loaded file, valid during the callback.
    // `search` is the pointer that `own_file` passes.
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

/// Returns the file from which the stubs were loaded, and the offset of the stubs in the file.
fn own_file() -> io::Result<(File, i64)> {
    let mut search = Search {
        address: (&raw const STUBS).addr(),
        found: None,
    };
    // SAFETY: `visit` uses the pointer to `search` only during the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    let (name, offset) = search
        .found
        .ok_or_else(|| io::Error::other("the loader does not know this library"))?;
    Ok((File::open(name)?, offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C-unwind" fn sum(
        a: usize,
        b: usize,
        c: usize,
        d: usize,
        context: usize,
    ) -> usize {
        a + b + c + d + context
    }

    #[test]
    fn thousands_of_functions_each_know_their_context() {
        let target = sum as *const c_void;
        let made: Vec<usize> = (0..5000)
            .map(|context| make(target.expose_provenance(), context * 10).unwrap())
            .collect();
        for (i, function) in made.iter().enumerate() {
            type Function = unsafe extern "C-unwind" fn(usize, usize, usize, usize) -> usize;
            let function = std::ptr::with_exposed_provenance::<c_void>(*function);
            // SAFETY: `make` has returned the function, whose target has this signature.
            let sum = unsafe {
                let function: Function = std::mem::transmute(function);
                function(1, 2, 3, 4)
            };
            assert_eq!(sum, 10 + i * 10);
        }
    }
}

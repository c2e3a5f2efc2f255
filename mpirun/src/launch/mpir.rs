//! MPIR process table, by which debuggers find a job's processes (MPIR acquisition interface 1.1).
//!
//! TotalView, DDT, STAT, LaunchMON and gdb scripts attach to mpirun and read this table.
//! A debugger knows only the process that the user started, the front end.
//! The debugger reads the front end's variables by name.
//! The supervisor, which starts the ranks, writes the table to a memfd that both processes share.
//! The supervisor then sends one byte to the front end.
//! The table is always filled, so that a debugger can attach to a job that hangs.
//!
//! A debugger that starts mpirun sets `MPIR_being_debugged` before `main`;
//! the supervisor inherits the value.
//! The supervisor then answers no PMI request until the front end has returned from
//! `MPIR_Breakpoint`.
//! Until then every rank of this host waits in `MPI_Init`.
//!
//! Debuggers find the table's layout by the name of its type.
//! So this file emits DWARF for the type, independent of the program's own debug information.
#![allow(unsafe_code, non_upper_case_globals)]

use rustix::fd::OwnedFd;
use rustix::fs::MemfdFlags;
use std::ffi::{CString, c_char, c_int};
use std::hint::black_box;
use std::io;
use std::os::fd::AsFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering::Relaxed};

/// A table entry: one process, in the order of ranks in `MPI_COMM_WORLD`.
#[derive(Debug)]
#[repr(C)]
struct ProcDesc {
    host_name: *const c_char,
    executable_name: *const c_char,
    pid: c_int,
}

/// The process table; null until all ranks have started.
#[unsafe(no_mangle)]
static MPIR_proctable: AtomicPtr<ProcDesc> = AtomicPtr::new(ptr::null_mut());
/// The number of entries of the process table.
#[unsafe(no_mangle)]
static MPIR_proctable_size: AtomicI32 = AtomicI32::new(0);
/// Nonzero if a debugger has started this program; the debugger sets it.
#[unsafe(no_mangle)]
static MPIR_being_debugged: AtomicI32 = AtomicI32::new(0);
/// The reason of the last call of `MPIR_Breakpoint`: [`SPAWNED`] or [`ABORTING`].
#[unsafe(no_mangle)]
static MPIR_debug_state: AtomicI32 = AtomicI32::new(0);
/// The message that a debugger shows if the job aborts.
#[unsafe(no_mangle)]
static MPIR_debug_abort_string: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());
/// The presence of this symbol means that this process is not a rank itself.
#[unsafe(no_mangle)]
static MPIR_i_am_starter: AtomicI32 = AtomicI32::new(0);
/// The presence of this symbol means that ranks run on if the debugger does not attach to them.
#[unsafe(no_mangle)]
static MPIR_partial_attach_ok: AtomicI32 = AtomicI32::new(0);
/// The presence of this symbol makes debuggers show `main` at a rank's start, not this library.
#[unsafe(no_mangle)]
static MPIR_force_to_main: AtomicI32 = AtomicI32::new(0);

/// The values of `MPIR_debug_state`.
const SPAWNED: c_int = 1;
const ABORTING: c_int = 2;

/// The function at which a debugger stops to read the variables.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn MPIR_Breakpoint() {
    // The compiler cannot remove this use, so the function keeps an address of its own.
    black_box(&MPIR_debug_state);
}

/// The bytes that the supervisor sends to the front end.
pub(super) const TABLE_IS_WRITTEN: u8 = b'T';
pub(super) const JOB_IS_ABORTED: u8 = b'A';

/// The byte by which the front end reports that the debugger has read the table.
/// The value is not a signal number.
pub(super) const RELEASED: u8 = 0;

/// Returns true if a debugger has started this program.
pub(super) fn is_debugged() -> bool {
    MPIR_being_debugged.load(Relaxed) != 0
}

/// An entry of the process table in the memfd between the supervisor and the front end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) host: String,
    pub(super) program: String,
    pub(super) pid: i32,
}

/// The memfd through which the supervisor passes the table to the front end.
#[derive(Debug)]
pub struct TableFile(OwnedFd);

impl TableFile {
    /// Creates the memfd; returns one descriptor for the supervisor and one for the front end.
    pub(super) fn pair() -> io::Result<(TableFile, TableFile)> {
        let file = rustix::fs::memfd_create(c"portcullis-mpir", MemfdFlags::CLOEXEC)?;
        let other = rustix::io::fcntl_dupfd_cloexec(&file, 3)?;
        Ok((TableFile(file), TableFile(other)))
    }

    /// Writes the table to the file.
    pub(super) fn write(&self, entries: &[Entry]) -> io::Result<()> {
        let bytes = encode(entries);
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            done += rustix::io::pwrite(self.0.as_fd(), rest, done as u64)?;
        }
        Ok(())
    }

    fn read(&self) -> io::Result<Vec<Entry>> {
        let len = rustix::fs::fstat(&self.0)?.st_size;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        let mut done = 0;
        while let Some(rest) = bytes.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(self.0.as_fd(), rest, done as u64)? {
                0 => break,
                got => done += got,
            }
        }
        Ok(decode(&bytes))
    }

    /// Publishes the table that the supervisor has written.
    pub(super) fn publish(&self) {
        // If the table cannot be read, the job runs without it.
        if let Ok(entries) = self.read() {
            publish(&entries);
        }
    }
}

/// Encodes each entry as three strings that end with NUL; a NUL inside a name is dropped.
fn encode(entries: &[Entry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in entries {
        for text in [&entry.host, &entry.program, &entry.pid.to_string()] {
            bytes.extend(text.bytes().filter(|byte| *byte != 0));
            bytes.push(0);
        }
    }
    bytes
}

fn decode(bytes: &[u8]) -> Vec<Entry> {
    let mut texts = bytes
        .split(|byte| *byte == 0)
        .map(|text| String::from_utf8_lossy(text).into_owned());
    std::iter::from_fn(|| {
        Some(Entry {
            host: texts.next()?,
            program: texts.next()?,
            pid: texts.next()?.parse().ok()?,
        })
    })
    .collect()
}

/// Fills the variables and calls `MPIR_Breakpoint`; the table is leaked and lives until exit.
fn publish(entries: &[Entry]) {
    let text = |text: &str| {
        CString::new(text)
            .unwrap_or_default()
            .into_raw()
            .cast_const()
    };
    let table: Vec<ProcDesc> = entries
        .iter()
        .map(|entry| ProcDesc {
            host_name: text(&entry.host),
            executable_name: text(&entry.program),
            pid: entry.pid,
        })
        .collect();
    let size = c_int::try_from(table.len()).unwrap_or(0);
    MPIR_proctable.store(Box::leak(table.into_boxed_slice()).as_mut_ptr(), Relaxed);
    MPIR_proctable_size.store(size, Relaxed);
    for present in [
        &MPIR_i_am_starter,
        &MPIR_partial_attach_ok,
        &MPIR_force_to_main,
    ] {
        // This use keeps the symbols in the program.
        black_box(present);
    }
    MPIR_debug_state.store(SPAWNED, Relaxed);
    MPIR_Breakpoint();
}

/// Reports to debuggers that the job ends because a rank has failed.
pub(super) fn publish_abort() {
    let text = c"the job ends because a rank has failed; mpirun prints which";
    MPIR_debug_abort_string.store(text.as_ptr().cast_mut(), Relaxed);
    MPIR_debug_state.store(ABORTING, Relaxed);
    MPIR_Breakpoint();
}

// DWARF 4 description of the variables for debuggers: one compilation unit in C.
// `unique` puts the description into sections apart from the compiler's: offsets count from 0.
std::arch::global_asm!(
    r#"
    .section .debug_abbrev,"",@progbits,unique,7901
.Lmpir_abbrev:
    .byte 1, 0x11, 1, 0x25, 0x08, 0x13, 0x0b, 0x03, 0x08, 0, 0
    .byte 2, 0x24, 0, 0x03, 0x08, 0x0b, 0x0b, 0x3e, 0x0b, 0, 0
    .byte 3, 0x0f, 0, 0x0b, 0x0b, 0x49, 0x13, 0, 0
    .byte 4, 0x13, 1, 0x03, 0x08, 0x0b, 0x0b, 0, 0
    .byte 5, 0x0d, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x0b, 0, 0
    .byte 6, 0x16, 0, 0x03, 0x08, 0x49, 0x13, 0, 0
    .byte 7, 0x34, 0, 0x03, 0x08, 0x49, 0x13, 0x3f, 0x19, 0x02, 0x18, 0, 0
    .byte 0
    .section .debug_info,"",@progbits,unique,7902
.Lmpir_unit:
    .4byte .Lmpir_end - .Lmpir_version
.Lmpir_version:
    .2byte 4
    .4byte .Lmpir_abbrev
    .byte 8
    .byte 1
    .asciz "mpirun"
    .byte 0x0c
    .asciz "mpir.c"
.Lmpir_char:
    .byte 2
    .asciz "char"
    .byte 1, 6
.Lmpir_int:
    .byte 2
    .asciz "int"
    .byte 4, 5
.Lmpir_string:
    .byte 3, 8
    .4byte .Lmpir_char - .Lmpir_unit
.Lmpir_struct:
    .byte 4
    .asciz "MPIR_PROCDESC"
    .byte 24
    .byte 5
    .asciz "host_name"
    .4byte .Lmpir_string - .Lmpir_unit
    .byte 0
    .byte 5
    .asciz "executable_name"
    .4byte .Lmpir_string - .Lmpir_unit
    .byte 8
    .byte 5
    .asciz "pid"
    .4byte .Lmpir_int - .Lmpir_unit
    .byte 16
    .byte 0
.Lmpir_typedef:
    .byte 6
    .asciz "MPIR_PROCDESC"
    .4byte .Lmpir_struct - .Lmpir_unit
.Lmpir_table:
    .byte 3, 8
    .4byte .Lmpir_typedef - .Lmpir_unit
    .byte 7
    .asciz "MPIR_proctable"
    .4byte .Lmpir_table - .Lmpir_unit
    .byte 9, 3
    .8byte {table}
    .byte 7
    .asciz "MPIR_proctable_size"
    .4byte .Lmpir_int - .Lmpir_unit
    .byte 9, 3
    .8byte {size}
    .byte 7
    .asciz "MPIR_being_debugged"
    .4byte .Lmpir_int - .Lmpir_unit
    .byte 9, 3
    .8byte {being_debugged}
    .byte 7
    .asciz "MPIR_debug_state"
    .4byte .Lmpir_int - .Lmpir_unit
    .byte 9, 3
    .8byte {state}
    .byte 7
    .asciz "MPIR_debug_abort_string"
    .4byte .Lmpir_string - .Lmpir_unit
    .byte 9, 3
    .8byte {why}
    .byte 0
.Lmpir_end:
    .text
"#,
    table = sym MPIR_proctable,
    size = sym MPIR_proctable_size,
    being_debugged = sym MPIR_being_debugged,
    state = sym MPIR_debug_state,
    why = sym MPIR_debug_abort_string,
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_arrives_as_it_was_written() {
        let entry = |rank: i32| Entry {
            host: format!("host{rank}"),
            program: "/a b/\u{fc}".into(),
            pid: 100 + rank,
        };
        let entries: Vec<Entry> = (0..300).map(entry).collect();
        let (ours, theirs) = TableFile::pair().unwrap();
        ours.write(&entries).unwrap();
        assert_eq!(theirs.read().unwrap(), entries);
        assert_eq!(decode(b"half\0an entry"), []);
    }
}

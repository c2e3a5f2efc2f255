//! The program's C and C++ output streams: their buffering, and their flush at an abort.
//!
//! The C library fully buffers a standard output that is a pipe.
//! So the output of a rank would reach mpirun late, and never if the rank is killed.
//! In a launched process, this library sets such a standard output to line buffering.
//! The library does so before `main`, when it is loaded.
//! For a terminal the C library does the same.
//! If the program calls `setvbuf`, the program's choice remains.
//! `mpirun --stream-buffering` sets another mode from `MPI_Init` on.
//! Alternatives: a pseudo-terminal per rank would also help programs without the library.
//! But programs would treat a pseudo-terminal as interactive (colours, pagers).
//! Each line would cost several times more, and the system has few pseudo-terminals.
//! A full buffer, flushed only while a call waits, would lose the lines before a crash.
//!
//! A fatal error and `MPI_Abort` end the process without exit handlers, so they call [`flush`].
//! A flush must not wait indefinitely.
//! `PATIENCE` limits the wait for a stream locked by another thread.
//! No memory is allocated, since some programs abort in a signal handler.
#![allow(unsafe_code)]

use mpi_base::param::{Level, Param, ParamError, Params};
use mpi_core::rte;
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

/// The buffering mode set by `mpirun --stream-buffering`.
pub static STREAM_BUFFERING: Param<i32> = Param::new(
    "mpi",
    "base",
    "stream_buffering",
    "-1",
    Level::USER,
    "Buffering of a C program's stdout and stderr from MPI_Init on: 0 none, 1 by lines, 2 full, -1 stdout by lines where a launcher reads it from a pipe, else as the C library chose",
);

/// Limit of the wait for a stream locked by another thread, in steps of one millisecond.
const PATIENCE: u32 = 100;

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
    fn ftrylockfile(stream: *mut libc::FILE) -> c_int;
    fn funlockfile(stream: *mut libc::FILE);
    fn __fpending(stream: *mut libc::FILE) -> usize;
}

/// Returns the C streams `stdout` and `stderr`.
fn standard() -> [*mut libc::FILE; 2] {
    // SAFETY: the C library defines both pointers before any code of the program runs.
    unsafe { [stdout, stderr] }
}

/// Sets standard output to line buffering if a launcher reads it. Runs when the library is loaded.
pub fn by_lines_under_a_launcher() {
    // Only the presence of an environment variable is tested, and only the times of writes change.
    // So this function is safe in a privileged program.
    if rte::is_launched() && is_read_by_another_process() {
        set_mode(standard()[0], libc::_IOLBF);
    }
}

/// Returns true if standard output is a pipe or a socket.
fn is_read_by_another_process() -> bool {
    // SAFETY: the borrow ends before the program runs. If standard output is closed, `fstat` fails.
    let out = unsafe { BorrowedFd::borrow_raw(libc::STDOUT_FILENO) };
    rustix::fs::fstat(out).is_ok_and(|found| {
        let kind = rustix::fs::FileType::from_raw_mode(found.st_mode);
        matches!(
            kind,
            rustix::fs::FileType::Fifo | rustix::fs::FileType::Socket
        )
    })
}

/// Returns the requested buffering mode as the C library's constant.
fn mode(params: &Params) -> Result<Option<c_int>, ParamError> {
    Ok(match params.get(&STREAM_BUFFERING)? {
        0 => Some(libc::_IONBF),
        1 => Some(libc::_IOLBF),
        2 => Some(libc::_IOFBF),
        _ => None,
    })
}

/// Sets the buffering of both streams, if a parameter requests it.
/// Looks up the symbols that [`flush`] needs.
pub fn prepare(params: &Params) -> Result<(), ParamError> {
    PROGRAM_STREAMS.get_or_init(ProgramStreams::in_this_process);
    if let Some(mode) = mode(params)? {
        for stream in standard() {
            set_mode(stream, mode);
        }
    }
    Ok(())
}

/// Sets the buffering mode of a stream, which the C library allows while its buffer is empty.
fn set_mode(stream: *mut libc::FILE, mode: c_int) {
    // SAFETY: the stream is a stream of the C library, which allocates and owns the buffer.
    // If the call fails, the stream keeps its buffering.
    unsafe {
        libc::fflush(stream);
        libc::setvbuf(stream, ptr::null_mut(), mode, 64 << 10);
    }
}

/// `std::ostream::flush`, which returns the stream.
type FlushCpp = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// An iterator over the C library's open streams (glibc).
#[derive(Clone, Copy)]
struct OpenStreams {
    begin: unsafe extern "C" fn() -> *mut c_void,
    end: unsafe extern "C" fn() -> *mut c_void,
    next: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    stream: unsafe extern "C" fn(*mut c_void) -> *mut libc::FILE,
}

/// The streams besides the standard C streams. Found at initialization, as the search allocates.
struct ProgramStreams {
    open_streams: Option<OpenStreams>,
    /// `std::cout` and its flush function. After `sync_with_stdio(false)`, `cout` has a buffer.
    cout: Option<(usize, FlushCpp)>,
}

static PROGRAM_STREAMS: OnceLock<ProgramStreams> = OnceLock::new();

/// `std::cout` and `std::ostream::flush` in libstdc++ and in libc++.
const COUT: [(&CStr, &CStr); 2] = [
    (c"_ZSt4cout", c"_ZNSo5flushEv"),
    (
        c"_ZNSt3__14coutE",
        c"_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEE5flushEv",
    ),
];

impl ProgramStreams {
    fn in_this_process() -> ProgramStreams {
        // SAFETY: `name` is a C string.
        let find = |name: &CStr| unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        let there = |name| Some(find(name)).filter(|found| !found.is_null());
        let open_streams = || {
            let names = [
                c"_IO_iter_begin",
                c"_IO_iter_end",
                c"_IO_iter_next",
                c"_IO_iter_file",
            ];
            let [begin, end, next, stream] = names.map(there);
            // SAFETY: these glibc functions have had these signatures since symbol version 2.2.5.
            unsafe {
                Some(OpenStreams {
                    begin: transmute::<*mut c_void, unsafe extern "C" fn() -> *mut c_void>(begin?),
                    end: transmute::<*mut c_void, unsafe extern "C" fn() -> *mut c_void>(end?),
                    next: transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void) -> *mut c_void>(
                        next?,
                    ),
                    stream: transmute::<
                        *mut c_void,
                        unsafe extern "C" fn(*mut c_void) -> *mut libc::FILE,
                    >(stream?),
                })
            }
        };
        let cout = COUT.into_iter().find_map(|(object, function)| {
            let (object, function) = (there(object)?, there(function)?);
            // SAFETY: the mangled name is that of a member function of an output stream.
            // The function has no parameters and returns a reference.
            let function = unsafe { transmute::<*mut c_void, FlushCpp>(function) };
            Some((object.addr(), function))
        });
        ProgramStreams {
            open_streams: open_streams(),
            cout,
        }
    }
}

/// Flushes the program's streams before the process ends without exit handlers.
pub fn flush() {
    let found = PROGRAM_STREAMS.get();
    if let Some((object, flush)) = found.and_then(|found| found.cout) {
        // SAFETY: object and member function are from one C++ library, found by mangled name.
        unsafe { flush(ptr::with_exposed_provenance_mut(object)) };
    }
    for stream in standard() {
        flush_one(stream, PATIENCE);
    }
    let Some(open_streams) = found.and_then(|found| found.open_streams) else {
        return;
    };
    // SAFETY: the iteration ends at the value of `end`, and all listed streams are open.
    unsafe {
        let (mut at, end) = ((open_streams.begin)(), (open_streams.end)());
        while at != end {
            flush_one((open_streams.stream)(at), 0);
            at = (open_streams.next)(at);
        }
    }
}

/// Flushes a stream if it holds data and its lock is free within `patience` milliseconds.
fn flush_one(stream: *mut libc::FILE, patience: u32) {
    // SAFETY: this is an open stream of the C library. Reading the pending bytes takes no lock.
    // A concurrent change costs at most one flush.
    if unsafe { __fpending(stream) } == 0 {
        return;
    }
    for attempt in 0..=patience {
        // SAFETY: this is an open stream of the C library. The owner of its lock releases the lock.
        unsafe {
            if ftrylockfile(stream) == 0 {
                libc::fflush(stream);
                funlockfile(stream);
                return;
            }
        }
        if attempt < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

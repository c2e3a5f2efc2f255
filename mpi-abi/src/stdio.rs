//! The program's C and C++ output streams: their buffering, and flushing them when the job is aborted.
//!
//! The C library fully buffers a standard output that is a pipe: output of a rank would reach mpirun late, and never if the rank
//! is killed. So when the library is loaded under a launcher, before `main`, it makes such a standard output line buffered, as the C
//! library itself does on a terminal. A program that calls `setvbuf` keeps its choice.
//! `mpirun --stream-buffering` sets another mode from `MPI_Init` on.
//! A pseudo-terminal for each rank would also serve programs without the library, but they would treat it as interactive (colours, pagers),
//! each line would cost several times as much, and the system has few of them.
//! Full buffers that are flushed while a call waits would lose the lines before a crash.
//!
//! A fatal error and `MPI_Abort` leave the process without its exit handlers ([`flush`] runs instead). That must not wait indefinitely:
//! `PATIENCE` limits the wait for a stream that another thread has locked, and no memory is allocated, since some programs abort in a signal handler.
#![allow(unsafe_code)]

use mpi_base::param::{Level, Param, ParamError, Params};
use mpi_core::rte;
use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::os::fd::BorrowedFd;
use std::ptr;
use std::sync::OnceLock;
use std::time::Duration;

/// The buffering set by `mpirun --stream-buffering`.
pub static STREAM_BUFFERING: Param<i32> = Param::new(
    "mpi",
    "base",
    "stream_buffering",
    "-1",
    Level::USER,
    "Buffering of a C program's stdout and stderr from MPI_Init on: 0 none, 1 by lines, 2 full, -1 stdout by lines where a launcher reads it from a pipe, else as the C library chose",
);

/// Limit of the wait for a stream that another thread has locked, in steps of one millisecond.
const PATIENCE: u32 = 100;

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
    fn ftrylockfile(stream: *mut libc::FILE) -> c_int;
    fn funlockfile(stream: *mut libc::FILE);
    fn __fpending(stream: *mut libc::FILE) -> usize;
}

/// The standard output streams.
fn standard() -> [*mut libc::FILE; 2] {
    // SAFETY: the C library defines both pointers before any code of the program runs.
    unsafe { [stdout, stderr] }
}

/// Makes standard output line buffered if a launcher reads it; called when the library is loaded.
pub fn by_lines_under_a_launcher() {
    // Only the presence of a variable is used, and it only changes when bytes are written: a privileged program may do this too.
    if rte::is_launched() && is_read_by_another_process() {
        set_mode(standard()[0], libc::_IOLBF);
    }
}

/// Returns true if standard output is a pipe or a socket.
fn is_read_by_another_process() -> bool {
    // SAFETY: the borrow ends before the program runs; if standard output is closed, the call on it fails harmlessly.
    let out = unsafe { BorrowedFd::borrow_raw(libc::STDOUT_FILENO) };
    rustix::fs::fstat(out).is_ok_and(|found| {
        let kind = rustix::fs::FileType::from_raw_mode(found.st_mode);
        matches!(
            kind,
            rustix::fs::FileType::Fifo | rustix::fs::FileType::Socket
        )
    })
}

/// Returns the requested buffering as the C library's constant.
fn mode(params: &Params) -> Result<Option<c_int>, ParamError> {
    Ok(match params.get(&STREAM_BUFFERING)? {
        0 => Some(libc::_IONBF),
        1 => Some(libc::_IOLBF),
        2 => Some(libc::_IOFBF),
        _ => None,
    })
}

/// Sets the buffering of both streams, if a parameter requests it, and finds the symbols that [`flush`] needs.
pub fn prepare(params: &Params) -> Result<(), ParamError> {
    PROGRAM_STREAMS.get_or_init(ProgramStreams::in_this_process);
    if let Some(mode) = mode(params)? {
        for stream in standard() {
            set_mode(stream, mode);
        }
    }
    Ok(())
}

/// Sets the mode of a stream, which the C library allows while its buffer is empty.
fn set_mode(stream: *mut libc::FILE, mode: c_int) {
    // SAFETY: the stream is the C library's own; for the null buffer it allocates one, which it owns.
    // A stream that refuses keeps its buffering.
    unsafe {
        libc::fflush(stream);
        libc::setvbuf(stream, ptr::null_mut(), mode, 64 << 10);
    }
}

/// `std::ostream::flush`, which returns the stream.
type FlushCpp = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// An iteration over the C library's open streams (glibc).
#[derive(Clone, Copy)]
struct OpenStreams {
    begin: unsafe extern "C" fn() -> *mut c_void,
    end: unsafe extern "C" fn() -> *mut c_void,
    next: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    stream: unsafe extern "C" fn(*mut c_void) -> *mut libc::FILE,
}

/// The streams beside the standard streams of C; found at initialization, because the search allocates.
struct ProgramStreams {
    open_streams: Option<OpenStreams>,
    /// `std::cout`, with its flush function; it has a buffer of its own after `sync_with_stdio(false)`.
    cout: Option<(usize, FlushCpp)>,
}

static PROGRAM_STREAMS: OnceLock<ProgramStreams> = OnceLock::new();

/// `std::cout` and `std::ostream::flush`, of GNU's library and of LLVM's.
const COUT: [(&CStr, &CStr); 2] = [
    (c"_ZSt4cout", c"_ZNSo5flushEv"),
    (
        c"_ZNSt3__14coutE",
        c"_ZNSt3__113basic_ostreamIcNS_11char_traitsIcEEE5flushEv",
    ),
];

impl ProgramStreams {
    fn in_this_process() -> ProgramStreams {
        // SAFETY: `dlsym` with a NUL-terminated name.
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
            // SAFETY: glibc's functions of these names have had these signatures since version 2.2.5 of its ABI.
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
            // SAFETY: the mangled name is that of a member function of an output stream without parameters that returns a reference.
            let function = unsafe { transmute::<*mut c_void, FlushCpp>(function) };
            Some((object.addr(), function))
        });
        ProgramStreams {
            open_streams: open_streams(),
            cout,
        }
    }
}

/// Flushes the program's streams before the process leaves without exit handlers.
pub fn flush() {
    let found = PROGRAM_STREAMS.get();
    if let Some((object, flush)) = found.and_then(|found| found.cout) {
        // SAFETY: the object and its member function come from one C++ library, found by their mangled names.
        unsafe { flush(ptr::with_exposed_provenance_mut(object)) };
    }
    for stream in standard() {
        flush_one(stream, PATIENCE);
    }
    let Some(open_streams) = found.and_then(|found| found.open_streams) else {
        return;
    };
    // SAFETY: the iteration ends at the value that `end` returns; the streams in the list are open.
    unsafe {
        let (mut at, end) = ((open_streams.begin)(), (open_streams.end)());
        while at != end {
            flush_one((open_streams.stream)(at), 0);
            at = (open_streams.next)(at);
        }
    }
}

/// Flushes one stream if it holds data and no other thread keeps its lock longer than `patience`.
fn flush_one(stream: *mut libc::FILE, patience: u32) {
    // SAFETY: an open stream of the C library. Reading the number of pending bytes takes no lock; a concurrent change costs at most one flush.
    if unsafe { __fpending(stream) } == 0 {
        return;
    }
    for attempt in 0..=patience {
        // SAFETY: an open stream of the C library, see above; the thread that took its lock releases it.
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

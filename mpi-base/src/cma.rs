//! Single copy to and from another process's memory (cross memory attach, `process_vm_readv(2)`).
//!
//! User, container, seccomp profile and ptrace scope determine whether the kernel permits this.
//! So the library probes whether a copy is possible:
//! each process publishes the address of a random word in its own memory, and a peer that reads the
//! expected value there may use single copies.
//! The probe also shows that the published process ID denotes the same process on both sides.
#![allow(unsafe_code)]

use std::cell::Cell;
use std::ops::Range;

/// The reason why a copy between processes failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmaError {
    /// The kernel refuses, usually with `EPERM` (another user, a container's seccomp profile,
    /// Yama's ptrace scope). A retry does not help, and the data must take another path.
    Forbidden,
    /// No process has this ID any longer (`ESRCH`), or the number cannot be a process ID.
    Gone,
    /// A part of the remote range is not mapped or not accessible (`EFAULT`),
    /// or the regions are shorter than the local runs; some bytes may have been copied.
    BadAddress,
}

impl std::fmt::Display for CmaError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            CmaError::Forbidden => {
                "the system does not allow reading or writing the other process's memory"
            }
            CmaError::Gone => "the other process has ended",
            CmaError::BadAddress => "the range is not mapped in the other process",
        })
    }
}

impl std::error::Error for CmaError {}

/// A contiguous range of another process's memory;
/// this process only passes it to the kernel, which checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The address of the first byte in that process; it is never dereferenced in this process.
    pub address: u64,
    /// The length in bytes; empty regions are skipped.
    pub len: u64,
}

/// Reads the bytes at `remote` of process `pid` into `local`.
pub fn read(pid: u32, remote: u64, local: &mut [u8]) -> Result<(), CmaError> {
    let region = Region {
        address: remote,
        len: local.len() as u64,
    };
    let local = Cell::from_mut(local).as_slice_of_cells();
    read_all([region], [local], pid)
}

/// Writes `local` to `remote` in process `pid`.
pub fn write(pid: u32, remote: u64, local: &[u8]) -> Result<(), CmaError> {
    let region = Region {
        address: remote,
        len: local.len() as u64,
    };
    write_all([region], [local], pid)
}

/// Reads the regions of process `pid`, one after the other, into the runs of `local`.
/// The regions must be at least as long in total as the runs.
pub fn read_all<'a>(
    remote: impl IntoIterator<Item = Region>,
    local: impl IntoIterator<Item = &'a [Cell<u8>]>,
    pid: u32,
) -> Result<(), CmaError> {
    let here = local
        .into_iter()
        .map(|run| run_at(run.as_ptr().cast(), run.len()));
    copy(pid, here, remote, |pid, here, there| {
        let (here_len, there_len) = (here.len() as _, there.len() as _);
        // SAFETY: `here` names runs of `Cell<u8>` borrowed by the caller, which may be written; the kernel checks `there`.
        unsafe {
            libc::process_vm_readv(pid, here.as_ptr(), here_len, there.as_ptr(), there_len, 0)
        }
    })
}

/// Writes the runs of `local`, one after the other, to the regions of process `pid`.
/// The regions must be at least as long in total as the runs.
///
/// The other process has published these addresses for writing and is responsible for the effect.
pub fn write_all<'a>(
    remote: impl IntoIterator<Item = Region>,
    local: impl IntoIterator<Item = &'a [u8]>,
    pid: u32,
) -> Result<(), CmaError> {
    let here = local.into_iter().map(|run| run_at(run.as_ptr(), run.len()));
    copy(pid, here, remote, |pid, here, there| {
        let (here_len, there_len) = (here.len() as _, there.len() as _);
        // SAFETY: `here` names slices borrowed by the caller, which are only read; the kernel checks `there`.
        unsafe {
            libc::process_vm_writev(pid, here.as_ptr(), here_len, there.as_ptr(), there_len, 0)
        }
    })
}

fn run_at(address: *const u8, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: address.cast_mut().cast(),
        iov_len: len,
    }
}

/// Calls `step`, a system call for a part of the runs, until all bytes of `local` have been copied.
fn copy(
    pid: u32,
    local: impl IntoIterator<Item = libc::iovec>,
    remote: impl IntoIterator<Item = Region>,
    step: impl Fn(libc::pid_t, &[libc::iovec], &[libc::iovec]) -> isize,
) -> Result<(), CmaError> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| CmaError::Gone)?;
    let mut local = local.into_iter();
    // A value too large for an address here is no valid address of the other process either.
    let word = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    let mut remote = remote.into_iter().map(|region| {
        run_at(
            std::ptr::without_provenance(word(region.address)),
            word(region.len),
        )
    });
    let (mut here, mut there) = (Window::new(), Window::new());
    loop {
        here.fill(&mut local);
        there.fill(&mut remote);
        if here.is_empty() {
            return Ok(());
        }
        // The kernel copies the shorter total length of the two lists, and at most 2 GiB.
        match usize::try_from(step(pid, here.runs(), there.runs())) {
            Ok(0) => return Err(CmaError::BadAddress),
            Ok(n) => {
                here.pass(n);
                there.pass(n);
            }
            Err(_) => {
                return Err(match std::io::Error::last_os_error().raw_os_error() {
                    Some(libc::ESRCH) => CmaError::Gone,
                    Some(libc::EFAULT) => CmaError::BadAddress,
                    _ => CmaError::Forbidden,
                });
            }
        }
    }
}

/// A list's next runs that are not complete, at most the number that one system call accepts.
struct Window {
    runs: [libc::iovec; WINDOW],
    /// The range of `runs` that are not complete.
    todo: Range<usize>,
}

const WINDOW: usize = 16;

const NO_RUN: libc::iovec = libc::iovec {
    iov_base: std::ptr::null_mut(),
    iov_len: 0,
};

impl Window {
    fn new() -> Window {
        Window {
            runs: [NO_RUN; WINDOW],
            todo: 0..0,
        }
    }

    /// Refills the window from `more` if all runs in it are complete.
    fn fill(&mut self, more: &mut impl Iterator<Item = libc::iovec>) {
        if !self.is_empty() {
            return;
        }
        let more = more.filter(|run| run.iov_len > 0);
        let count = self.runs.iter_mut().zip(more).fold(0, |count, (to, run)| {
            *to = run;
            count + 1
        });
        self.todo = 0..count;
    }

    fn is_empty(&self) -> bool {
        self.todo.is_empty()
    }

    fn runs(&self) -> &[libc::iovec] {
        &self.runs[self.todo.clone()]
    }

    /// Removes the next `n` bytes from the window, because they have been copied.
    fn pass(&mut self, mut n: usize) {
        for run in &mut self.runs[self.todo.clone()] {
            let done = n.min(run.iov_len);
            run.iov_base = run.iov_base.wrapping_byte_add(done);
            run.iov_len -= done;
            n -= done;
            if run.iov_len > 0 {
                return;
            }
            self.todo.start += 1;
        }
    }
}

/// Returns true if this process can read the memory of process `pid` and finds `word` at `address`.
pub fn probe(pid: u32, address: u64, word: u64) -> bool {
    let mut found = [0; size_of::<u64>()];
    read(pid, address, &mut found).is_ok() && u64::from_ne_bytes(found) == word
}

/// The processes that may access this process's memory if the Yama module restricts the access
/// to ancestors (`ptrace_scope` 1).
///
/// Yama permits one exception per process: another process with all of its descendants
/// (prctl(2), `PR_SET_PTRACER`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracers {
    /// No exception: only ancestors of this process may access its memory.
    None,
    /// The process with this ID and its descendants: the launcher and thus all ranks of its job.
    StartedBy(u32),
    /// All processes of the same user.
    Any,
}

/// Sets or removes this process's exception; no effect if the kernel does not restrict access.
///
/// Errors are ignored: [`probe`] shows whether access is possible.
/// If the launcher is in another PID namespace, all processes of the same user are allowed.
pub fn allow(tracers: Tracers) {
    let restricted = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
        .is_ok_and(|scope| scope.trim() == "1");
    if !restricted {
        return;
    }
    let set = |process: libc::c_ulong| {
        // SAFETY: prctl with this option takes a plain number and changes nothing else.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, process) == 0 }
    };
    match tracers {
        Tracers::None => set(0),
        Tracers::StartedBy(launcher) => set(launcher.into()) || set(libc::PR_SET_PTRACER_ANY),
        Tracers::Any => set(libc::PR_SET_PTRACER_ANY),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_reads_itself_and_nothing_unmapped() {
        let me = std::process::id();
        let word = Box::new(0x1234_5678_9abc_def0_u64);
        let at = std::ptr::from_ref(&*word) as u64;
        if !probe(me, at, *word) {
            // A container may forbid the call, as `probe` has just shown;
            // the rest of the test is then skipped.
            return;
        }
        assert!(!probe(me, at, 0));
        assert_eq!(read(me, 8, &mut [0]), Err(CmaError::BadAddress));
        let nowhere = Region { address: 8, len: 1 };
        let one: &[u8] = &[0];
        assert_eq!(write_all([nowhere], [one], me), Err(CmaError::BadAddress));
    }

    #[test]
    fn what_is_written_is_there_and_nothing_else_is_touched() {
        let mut buffer = [7_u8; 6];
        let region = Region {
            address: buffer.as_mut_ptr().expose_provenance() as u64 + 1,
            len: 4,
        };
        let data: [&[u8]; 2] = [&[1, 2, 3], &[4]];
        match write_all([region], data, std::process::id()) {
            Ok(()) => assert_eq!(std::hint::black_box(buffer), [7, 1, 2, 3, 4, 7]),
            Err(error) => assert_eq!(error, CmaError::Forbidden),
        }
    }

    #[test]
    fn lists_that_are_cut_differently_meet_byte_by_byte() {
        let data: Vec<u8> = (0..100_000).map(|i| (i % 251) as u8).collect();
        // Pieces of 700 and of 1100 bytes with empty pieces in between,
        // many more than one call accepts.
        let regions = data.chunks(700).flat_map(|run| {
            let address = run.as_ptr().expose_provenance() as u64;
            [run.len() as u64, 0].map(|len| Region { address, len })
        });
        let mut buffer = vec![0; data.len()];
        let cells = Cell::from_mut(&mut buffer[..]).as_slice_of_cells();
        match read_all(regions, cells.chunks(1100), std::process::id()) {
            Ok(()) => assert!(buffer == data),
            Err(error) => assert_eq!(error, CmaError::Forbidden),
        }
    }

    #[test]
    fn a_list_that_is_too_short_is_an_error() {
        let mut buffer = [0; 8];
        let region = Region {
            address: [1_u8; 4].as_ptr().expose_provenance() as u64,
            len: 4,
        };
        let cells = Cell::from_mut(&mut buffer[..]).as_slice_of_cells();
        let result = read_all([region], [cells], std::process::id());
        assert!(matches!(
            result,
            Err(CmaError::BadAddress | CmaError::Forbidden)
        ));
    }
}

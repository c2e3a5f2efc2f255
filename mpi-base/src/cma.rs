//! Reading and writing another process's memory in one copy (cross memory attach, `process_vm_readv(2)`).
//!
//! Whether it is allowed depends on user, container, seccomp profile and ptrace scope, so it is tried, not computed:
//! each process publishes the address of a random word in its own memory, and a peer that reads the right word there may read on.
//! The try also shows that the process number means the same process on both sides.

/// Why a copy failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CmaError {
    Forbidden,
    Gone,
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

/// The kernel copies at most this much in one call.
const AT_ONCE: usize = 0x7fff_f000;

/// Fills `local` with the bytes at `remote` in process `pid`.
pub fn read(pid: u32, remote: u64, local: &mut [u8]) -> Result<(), CmaError> {
    copy(
        pid,
        local.as_mut_ptr(),
        remote,
        local.len(),
        |pid, here, there| {
            // SAFETY: `here` is a part of `local`; the kernel checks `there`.
            unsafe { libc::process_vm_readv(pid, here, 1, there, 1, 0) }
        },
    )
}

/// Puts the bytes of `local` to `remote` in process `pid`.
///
/// What that does to the other process is its own affair: it gave the address to be written to.
pub fn write(pid: u32, local: &[u8], remote: u64) -> Result<(), CmaError> {
    let here = local.as_ptr().cast_mut();
    copy(pid, here, remote, local.len(), |pid, here, there| {
        // SAFETY: `here` is a part of `local`, which is only read; the kernel checks `there`.
        unsafe { libc::process_vm_writev(pid, here, 1, there, 1, 0) }
    })
}

/// Calls `step` until all `len` bytes have been copied.
fn copy(
    pid: u32,
    mut here: *mut u8,
    mut there: u64,
    mut len: usize,
    step: impl Fn(libc::pid_t, &libc::iovec, &libc::iovec) -> isize,
) -> Result<(), CmaError> {
    let pid = libc::pid_t::try_from(pid).map_err(|_| CmaError::Gone)?;
    while len > 0 {
        let at_once = len.min(AT_ONCE);
        let address = usize::try_from(there).map_err(|_| CmaError::BadAddress)?;
        let local = libc::iovec {
            iov_base: here.cast(),
            iov_len: at_once,
        };
        let remote = libc::iovec {
            iov_base: std::ptr::without_provenance_mut(address),
            iov_len: at_once,
        };
        match usize::try_from(step(pid, &local, &remote)) {
            Ok(0) => return Err(CmaError::BadAddress),
            Ok(n) => {
                let n = n.min(at_once);
                here = here.wrapping_add(n);
                there = there.saturating_add(n as u64);
                len -= n;
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
    Ok(())
}

/// Whether process `pid` lets us read its memory and has `word` at `address`.
pub fn probe(pid: u32, address: u64, word: u64) -> bool {
    let mut found = [0; size_of::<u64>()];
    read(pid, address, &mut found).is_ok() && u64::from_ne_bytes(found) == word
}

/// Lets the other processes of this user read this one's memory where the Yama module restricts that to parents.
///
/// Best effort: [`probe`] tells whether it helped.
pub fn allow_peers() {
    let restricted = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope")
        .is_ok_and(|scope| scope.trim() == "1");
    if restricted {
        // SAFETY: prctl with this option takes a plain number and changes nothing else.
        unsafe { libc::prctl(libc::PR_SET_PTRACER, libc::PR_SET_PTRACER_ANY) };
    }
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
            // A container that forbids the call is a case of its own, and `probe` has just told it.
            return;
        }
        assert!(!probe(me, at, 0));
        assert_eq!(read(me, 8, &mut [0]), Err(CmaError::BadAddress));
        assert_eq!(write(me, &[0], 8), Err(CmaError::BadAddress));
    }

    #[test]
    fn what_is_written_is_there_and_nothing_else_is_touched() {
        let mut room = [7_u8; 6];
        let at = room.as_mut_ptr().expose_provenance() as u64;
        match write(std::process::id(), &[1, 2, 3, 4], at + 1) {
            Ok(()) => assert_eq!(std::hint::black_box(room), [7, 1, 2, 3, 4, 7]),
            Err(error) => assert_eq!(error, CmaError::Forbidden),
        }
    }
}

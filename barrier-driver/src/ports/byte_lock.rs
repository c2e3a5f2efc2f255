//! A lock on one byte of a file: it claims a port for one process if several nodes are reached through the same file.
//!
//! The lock belongs to the open file description (`F_OFD_SETLK`, fcntl(2)).
//! A process that another thread forks shares this description until
//! the process calls exec, so closing the file would leave the byte locked until then.
//! Dropping a [`ByteLock`] therefore unlocks the byte explicitly.
#![allow(unsafe_code)]

use super::PortError;
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::AsRawFd;

/// A file with one locked byte; dropping the value unlocks the byte.
pub(super) struct ByteLock {
    file: File,
    at: libc::off_t,
}

impl ByteLock {
    /// Locks the byte at offset `at`; `name` is the port's name for error messages.
    pub(super) fn take(file: File, at: u64, name: &str) -> core::result::Result<Self, PortError> {
        let refused = |cause: String| PortError::Refused {
            port: name.to_owned(),
            step: "be locked",
            cause,
        };
        let at = libc::off_t::try_from(at).map_err(|e| refused(e.to_string()))?;
        match set(&file, at, libc::F_WRLCK) {
            Ok(()) => Ok(ByteLock { file, at }),
            Err(e) if matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
                Err(PortError::Busy {
                    port: name.to_owned(),
                    holder: "another process",
                })
            }
            Err(e) => Err(refused(e.to_string())),
        }
    }
}

impl Drop for ByteLock {
    fn drop(&mut self) {
        // After an error the byte stays locked until all processes that have the file open have ended.
        let _ = set(&self.file, self.at, libc::F_UNLCK);
    }
}

/// Sets or removes the lock of one byte.
fn set(file: &File, at: libc::off_t, kind: libc::c_int) -> Result<()> {
    // SAFETY: all bytes zero are a valid flock, a structure of integers.
    let mut byte: libc::flock = unsafe { core::mem::zeroed() };
    byte.l_type = kind as libc::c_short;
    byte.l_whence = libc::SEEK_SET as libc::c_short;
    byte.l_start = at;
    byte.l_len = 1;
    // SAFETY: the descriptor is open, and the command takes a pointer to a flock, which lives until the call returns.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const byte) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_lock_is_free_though_a_forked_process_still_has_the_file_open() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let opened = || File::options().read(true).write(true).open(file.path());
        let mine = opened().unwrap();
        // The clone is a second descriptor of the same open file description, as after a fork.
        let of_fork = mine.try_clone().unwrap();
        let held = ByteLock::take(mine, 3, "a port").unwrap();
        let other = ByteLock::take(opened().unwrap(), 3, "a port");
        assert!(matches!(other, Err(PortError::Busy { .. })));
        drop(held);
        assert!(ByteLock::take(opened().unwrap(), 3, "a port").is_ok());
        drop(of_fork);
    }
}

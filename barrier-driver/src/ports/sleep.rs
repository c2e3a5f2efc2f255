//! Sleeping in the kernel until the file of a port is readable, that is, until an interrupt has occurred.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::time::Duration;

/// Sleeps until `file` is readable, for at most `limit`; returns true if `file` is readable.
///
/// A signal ends the sleep, too: its handler may have changed the state, so the caller reads the wire again.
pub(super) fn until_readable(file: impl AsFd, limit: Duration) -> Result<bool, Errno> {
    let mut wanted = [PollFd::new(&file, PollFlags::IN)];
    let limit = Timespec::try_from(limit).map_err(|_| Errno::INVAL)?;
    match poll(&mut wanted, Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

//! Sleeping in the kernel until a port's file has an interrupt to tell of.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::os::fd::AsFd;
use std::time::Duration;

/// Sleeps until `file` can be read, for at most `limit`; whether it can be.
///
/// A signal ends the sleep too, so that a program's handler is followed by a look at the wire.
pub(super) fn until_readable(file: impl AsFd, limit: Duration) -> Result<bool, Errno> {
    let mut wanted = [PollFd::new(&file, PollFlags::IN)];
    let limit = Timespec::try_from(limit).map_err(|_| Errno::INVAL)?;
    match poll(&mut wanted, Some(&limit)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno),
    }
}

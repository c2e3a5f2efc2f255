//! Error reports of child processes that could not execute their program.
//!
//! Promise: a message about a process's end never contains the report of another process.
//! All children share one pipe. A child may end after children that started later.
//! So the launcher reads all reports at the end of any child.
//! Each report is kept under its sender's pid until that process is reaped.

use super::sys::FailedStart;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::pipe::{PipeFlags, pipe_with};
use std::collections::BTreeMap;
use std::io;

/// The shared pipe, and the reports read from the pipe, by the pid of the child that wrote each.
pub struct FailedStarts {
    reading: OwnedFd,
    writing: OwnedFd,
    unclaimed: BTreeMap<i32, FailedStart>,
}

impl FailedStarts {
    /// Creates the pipe that all children share.
    pub fn new() -> io::Result<FailedStarts> {
        let (reading, writing) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(FailedStarts {
            reading,
            writing,
            unclaimed: BTreeMap::new(),
        })
    }

    /// Returns the pipe's write end, for the children.
    pub fn report_fd(&self) -> BorrowedFd<'_> {
        self.writing.as_fd()
    }

    /// Removes and returns the report of a reaped child, if the child wrote one.
    pub fn take(&mut self, pid: i32) -> Option<FailedStart> {
        while let Some(report) = FailedStart::read(&self.reading) {
            self.unclaimed.insert(report.pid, report);
        }
        self.unclaimed.remove(&pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::sys::FailedStep;

    #[test]
    fn a_process_that_ends_first_does_not_take_the_report_of_another() {
        let mut starts = FailedStarts::new().unwrap();
        let reports = [(7, libc::ENOENT), (9, libc::EACCES)];
        for (pid, errno) in reports {
            let step = FailedStep::Exec;
            let report = FailedStart { pid, errno, step };
            rustix::io::write(starts.report_fd(), &report.to_bytes()).unwrap();
        }
        assert_eq!(starts.take(8), None);
        assert_eq!(
            starts.take(9).map(|report| report.errno),
            Some(libc::EACCES)
        );
        assert_eq!(
            starts.take(7).map(|report| report.errno),
            Some(libc::ENOENT)
        );
        assert_eq!(starts.take(7), None);
    }
}

//! A log that never blocks its writer:
//! the server must serve its nodes even if the output is not read.
//!
//! A separate thread prints the lines.
//! If the output is not read, up to [`CAPACITY`] lines are queued;
//! further lines are dropped and counted.

use std::io::{self, Write as _, stdout};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};

/// Maximum number of queued lines.
const CAPACITY: usize = 1024;

pub struct Log {
    lines: SyncSender<String>,
    /// Number of lines dropped since the last line was queued.
    missing: u64,
    printer: JoinHandle<()>,
}

impl Log {
    pub fn new() -> io::Result<Log> {
        let (lines, waiting) = sync_channel::<String>(CAPACITY);
        let printer = Builder::new().name("log".into()).spawn(move || {
            // If the reader has closed the pipe or the disk is full,
            // the thread ends, and the server continues without a log.
            for line in waiting {
                if stdout().write_all(line.as_bytes()).is_err() {
                    return;
                }
            }
        })?;
        Ok(Log {
            lines,
            missing: 0,
            printer,
        })
    }

    /// Queues a line, or counts it as dropped if the queue is full.
    pub fn say(&mut self, line: &str) {
        let line = match self.missing {
            0 => format!("{line}\n"),
            missing => {
                format!(
                    "{missing} lines are missing here, because the output was not read\n{line}\n"
                )
            }
        };
        match self.lines.try_send(line) {
            Ok(()) => self.missing = 0,
            Err(TrySendError::Full(_)) => self.missing += 1,
            Err(TrySendError::Disconnected(_)) => {}
        }
    }

    /// Waits until all queued lines are printed.
    pub fn finish(self) {
        drop(self.lines);
        // The thread does not panic; if it did, its panic message has been printed.
        let _ = self.printer.join();
    }
}

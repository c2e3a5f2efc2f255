//! A log that cannot hold up its writer: nodes wait for the board, and perhaps no process reads what it says.
//!
//! A thread of its own prints the lines. While its reader does not read, as many as [`ROOM`] wait, and later ones are only counted.

use std::io::{self, Write as _, stdout};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};

/// So many lines wait for the reader.
const ROOM: usize = 1024;

pub struct Log {
    lines: SyncSender<String>,
    /// How many have not been printed since the last that was.
    missing: u64,
    printer: JoinHandle<()>,
}

impl Log {
    pub fn new() -> io::Result<Log> {
        let (lines, waiting) = sync_channel::<String>(ROOM);
        let printer = Builder::new().name("log".into()).spawn(move || {
            // A reader that has seen enough, or a full disk: the board goes on without a log.
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

    /// Prints a line soon, or counts it as missing.
    pub fn say(&mut self, line: &str) {
        let line = match self.missing {
            0 => format!("{line}\n"),
            missing => {
                format!("{missing} lines are missing here, as nobody read them\n{line}\n")
            }
        };
        match self.lines.try_send(line) {
            Ok(()) => self.missing = 0,
            Err(TrySendError::Full(_)) => self.missing += 1,
            Err(TrySendError::Disconnected(_)) => {}
        }
    }

    /// Waits until everything is printed.
    pub fn finish(self) {
        drop(self.lines);
        // It does not panic; if it did, the panic has been told.
        let _ = self.printer.join();
    }
}

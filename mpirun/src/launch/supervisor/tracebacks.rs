//! Scanner for Python tracebacks in the ranks' standard error; it keeps each traceback's last line.
//!
//! Reports of hung jobs print that line: the exception is the root cause.
//! The rank with the exception calls `MPI_Finalize` and waits there for the other ranks.
//!
//! The output passes through mpirun anyway, so the ranks' Python needs no hook and no module.

use crate::pmi::Proc;
use std::collections::BTreeMap;

/// The first line of a traceback.
/// Tracebacks in exception groups begin with spaces and `+` or `|`; they are not recognised.
const BEGINNING: &[u8] = b"Traceback (most recent call last):";

/// The number of bytes that are kept of each line.
const LONGEST: usize = 300;

/// The scanner state for one rank's standard error.
#[derive(Debug, Default)]
struct Scanner {
    /// The bytes of the current line so far.
    line: Vec<u8>,
    is_inside: bool,
    exception: Option<String>,
}

impl Scanner {
    fn take(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let room = LONGEST.saturating_sub(self.line.len());
            self.line
                .extend_from_slice(text.get(..room).unwrap_or(text));
            if is_whole {
                self.end_line();
            }
        }
    }

    /// Processes a complete line. A traceback ends with the first line that is not indented.
    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let is_frame = line.first().is_none_or(|first| first.is_ascii_whitespace());
        if line == BEGINNING {
            self.is_inside = true;
        } else if self.is_inside && !is_frame {
            self.is_inside = false;
            self.exception = Some(String::from_utf8_lossy(&line).into_owned());
        }
    }
}

/// The scanners of all ranks.
#[derive(Debug, Default)]
pub(super) struct Tracebacks(BTreeMap<Proc, Scanner>);

impl Tracebacks {
    /// Scans bytes that a rank has written to standard error.
    pub(super) fn take(&mut self, proc: Proc, bytes: &[u8]) {
        self.0.entry(proc).or_default().take(bytes);
    }

    /// Removes a rank whose standard error has ended, unless the rank has written a traceback.
    pub(super) fn end(&mut self, proc: Proc) {
        if self.exception(proc).is_none() {
            self.0.remove(&proc);
        }
    }

    /// Returns the last line of a rank's latest traceback.
    pub(super) fn exception(&self, proc: Proc) -> Option<String> {
        self.0.get(&proc)?.exception.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exception_in(pieces: &[&str]) -> Option<String> {
        let mut all = Tracebacks::default();
        for piece in pieces {
            all.take(Proc(3), piece.as_bytes());
        }
        assert_eq!(all.exception(Proc(2)), None);
        all.exception(Proc(3))
    }

    #[test]
    fn the_last_line_of_the_latest_traceback_is_kept() {
        let first = "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    f()\n\nKeyError: 'x'\n";
        assert_eq!(exception_in(&[first]).as_deref(), Some("KeyError: 'x'"));
        let chained = [
            first,
            "\nDuring handling of the above exception, another exception occurred:\n\nTrace",
            "back (most recent call last):\n  File \"a.py\", line 3\nValue",
            "Error: bad\nand more\n",
        ];
        assert_eq!(exception_in(&chained).as_deref(), Some("ValueError: bad"));
    }

    #[test]
    fn other_lines_and_endless_ones_are_no_exceptions() {
        assert_eq!(exception_in(&["ValueError: bad\n"]), None);
        assert_eq!(
            exception_in(&["Traceback (most recent call last):\n  File"]),
            None
        );
        let long = "x".repeat(10 * LONGEST);
        let found = exception_in(&["Traceback (most recent call last):\n", &long, "\n"]);
        assert_eq!(found.map(|text| text.len()), Some(LONGEST));
    }
}

//! Progress output of the tasks: one line per step, with its duration.

use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

/// The progress of a task: its steps, and the time since its start.
#[derive(Debug)]
pub struct Steps {
    total: usize,
    done: usize,
    begin: Instant,
}

impl Steps {
    /// Starts a task of `total` steps.
    pub fn new(total: usize) -> Self {
        Self {
            total,
            done: 0,
            begin: Instant::now(),
        }
    }

    /// Prints the name of a step, runs the step, and prints its duration.
    pub fn step<T, E>(
        &mut self,
        what: impl Display,
        action: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        self.done += 1;
        say(&format!(
            "{} {what}",
            bold(&format!("[{}/{}]", self.done, self.total))
        ));
        let begin = Instant::now();
        let result = action()?;
        let seconds = begin.elapsed().as_secs_f64();
        if seconds >= 1.0 {
            say(&format!("      {}", faint(&format!("took {seconds:.1} s"))));
        }
        Ok(result)
    }

    /// Returns the time since the start of the task, in seconds.
    pub fn seconds(&self) -> f64 {
        self.begin.elapsed().as_secs_f64()
    }
}

/// Prints a line to standard error, which receives all progress output.
pub fn say(line: &str) {
    // An error is ignored: standard error may have been closed.
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

/// Returns the text in bold if standard error is a terminal.
pub fn bold(text: &str) -> String {
    styled("1", text)
}

/// Returns the text faint if standard error is a terminal.
pub fn faint(text: &str) -> String {
    styled("2", text)
}

fn styled(code: &str, text: &str) -> String {
    if std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none() {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

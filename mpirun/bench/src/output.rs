//! Standard output: a closed pipe, as with `| head`, is no error; any other failure is reported, since figures are lost.

use std::fmt;
use std::io::{ErrorKind, Write};

/// Standard output cannot be written.
#[derive(Debug)]
pub struct OutputError(std::io::Error);

impl fmt::Display for OutputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the standard output cannot be written: {}", self.0)
    }
}

impl std::error::Error for OutputError {}

/// Prints a text on standard output.
pub fn say(text: &str) -> Result<(), OutputError> {
    write(&mut std::io::stdout(), text)
}

fn write(to: &mut impl Write, text: &str) -> Result<(), OutputError> {
    match to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(OutputError(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_an_error_and_a_closed_pipe_is_none() {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let refused = write(&mut full.unwrap(), "figures\n").unwrap_err();
        let said = refused.to_string();
        assert!(
            said.starts_with("the standard output cannot be written: No space"),
            "{said}"
        );
        let (reader, mut writer) = std::io::pipe().unwrap();
        drop(reader);
        assert!(write(&mut writer, "figures\n").is_ok());
    }
}

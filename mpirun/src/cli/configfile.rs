//! `--configfile`: the sections of a command line as lines of a file (MPI 5.0, section 11.5).
//!
//! One section per line; `#` begins a comment, a backslash at the end continues a line,
//! and words with spaces are in double or single quotes.

use crate::text::{TextError, TextFile};
use mpi_base::text;
use printable::name;
use std::ffi::OsString;
use std::fmt;
use std::path::Path;

/// The reason why a configuration file cannot be parsed.
#[derive(Debug, PartialEq, Eq)]
pub enum ConfigError {
    Text(TextError),
    Quote { path: String, line: usize },
    Empty { path: String },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigError::Text(error) => error.fmt(f),
            ConfigError::Quote { path, line } => {
                let path = name(path);
                write!(f, "line {line} of {path} has a quote that does not end")
            }
            ConfigError::Empty { path } => write!(f, "{} names no program", name(path)),
        }
    }
}

/// Reads a configuration file; returns the words of each section.
pub fn read(path: &Path) -> Result<Vec<Vec<OsString>>, ConfigError> {
    let file = TextFile::read("configuration file", path).map_err(ConfigError::Text)?;
    parse(&file.text, &file.path)
}

pub(crate) fn parse(text: &str, path: &str) -> Result<Vec<Vec<OsString>>, ConfigError> {
    let mut parts = Vec::new();
    let mut pending = String::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some(begin) = line.strip_suffix('\\') {
            pending += begin;
            continue;
        }
        pending += line;
        let words = words(&std::mem::take(&mut pending)).ok_or_else(|| ConfigError::Quote {
            path: path.into(),
            line: number,
        })?;
        if !words.is_empty() {
            parts.push(words.iter().map(|word| text::to_os(word)).collect());
        }
    }
    match parts.is_empty() {
        true => Err(ConfigError::Empty { path: path.into() }),
        false => Ok(parts),
    }
}

/// Splits a line into words; returns `None` if a quote is not closed.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (_, Some(q)) if c == q => quote = None,
            (_, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#', None) if word.is_none() => break,
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_parts_with_comments_continuations_and_quotes() {
        let text = "# two programs\n-n 2 ./a \"x y\" '' # why\n\n-n 1 \\\n  ./b it\\'s#1'\n";
        let parts = parse(&text.replace("it\\'s#1'", "its#1"), "f").unwrap();
        assert_eq!(parts[0], ["-n", "2", "./a", "x y", ""]);
        assert_eq!(parts[1], ["-n", "1", "./b", "its#1"]);
    }

    #[test]
    fn an_open_quote_is_reported_with_its_line() {
        let error = parse("a\n'b\n", "f").unwrap_err().to_string();
        assert_eq!(error, "line 2 of f has a quote that does not end");
        assert!(parse("# nothing\n", "f").is_err());
    }
}

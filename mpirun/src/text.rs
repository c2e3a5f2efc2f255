//! Text files that a user writes for mpirun, with one thing to a line and `#` before a comment; and what is said of those that cannot be understood.

use mpi_base::text;
use printable::name;
use std::fmt;
use std::path::Path;

/// Why a file is of no use.
#[derive(Debug, PartialEq, Eq)]
pub enum TextError {
    Unreadable {
        kind: &'static str,
        path: String,
        reason: String,
    },
    Line {
        kind: &'static str,
        path: String,
        line: usize,
        text: String,
        wanted: &'static str,
    },
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextError::Unreadable { kind, path, reason } => {
                write!(f, "the {kind} {} cannot be read: {reason}", name(path))
            }
            TextError::Line {
                kind,
                path,
                line,
                text,
                wanted,
            } => write!(
                f,
                "line {line} of the {kind} {} is \"{}\", where {wanted} was expected",
                name(path),
                name(text)
            ),
        }
    }
}

impl std::error::Error for TextError {}

/// A file that was read; `kind` is what messages call it.
#[derive(Clone, Debug)]
pub struct TextFile {
    pub kind: &'static str,
    pub path: String,
    pub text: String,
}

impl TextFile {
    /// Reads a file that the user named; what goes wrong is said with `kind` and its path.
    pub fn read(kind: &'static str, path: &Path) -> Result<TextFile, TextError> {
        let shown = path.display().to_string();
        // Comments and names of folders may be of any encoding.
        match std::fs::read(path) {
            Ok(bytes) => Ok(TextFile {
                kind,
                path: shown,
                text: text::from_bytes(&bytes),
            }),
            Err(error) => Err(TextError::Unreadable {
                kind,
                path: shown,
                reason: error.to_string(),
            }),
        }
    }

    /// What `reader` makes of each line that says something.
    ///
    /// `wanted` is what a line that it makes nothing of should have been.
    pub fn lines<T>(
        &self,
        wanted: &'static str,
        reader: impl Fn(&str) -> Option<T>,
    ) -> impl Iterator<Item = Result<T, TextError>> {
        (1..)
            .zip(self.text.lines())
            .filter_map(move |(number, whole)| {
                let line = whole.split('#').next().unwrap_or_default().trim();
                if line.is_empty() {
                    return None;
                }
                Some(reader(line).ok_or_else(|| TextError::Line {
                    kind: self.kind,
                    path: self.path.clone(),
                    line: number,
                    text: line.into(),
                    wanted,
                }))
            })
    }
}

/// Words of a line, of which `key = value` is one however it is spaced.
pub fn words(line: &str) -> Vec<String> {
    let line = line.replace(" =", "=").replace("= ", "=");
    line.split_whitespace().map(str::to_owned).collect()
}

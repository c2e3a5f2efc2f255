//! Text files that users write for mpirun, with one item per line and `#` comments.

use mpi_base::text;
use printable::name;
use std::fmt;
use std::path::Path;

/// The reason why a text file cannot be used.
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

/// The content of a text file; `kind` is the file's description in messages, such as "hostfile".
#[derive(Clone, Debug)]
pub struct TextFile {
    pub kind: &'static str,
    pub path: String,
    pub text: String,
}

impl TextFile {
    /// Reads a text file; error messages contain `kind` and the path.
    pub fn read(kind: &'static str, path: &Path) -> Result<TextFile, TextError> {
        let shown = path.display().to_string();
        // Comments and folder names may have any encoding.
        match std::fs::read(path) {
            Ok(bytes) => Ok(TextFile {
                kind,
                path: shown,
                text: text::from_file(&bytes),
            }),
            Err(error) => Err(TextError::Unreadable {
                kind,
                path: shown,
                reason: error.to_string(),
            }),
        }
    }

    /// Applies `reader` to each line that is neither empty nor a comment.
    ///
    /// If `reader` rejects a line, the error describes `wanted`, the accepted form.
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

/// Splits a line into words; `key = value` is one word, with or without spaces.
pub fn words(line: &str) -> Vec<String> {
    let line = line.replace(" =", "=").replace("= ", "=");
    line.split_whitespace().map(str::to_owned).collect()
}

//! Values of `--output` and `--output-filename`: a folder, or keywords for the output's format.

use super::value_error::ValueError;
use crate::launch::program::Io;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

const WANTED: &str = "a folder, or, with commas between them, dir=FOLDER, tag, rank, timestamp and merge-stderr-to-stdout";

/// Keywords of Open MPI's `--output`.
/// Keywords without an effect in this launcher are errors, so that none is used as a folder name.
const WORDS: [&str; 8] = [
    "tag",
    "tag-detailed",
    "tag-fullname",
    "rank",
    "timestamp",
    "merge-stderr-to-stdout",
    "merge",
    "xml",
];

/// A parsed value of `--output`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputTo {
    tag: bool,
    label: bool,
    timestamp: bool,
    merge: bool,
    folder: Option<OutputFolder>,
}

impl OutputTo {
    /// Parses keywords of Open MPI, separated by commas, or a folder.
    pub fn parse(text: OsString) -> Result<OutputTo, ValueError> {
        const FOLDER: &[u8] = b"dir=";
        let words = text.as_bytes().split(|&byte| byte == b',');
        let words: Vec<&OsStr> = words.map(OsStr::from_bytes).collect();
        let mut output = OutputTo::default();
        if !words.iter().any(|word| is_word(word)) {
            // Without a keyword the whole value is a folder, whose name may contain commas.
            output.folder = Some(OutputFolder::parse(text)?);
            return Ok(output);
        }
        for word in words {
            if let Some(folder) = word.as_bytes().strip_prefix(FOLDER) {
                let folder = OsStr::from_bytes(folder).to_owned();
                output.folder = Some(OutputFolder::parse(folder)?);
                continue;
            }
            match word.to_str().unwrap_or_default().to_lowercase().as_str() {
                "tag" => output.tag = true,
                "rank" => output.label = true,
                "timestamp" => output.timestamp = true,
                "merge-stderr-to-stdout" | "merge" => output.merge = true,
                _ => return Err(ValueError::unknown(WANTED)),
            }
        }
        Ok(output)
    }

    /// Adds the properties of this value to those that other options have set.
    pub fn apply(&self, io: &mut Io) {
        io.tag |= self.tag;
        io.label |= self.label;
        io.timestamp |= self.timestamp;
        io.merge |= self.merge;
        if let Some(folder) = &self.folder {
            folder.apply(io);
        }
    }
}

/// Returns true if a word of `--output` is a keyword and not a folder name.
fn is_word(word: &OsStr) -> bool {
    let word = word.to_str().unwrap_or_default().to_lowercase();
    word.starts_with("dir=") || word.starts_with("file=") || WORDS.contains(&word.as_str())
}

/// A folder for output; with `:nocopy` mpirun does not print the output as well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputFolder {
    path: PathBuf,
    echo: bool,
}

impl OutputFolder {
    /// Parses a folder and the keywords after its colon.
    pub fn parse(text: OsString) -> Result<OutputFolder, ValueError> {
        let bytes = text.as_bytes();
        let slash = bytes.iter().rposition(|&byte| byte == b'/');
        let name = slash.map_or(0, |at| at + 1);
        let colon = bytes[name..].iter().position(|&byte| byte == b':');
        let (folder, words) = match colon {
            Some(at) => (&bytes[..name + at], &bytes[name + at + 1..]),
            None => (bytes, &b""[..]),
        };
        if folder.is_empty() {
            return Err(ValueError::unknown("a folder"));
        }
        let mut echo = true;
        for word in words.split(|byte| b":,".contains(byte)) {
            match word.to_ascii_lowercase().as_slice() {
                b"nocopy" => echo = false,
                b"copy" => echo = true,
                b"" if colon.is_none() => {}
                _ => {
                    return Err(ValueError::unknown(
                        "a folder, and behind a colon only nocopy; a folder whose name has a colon is written with / at its end",
                    ));
                }
            }
        }
        let folder = PathBuf::from(OsStr::from_bytes(folder));
        Ok(OutputFolder {
            path: std::path::absolute(&folder).unwrap_or(folder),
            echo,
        })
    }

    /// Sets this folder as the destination of the ranks' output.
    pub fn apply(&self, io: &mut Io) {
        io.folder = Some(self.path.clone());
        io.echo = self.echo;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the properties that a value sets: tag, label, timestamp and merge.
    fn properties(text: &str, io: &mut Io) -> [bool; 4] {
        let parsed = OutputTo::parse(text.into()).unwrap_or_else(|error| panic!("{text}: {error}"));
        parsed.apply(io);
        [io.tag, io.label, io.timestamp, io.merge]
    }

    #[test]
    fn each_word_sets_its_property_alone_and_clears_none() {
        for (text, expected) in [
            ("tag", [true, false, false, false]),
            ("RANK", [false, true, false, false]),
            ("timestamp", [false, false, true, false]),
            ("merge", [false, false, false, true]),
            ("merge-stderr-to-stdout", [false, false, false, true]),
            ("tag,merge", [true, false, false, true]),
        ] {
            assert_eq!(properties(text, &mut Io::default()), expected, "{text}");
            let mut io = Io {
                tag: true,
                label: true,
                timestamp: true,
                merge: true,
                ..Io::default()
            };
            assert_eq!(properties(text, &mut io), [true; 4], "{text}");
            assert_eq!(io.folder, None, "{text}");
        }
    }

    #[test]
    fn a_value_without_a_word_is_a_folder() {
        for (text, folder, echo) in [
            ("/tmp/a", "/tmp/a", true),
            ("/tmp/a:nocopy", "/tmp/a", false),
            ("/tmp/a:NoCopy,copy", "/tmp/a", true),
            ("/tmp/a,b", "/tmp/a,b", true),
            ("/t:x/a", "/t:x/a", true),
            ("dir=/tmp/a:nocopy", "/tmp/a", false),
        ] {
            let mut io = Io {
                echo: !echo,
                ..Io::default()
            };
            assert_eq!(properties(text, &mut io), [false; 4], "{text}");
            assert_eq!((io.folder, io.echo), (Some(folder.into()), echo), "{text}");
        }
        let mut io = Io::default();
        properties("a", &mut io);
        assert!(io.folder.is_some_and(|folder| folder.is_absolute()));
    }

    #[test]
    fn words_without_a_meaning_are_no_folders() {
        for text in [
            "tag-detailed",
            "tag-fullname",
            "xml",
            "file=a",
            "tag,a",
            "dir=",
            ":nocopy",
            "/tmp/a:",
            "/tmp/a:loud",
        ] {
            let error = OutputTo::parse(text.into()).unwrap_err().to_string();
            assert!(error.starts_with("a folder"), "{text}: {error}");
        }
    }
}

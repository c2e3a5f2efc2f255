//! The manifest of a checkpoint: the job's description, and length and CRC-32 of each file.
//!
//! The manifest is text with one entry per line. The last line is the CRC-32 of all earlier lines,
//! so a truncated or changed manifest is detected.

use crate::description::Description;
use crate::words::{decode, encode};
use std::ffi::{OsStr, OsString};
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

/// The first line of a manifest: the format and its version.
const FIRST: &str = "portcullis checkpoint 1";

/// A file that a rank has saved in a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileEntry {
    /// The rank; for images of processes, the number of the host that has written them.
    pub rank: u32,
    /// The path of the file, relative to the rank's folder.
    pub name: OsString,
    pub len: u64,
    pub crc: u32,
}

/// The contents of a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The component that took the checkpoint: `self` or `criu`.
    pub component: String,
    pub number: u64,
    /// The number of the point at which all ranks took the checkpoint.
    pub point: u64,
    /// The version of the Portcullis library.
    pub library: String,
    pub job: Description,
    /// What the component needs for a restart beyond the files, as names with values.
    pub system: Vec<(String, OsString)>,
    /// The host of each rank; only for output to users.
    pub hosts: Vec<OsString>,
    pub files: Vec<FileEntry>,
}

/// The reasons why a text is not a valid manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ManifestError {
    /// The text is truncated or was changed.
    Damaged,
    /// The manifest has another format version; `line` is its first line.
    Version { line: String },
    /// This line is malformed or missing.
    Line { line: String },
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestError::Damaged => f.write_str("its manifest is damaged"),
            ManifestError::Version { line } => {
                write!(
                    f,
                    "its manifest begins \"{}\", which is not of this version",
                    printable::name(line)
                )
            }
            ManifestError::Line { line } => {
                write!(
                    f,
                    "its manifest has no valid line \"{}\"",
                    printable::name(line)
                )
            }
        }
    }
}

impl Manifest {
    /// Returns the number of ranks of the job.
    pub fn ranks(&self) -> u32 {
        self.job.ranks()
    }

    /// Returns the total size in bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.files
            .iter()
            .fold(0, |sum, file| sum.saturating_add(file.len))
    }

    /// Returns the value of an entry in `system`.
    pub fn system(&self, name: &str) -> Option<&OsStr> {
        let mut entries = self.system.iter();
        let entry = entries.find(|(present, _)| present == name);
        entry.map(|(_, value)| value.as_os_str())
    }

    /// Returns the path of a file below the checkpoint's folder.
    pub fn path_of(&self, file: &FileEntry) -> PathBuf {
        let folder = match self.component.as_str() {
            crate::criu::NAME => crate::criu::images_of(file.rank),
            _ => format!("rank-{}", file.rank),
        };
        Path::new(&folder).join(&file.name)
    }

    /// Returns the manifest as text.
    pub fn write(&self) -> String {
        let mut text = format!(
            "{FIRST}\ncomponent {}\nnumber {}\npoint {}\nlibrary {}\njob {}\n",
            self.component,
            self.number,
            self.point,
            self.library,
            self.job.write()
        );
        let mut line = |line: fmt::Arguments<'_>| {
            // A write to a `String` does not fail.
            let _ = writeln!(text, "{line}");
        };
        for (name, value) in &self.system {
            line(format_args!("system {name} {}", encode(value)));
        }
        for host in &self.hosts {
            line(format_args!("host {}", encode(host)));
        }
        for file in &self.files {
            let FileEntry {
                rank,
                name,
                len,
                crc,
            } = file;
            line(format_args!("file {rank} {len} {crc:08x} {}", encode(name)));
        }
        let sum = crc32fast::hash(text.as_bytes());
        text + &format!("end {sum:08x}\n")
    }

    /// Parses the text that [`Manifest::write`] returns.
    pub fn read(bytes: &[u8]) -> Result<Manifest, ManifestError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ManifestError::Damaged)?;
        let body = text.strip_suffix('\n').ok_or(ManifestError::Damaged)?;
        let (_, last) = body.rsplit_once('\n').ok_or(ManifestError::Damaged)?;
        let body = &text[..text.len() - last.len() - 1];
        let sum = last
            .strip_prefix("end ")
            .and_then(|sum| u32::from_str_radix(sum, 16).ok());
        if sum != Some(crc32fast::hash(body.as_bytes())) {
            return Err(ManifestError::Damaged);
        }
        let mut lines = body.lines();
        let first = lines.next().unwrap_or_default();
        if first != FIRST {
            return Err(ManifestError::Version { line: first.into() });
        }
        Manifest::read_lines(lines)
    }

    fn read_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Manifest, ManifestError> {
        let mut lines = lines.peekable();
        let mut next = |name: &str| {
            let line = lines.next_if(|line| line.split(' ').next() == Some(name));
            let value = line.and_then(|line| line.strip_prefix(name)?.strip_prefix(' '));
            value.ok_or_else(|| ManifestError::Line { line: name.into() })
        };
        let number = |text: &str, name: &str| {
            text.parse::<u64>()
                .map_err(|_| ManifestError::Line { line: name.into() })
        };
        let component = next("component")?.to_owned();
        let set = number(next("number")?, "number")?;
        let point = number(next("point")?, "point")?;
        let library = next("library")?.to_owned();
        let job = Description::read(next("job")?);
        let job = job.ok_or_else(|| ManifestError::Line { line: "job".into() })?;
        let (mut hosts, mut files, mut system) = (Vec::new(), Vec::new(), Vec::new());
        for line in lines {
            let wrong = || ManifestError::Line { line: line.into() };
            match line.split_once(' ') {
                Some(("system", entry)) => {
                    let (name, value) = entry.split_once(' ').ok_or_else(wrong)?;
                    system.push((name.to_owned(), decode(value).ok_or_else(wrong)?));
                }
                Some(("host", host)) => hosts.push(decode(host).ok_or_else(wrong)?),
                Some(("file", file)) => files.push(read_file(file).ok_or_else(wrong)?),
                _ => return Err(wrong()),
            }
        }
        let ranks = job.ranks();
        // Hosts of images may be more than the ranks of the job: spawned jobs are part of the images.
        let has_hosts = component == crate::criu::NAME;
        let beyond = |file: &&FileEntry| !has_hosts && file.rank >= ranks;
        if let Some(file) = files.iter().find(beyond) {
            let line = format!("file {}", file.rank);
            return Err(ManifestError::Line { line });
        }
        Ok(Manifest {
            component,
            number: set,
            point,
            library,
            job,
            system,
            hosts,
            files,
        })
    }
}

/// Parses a file entry: rank, length, checksum, name. Rejects names outside the rank's folder.
pub fn read_file(text: &str) -> Option<FileEntry> {
    let mut words = text.split(' ');
    let (rank, len) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let crc = u32::from_str_radix(words.next()?, 16).ok()?;
    let name = decode(words.next()?)?;
    let path = std::path::Path::new(&name);
    let plain = |part| matches!(part, std::path::Component::Normal(_));
    let stays = !name.is_empty() && path.components().all(plain);
    (stays && words.next().is_none()).then_some(FileEntry {
        rank,
        name,
        len,
        crc,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::description::Program;

    pub(crate) fn example(number: u64, files: Vec<FileEntry>) -> Manifest {
        Manifest {
            component: "self".into(),
            number,
            point: 41,
            library: "1".into(),
            job: Description {
                programs: vec![Program {
                    procs: 2,
                    fingerprint: "9:00000001".into(),
                    dir: None,
                    program: "./stencil".into(),
                    args: vec!["two words".into()],
                }],
            },
            system: Vec::new(),
            hosts: vec!["a".into(), "b".into()],
            files,
        }
    }

    fn file(rank: u32, name: &str) -> FileEntry {
        FileEntry {
            rank,
            name: name.into(),
            len: 10,
            crc: 0xfeed,
        }
    }

    #[test]
    fn a_manifest_comes_back_from_its_text() {
        let manifest = example(7, vec![file(0, "data"), file(1, "part/two words")]);
        assert_eq!(
            Manifest::read(manifest.write().as_bytes()),
            Ok(manifest.clone())
        );
        assert_eq!((manifest.ranks(), manifest.bytes()), (2, 20));
    }

    #[test]
    fn images_have_a_folder_and_entries_of_their_own() {
        let mut manifest = example(7, vec![file(0, "pages-1.img")]);
        let entry = &manifest.files[0];
        assert_eq!(manifest.path_of(entry), Path::new("rank-0/pages-1.img"));
        manifest.component = "criu".into();
        manifest.system = vec![("kernel".into(), "6.1 of a host".into())];
        let read = Manifest::read(manifest.write().as_bytes());
        assert_eq!(read, Ok(manifest.clone()));
        assert_eq!(manifest.system("kernel"), Some("6.1 of a host".as_ref()));
        assert_eq!(manifest.system("criu"), None);
        let entry = &manifest.files[0];
        assert_eq!(manifest.path_of(entry), Path::new("images/pages-1.img"));
    }

    #[test]
    fn a_manifest_that_was_cut_or_changed_at_any_byte_is_refused() {
        let text = example(7, vec![file(0, "data")]).write().into_bytes();
        for at in 0..text.len() {
            assert!(Manifest::read(&text[..at]).is_err(), "cut at {at}");
            let mut changed = text.clone();
            changed[at] ^= 1;
            // Upper and lower case of a hexadecimal digit encode the same checksum.
            if !changed[at].eq_ignore_ascii_case(&text[at]) {
                assert!(Manifest::read(&changed).is_err(), "changed at {at}");
            }
        }
    }

    #[test]
    fn a_file_outside_of_its_folder_is_refused() {
        let sealed = |name: &str| example(7, vec![file(0, name)]).write();
        for name in ["../data", "/etc/passwd", "a/../b"] {
            assert!(Manifest::read(sealed(name).as_bytes()).is_err(), "{name}");
        }
        let other = example(7, vec![file(2, "data")]).write();
        assert!(
            Manifest::read(other.as_bytes()).is_err(),
            "a rank that the job has not"
        );
    }
}

//! The waveform file that a user names,
//! and next to it a save file for GTKWave and a command file for Surfer.
//!
//! [`WaveFiles::named`] is called before a run,
//! so that an unusable name is reported before the run.

use crate::dump::Form;
use crate::view::Written;
use crate::{channel_vcd, gtkw, surfer, vcd};
use barrier_board::event::{ChannelRecord, Record};
use rustix::fs::Access;
use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// The files for the viewers: extension and description of each.
const BESIDE: [(&str, &str); 2] = [
    ("gtkw", "GTKWave's save file"),
    ("sucl", "Surfer's command file"),
];

/// The paths of a waveform and of the viewers' files beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaveFiles {
    dump: PathBuf,
    /// The waveform's full path; from a relative path, a viewer would look in its own working
    /// directory.
    full: String,
    /// The path of GTKWave's save file.
    save: PathBuf,
    /// The path of Surfer's command file.
    commands: PathBuf,
}

/// The reason why a waveform cannot be written.
#[derive(Debug)]
pub enum WaveError {
    /// The waveform's name equals that of a viewer's file, which would overwrite the waveform.
    Beside {
        /// The waveform's name.
        dump: PathBuf,
        /// Description of the viewer's file.
        what: &'static str,
    },
    /// A file cannot be written.
    File {
        /// The path of that file.
        path: PathBuf,
        /// The error that the system reported.
        reason: io::Error,
    },
}

impl fmt::Display for WaveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Beside { dump, what } => write!(
                f,
                "the waveform cannot go to {}: a file of that name is {what}, and the waveform would overwrite it; give a name that ends in .vcd or .fst",
                dump.display()
            ),
            Self::File { path, reason } => write!(f, "cannot write {}: {reason}", path.display()),
        }
    }
}

impl std::error::Error for WaveError {}

impl WaveFiles {
    /// Checks that the waveform can be written at this path, without writing anything.
    pub fn named(dump: &Path) -> Result<Self, WaveError> {
        let ending = dump.extension().unwrap_or_default();
        if let Some((_, what)) = BESIDE
            .iter()
            .find(|(own, _)| ending.eq_ignore_ascii_case(own))
        {
            return Err(WaveError::Beside {
                dump: dump.to_owned(),
                what,
            });
        }
        let full = std::path::absolute(dump).map_err(|reason| failed(dump, reason))?;
        let files = Self {
            dump: dump.to_owned(),
            save: dump.with_extension(BESIDE[0].0),
            commands: dump.with_extension(BESIDE[1].0),
            full: full.to_string_lossy().into_owned(),
        };
        for path in [&files.dump, &files.save, &files.commands] {
            check_writable(path)?;
        }
        Ok(files)
    }

    /// Returns the path of the waveform.
    pub fn dump(&self) -> &Path {
        &self.dump
    }

    /// Returns the command lines that open the waveform with GTKWave and with Surfer.
    pub fn commands(&self) -> [String; 2] {
        // If the command file cannot name the waveform, the command line names it.
        let dump = match surfer::names_the_dump(&self.full) {
            true => String::new(),
            false => format!(" {}", self.dump.display()),
        };
        [
            format!("gtkwave {}", self.save.display()),
            format!("surfer --command-file {}{dump}", self.commands.display()),
        ]
    }

    /// Writes the record of a board of version 1.
    pub fn write(&self, record: &Record) -> Result<(), WaveError> {
        self.dumped(|sink| vcd::write_as(sink, record, self.form()))?;
        self.beside(
            |save| gtkw::write(save, &self.full, record),
            |commands| surfer::write(commands, &self.full, record),
        )
    }

    /// Writes the record of a board of version 2.
    pub fn write_channels(&self, record: &ChannelRecord) -> Result<(), WaveError> {
        let shown = self.dumped(|sink| channel_vcd::write_as(sink, record, self.form()))?;
        self.beside(
            |save| gtkw::write_channels(save, &self.full, &shown),
            |commands| surfer::write_channels(commands, &self.full, &shown),
        )
    }

    /// Writes a waveform that `draw` draws in the given format; returns the number of changes.
    pub fn write_drawing(
        &self,
        draw: impl FnOnce(&mut BufWriter<File>, Form) -> io::Result<Written>,
    ) -> Result<usize, WaveError> {
        let Written {
            changes,
            view,
            groups,
        } = self.dumped(|sink| draw(sink, self.form()))?;
        self.beside(
            |save| gtkw::write_groups(save, &self.full, view, &groups),
            |commands| surfer::write_groups(commands, &self.full, view, &groups),
        )?;
        Ok(changes)
    }

    fn form(&self) -> Form {
        Form::of(&self.dump)
    }

    fn dumped<T>(
        &self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
    ) -> Result<T, WaveError> {
        written(&self.dump, write)
    }

    fn beside(
        &self,
        save: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
        commands: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), WaveError> {
        written(&self.save, save)?;
        written(&self.commands, commands)
    }
}

fn failed(path: &Path, reason: io::Error) -> WaveError {
    WaveError::File {
        path: path.to_owned(),
        reason,
    }
}

fn written<T>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> Result<T, WaveError> {
    File::create(path)
        .map(BufWriter::new)
        .and_then(|mut sink| {
            let result = write(&mut sink)?;
            sink.flush().map(|()| result)
        })
        .map_err(|reason| failed(path, reason))
}

/// Checks that a file can be written or created, without writing anything.
pub fn check_writable(path: &Path) -> Result<(), WaveError> {
    may_write(path).map_err(|reason| failed(path, reason))
}

fn may_write(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if path.exists() {
        return Ok(rustix::fs::access(path, Access::WRITE_OK)?);
    }
    let folder = match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => return Err(io::ErrorKind::InvalidFilename.into()),
    };
    if !folder.is_dir() {
        return Err(io::Error::other(format!(
            "there is no folder {}",
            folder.display()
        )));
    }
    Ok(rustix::fs::access(folder, Access::WRITE_OK)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use barrier_board::event::{Event, LineChange, What};

    fn refusal(path: &Path) -> String {
        match WaveFiles::named(path) {
            Ok(files) => format!("{files:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_viewers_file_is_never_overwritten_by_the_waveform() {
        for (name, what) in [
            ("a.gtkw", "GTKWave's"),
            ("A.GTKW", "GTKWave's"),
            ("a.sucl", "Surfer's"),
        ] {
            let said = refusal(Path::new(name));
            assert!(
                said.contains(what) && said.contains(".vcd or .fst"),
                "{said}"
            );
        }
    }

    #[test]
    fn a_name_that_cannot_be_written_is_refused_and_nothing_is_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing");
        let said = refusal(&missing.join("a.vcd"));
        let expected = format!("there is no folder {}", missing.display());
        assert!(said.ends_with(&expected), "{said}");
        let said = refusal(folder.path());
        assert!(said.ends_with("is a directory"), "{said}");
        assert!(WaveFiles::named(&folder.path().join("a.vcd")).is_ok());
        let made = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(made, 0);
    }

    /// Returns true if the file begins with the header block of an FST: block type, length, and a
    /// constant that shows the byte order.
    fn is_fst(path: &Path) -> bool {
        let bytes = std::fs::read(path).expect("a waveform");
        let known = std::f64::consts::E.to_le_bytes();
        bytes.starts_with(&[0, 0, 0, 0, 0, 0, 0, 1, 73]) && bytes[25..33] == known
    }

    #[test]
    fn a_name_that_ends_in_fst_is_an_fst_of_either_version() {
        let folder = tempfile::tempdir().expect("a folder");
        let record = Record {
            nodes: 2,
            events: vec![Event {
                at_ns: 5,
                what: What::Release { high: true },
            }],
            dropped: 1,
        };
        let channels = ChannelRecord {
            nodes: 2,
            changes: vec![LineChange {
                at_ps: 7_000,
                node: 1,
                line: 0,
                high: true,
            }],
            dropped: 1,
        };
        for name in ["a.fst", "a.vcd"] {
            let path = folder.path().join(name);
            let files = WaveFiles::named(&path).expect("a writable name");
            files.write(&record).expect("a disk");
            assert_eq!(is_fst(&path), name.ends_with("fst"), "{name}");
            files.write_channels(&channels).expect("a disk");
            assert_eq!(is_fst(&path), name.ends_with("fst"), "{name}");
            let save = std::fs::read_to_string(path.with_extension("gtkw")).expect("text");
            // In an FST a text is a vector.
            assert_eq!(
                save.contains("serial.phase[383:0]"),
                name.ends_with("fst"),
                "{save}"
            );
        }
    }
}

//! Folder of a recording (`--record`): one file for each rank, `rank.0`, `rank.1`, and so on.

use mpi_base::param::PREFIX;
use mpi_core::record::{RECORD, REPLAY};
use printable::name;
use std::ffi::OsString;
use std::fmt;
use std::fs;
use std::path::Path;

/// The reason why the folder of a recording cannot be used.
#[derive(Debug)]
pub enum RecordingError {
    /// The folder contains other files, which must not be deleted.
    NotOurs {
        folder: String,
        file: String,
    },
    Folder {
        folder: String,
        doing: &'static str,
        why: String,
    },
    Empty {
        folder: String,
    },
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RecordingError::NotOurs { folder, file } => write!(
                f,
                "--record {}: the folder has {} in it, which is no recording; name a folder of its own",
                name(folder),
                name(file)
            ),
            RecordingError::Folder { folder, doing, why } => {
                write!(f, "the folder {} cannot be {doing}: {why}", name(folder))
            }
            RecordingError::Empty { folder } => {
                write!(
                    f,
                    "--replay {}: there is no recording (no file rank.0)",
                    name(folder)
                )
            }
        }
    }
}

impl std::error::Error for RecordingError {}

/// Creates the folder, and removes an earlier recording from it.
pub fn make_room(folder: &Path) -> Result<(), RecordingError> {
    let trouble = |doing| {
        move |error: std::io::Error| RecordingError::Folder {
            folder: folder.display().to_string(),
            doing,
            why: error.to_string(),
        }
    };
    fs::create_dir_all(folder).map_err(trouble("made"))?;
    let mut earlier = Vec::new();
    for entry in fs::read_dir(folder).map_err(trouble("read"))? {
        let entry = entry.map_err(trouble("read"))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let rank = name.strip_prefix("rank.").map(str::parse::<u32>);
        if !matches!(rank, Some(Ok(_))) {
            return Err(RecordingError::NotOurs {
                folder: folder.display().to_string(),
                file: name,
            });
        }
        earlier.push(entry.path());
    }
    earlier
        .iter()
        .try_for_each(fs::remove_file)
        .map_err(trouble("emptied"))
}

/// Checks that the folder contains a recording.
pub fn is_there(folder: &Path) -> Result<(), RecordingError> {
    match folder.join("rank.0").is_file() {
        true => Ok(()),
        false => Err(RecordingError::Empty {
            folder: folder.display().to_string(),
        }),
    }
}

/// Returns true if ranks with this environment record or replay.
pub fn is_asked_for(env: &[(OsString, OsString)]) -> bool {
    [RECORD.about(), REPLAY.about()].iter().any(|about| {
        let name = OsString::from(format!("{PREFIX}{}", about.full_name()));
        let mut set = env.iter().filter(|(_, value)| !value.is_empty());
        set.any(|(known, _)| *known == name)
    })
}

//! The folder of a job's checkpoints: `DIR/7` is checkpoint 7, with a file `manifest` and a folder `rank-R` for each rank.
//!
//! A checkpoint is written in `DIR/7.tmp`. First, all files are written and synced.
//! Then the manifest is written, synced and renamed. Then the folder is renamed to `DIR/7`.
//! This last rename is the commit: a kill before it leaves the previous checkpoint as the newest.
//! Older checkpoints are renamed to `N.old` before their removal,
//! so no reader uses a partially removed checkpoint.
//!
//! Readers skip names with a suffix and incomplete checkpoints ([`Damage`]).
//! A checkpoint number is never used twice.
//! The writer holds a lock on `DIR/lock`; two jobs never write to one folder.

mod disk;
mod error;
#[cfg(test)]
mod tests;

pub use disk::{Disk, FileSystem};
pub use error::{Damage, StoreError};

use crate::description::{Description, checksum};
use crate::manifest::{FileEntry, Manifest};
use rustix::fs::{FlockOperation, flock};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "manifest";
const UNFINISHED: &str = ".tmp";
const OUTDATED: &str = ".old";

/// A folder of checkpoints, for reading and writing.
#[derive(Debug)]
pub struct Store<D: Disk = FileSystem> {
    dir: PathBuf,
    disk: D,
    /// The file `DIR/lock`, locked while this process may write.
    lock: Option<File>,
    /// The highest number of an abandoned draft, which is not given again.
    abandoned: u64,
}

/// A checkpoint that is being written.
#[derive(Debug)]
pub struct Draft {
    pub number: u64,
    /// The folder `DIR/N.tmp`, which is renamed at the commit.
    pub folder: PathBuf,
}

/// A complete checkpoint, and the checkpoints skipped in the search for it.
#[derive(Debug)]
pub struct Found {
    pub folder: PathBuf,
    pub manifest: Manifest,
    pub skipped: Vec<(String, Damage)>,
}

impl Store {
    /// Opens a folder of checkpoints, which need not exist yet.
    pub fn new(dir: &Path) -> Store {
        Store::on(dir, FileSystem)
    }
}

/// Returns the folder of a rank's files in a checkpoint.
pub fn rank_folder(set: &Path, rank: u32) -> PathBuf {
    set.join(format!("rank-{rank}"))
}

impl<D: Disk> Store<D> {
    /// Opens a folder like [`Store::new`], with another implementation of [`Disk`].
    pub fn on(dir: &Path, disk: D) -> Store<D> {
        Store {
            dir: dir.to_owned(),
            disk,
            lock: None,
            abandoned: 0,
        }
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> StoreError {
        let folder = self.dir.display().to_string();
        move |error| StoreError::System {
            folder,
            doing,
            error,
        }
    }

    /// Returns the checkpoints in the folder as number and suffix, the highest number first.
    /// Other names in the folder are ignored.
    fn names(&self) -> io::Result<Vec<(u64, String)>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else { continue };
            let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, ending) = name.split_at(digits);
            if let (Ok(number), "" | UNFINISHED | OUTDATED) = (number.parse(), ending) {
                names.push((number, ending.to_owned()));
            }
        }
        names.sort_unstable_by(|one, other| other.cmp(one));
        Ok(names)
    }

    /// Returns the newest complete checkpoint.
    pub fn newest(&self) -> Result<Found, StoreError> {
        let names = self.names().map_err(self.failed("read"))?;
        let mut skipped = Vec::new();
        for (number, ending) in names {
            if ending == OUTDATED {
                continue;
            }
            let set = format!("{number}{ending}");
            let read = match ending.as_str() {
                "" => self.read(number),
                _ => Err(Damage::Unfinished),
            };
            match read {
                Ok(manifest) => {
                    return Ok(Found {
                        folder: self.dir.join(set),
                        manifest,
                        skipped,
                    });
                }
                Err(damage) => skipped.push((set, damage)),
            }
        }
        Err(StoreError::NoneWhole {
            folder: self.dir.display().to_string(),
            found: skipped,
        })
    }

    /// Returns the checkpoint with this number. Fails if that checkpoint is not complete.
    pub fn numbered(&self, number: u64) -> Result<Found, StoreError> {
        let folder = self.dir.join(number.to_string());
        match self.read(number) {
            Ok(manifest) => Ok(Found {
                folder,
                manifest,
                skipped: Vec::new(),
            }),
            Err(damage) => Err(StoreError::NotWhole {
                set: folder.display().to_string(),
                damage,
            }),
        }
    }

    /// Reads the manifest of a checkpoint, and checks the existence and length of all files.
    fn read(&self, number: u64) -> Result<Manifest, Damage> {
        let set = self.dir.join(number.to_string());
        let manifest = read_manifest(&set)?;
        if manifest.number != number {
            return Err(Damage::Renamed(manifest.number));
        }
        for file in &manifest.files {
            let below = manifest.path_of(file);
            let (path, shown) = (set.join(&below), || below.display().to_string());
            let found = fs::metadata(&path).map_err(|error| Damage::NoFile {
                file: shown(),
                error,
            })?;
            if found.len() != file.len {
                return Err(Damage::Length {
                    file: shown(),
                    has: found.len(),
                    had: file.len,
                });
            }
        }
        Ok(manifest)
    }

    /// Checks before the start of a job that it can write its checkpoints to this folder.
    /// The checkpoints in the folder must belong to the same job.
    pub fn admit(&self, job: &Description) -> Result<(), StoreError> {
        fs::create_dir_all(&self.dir).map_err(self.failed("made"))?;
        let probe = self
            .dir
            .join(format!(".{}{UNFINISHED}", std::process::id()));
        // A killed mpirun with the same process number may have left it.
        let _ = fs::remove_dir_all(&probe);
        let written = self.disk.make_folder(&probe);
        written.map_err(self.failed("written to"))?;
        self.disk
            .remove(&probe)
            .map_err(self.failed("written to"))?;
        match self.newest() {
            Ok(found) => found.fits(job),
            Err(StoreError::NoneWhole { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Begins the next checkpoint: takes the lock, removes incomplete or outdated checkpoints,
    /// and creates the folder of the new checkpoint.
    pub fn begin(&mut self) -> Result<Draft, StoreError> {
        self.begin_after(|disk, left| left.iter().try_for_each(|path| disk.remove(path)))
    }

    /// As [`Store::begin`], with another function that removes the incomplete and outdated checkpoints.
    pub fn begin_after(
        &mut self,
        clear: impl FnOnce(&D, Vec<PathBuf>) -> io::Result<()>,
    ) -> Result<Draft, StoreError> {
        self.take_lock()?;
        let names = self.names().map_err(self.failed("read"))?;
        let left = names.iter().filter(|(_, ending)| !ending.is_empty());
        let left = left.map(|(number, ending)| self.dir.join(format!("{number}{ending}")));
        clear(&self.disk, left.collect()).map_err(self.failed("cleared"))?;
        self.check_space(&names)?;
        let highest = names.first().map_or(0, |(number, _)| *number);
        let highest = highest.max(self.abandoned);
        let number = highest.saturating_add(1);
        let folder = self.dir.join(format!("{number}{UNFINISHED}"));
        let made = self.disk.make_folder(&folder);
        made.map_err(self.failed("written to"))?;
        Ok(Draft { number, folder })
    }

    fn take_lock(&mut self) -> Result<(), StoreError> {
        if self.lock.is_some() {
            return Ok(());
        }
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(self.dir.join("lock"));
        let file = file.map_err(self.failed("written to"))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| StoreError::InUse {
            folder: self.dir.display().to_string(),
        })?;
        self.lock = Some(file);
        Ok(())
    }

    /// Checks that the file system has space for a checkpoint of the same size as the last one.
    fn check_space(&self, names: &[(u64, String)]) -> Result<(), StoreError> {
        let last = names.iter().find(|(_, ending)| ending.is_empty());
        let last =
            last.and_then(|(number, _)| read_manifest(&self.dir.join(number.to_string())).ok());
        let Some(last) = last.map(|manifest| manifest.bytes()) else {
            return Ok(());
        };
        let Ok(system) = rustix::fs::statvfs(&self.dir) else {
            return Ok(());
        };
        let free = system.f_bavail.saturating_mul(system.f_frsize);
        match free < last {
            true => Err(StoreError::Full {
                folder: self.dir.display().to_string(),
                free,
                last,
            }),
            false => Ok(()),
        }
    }

    /// Commits a checkpoint whose files are written and synced. Returns its folder.
    /// The caller then removes older checkpoints ([`Store::prune`]).
    pub fn commit(&self, draft: &Draft, manifest: &Manifest) -> Result<PathBuf, StoreError> {
        let set = self.dir.join(draft.number.to_string());
        let written = self.write(draft, manifest, &set);
        written.map_err(self.failed("written to"))?;
        Ok(set)
    }

    fn write(&self, draft: &Draft, manifest: &Manifest, set: &Path) -> io::Result<()> {
        let (disk, folder) = (&self.disk, &draft.folder);
        let first = folder.join(format!("{MANIFEST}{UNFINISHED}"));
        disk.write(&first, manifest.write().as_bytes())?;
        disk.rename(&first, &folder.join(MANIFEST))?;
        disk.sync_folder(folder)?;
        disk.rename(folder, set)?;
        disk.sync_folder(&self.dir)
    }

    /// Removes all but the newest `keep` checkpoints. The next checkpoint retries a failed removal.
    pub fn prune(&self, keep: usize) -> io::Result<()> {
        let names = self.names()?.into_iter();
        let whole = names.filter(|(_, ending)| ending.is_empty());
        for (number, _) in whole.skip(keep.max(1)) {
            let outdated = self.dir.join(format!("{number}{OUTDATED}"));
            self.disk
                .rename(&self.dir.join(number.to_string()), &outdated)?;
            self.disk.remove(&outdated)?;
        }
        Ok(())
    }

    /// Leaves a draft to which another host may still write. Its number is not given again.
    pub fn abandon(&mut self, draft: &Draft) {
        self.abandoned = self.abandoned.max(draft.number);
    }

    /// Removes an uncommitted checkpoint.
    pub fn discard(&self, draft: &Draft) {
        // Readers skip a partial removal, and the next call of `begin` completes it.
        let _ = self.disk.remove(&draft.folder);
    }
}

impl Found {
    /// Checks that the checkpoint belongs to this job.
    pub fn fits(&self, job: &Description) -> Result<(), StoreError> {
        match self.manifest.job.difference(job) {
            Some(difference) => Err(StoreError::Other {
                set: self.folder.display().to_string(),
                difference,
            }),
            None => Ok(()),
        }
    }
}

/// Reads the manifest of a checkpoint.
pub fn read_manifest(set: &Path) -> Result<Manifest, Damage> {
    let bytes = fs::read(set.join(MANIFEST)).map_err(Damage::NoManifest)?;
    Manifest::read(&bytes).map_err(Damage::Manifest)
}

/// Checks the length and CRC-32 of each file of a rank.
/// The images of all processes count as files of rank 0.
pub fn verify(set: &Path, manifest: &Manifest, rank: u32) -> Result<(), Damage> {
    for file in manifest.files.iter().filter(|file| file.rank == rank) {
        let below = manifest.path_of(file);
        let (path, shown) = (set.join(&below), || below.display().to_string());
        let (len, crc) = checksum(&path).map_err(|error| Damage::NoFile {
            file: shown(),
            error,
        })?;
        if len != file.len {
            return Err(Damage::Length {
                file: shown(),
                has: len,
                had: file.len,
            });
        }
        if crc != file.crc {
            return Err(Damage::Checksum { file: shown() });
        }
    }
    Ok(())
}

/// Syncs all files and folders in a rank's folder. Returns the files with their CRC-32s.
pub fn seal(folder: &Path, rank: u32) -> io::Result<Vec<FileEntry>> {
    let (mut files, mut open) = (Vec::new(), vec![OsString::new()]);
    while let Some(below) = open.pop() {
        let path = folder.join(&below);
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            let name = Path::new(&below).join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                open.push(name.into_os_string());
            } else if kind.is_file() {
                File::open(entry.path())?.sync_all()?;
                let (len, crc) = checksum(&entry.path())?;
                let name = name.into_os_string();
                files.push(FileEntry {
                    rank,
                    name,
                    len,
                    crc,
                });
            } else {
                let what = format!("{} is neither a file nor a folder", entry.path().display());
                return Err(io::Error::other(what));
            }
        }
        File::open(&path)?.sync_all()?;
    }
    files.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(files)
}

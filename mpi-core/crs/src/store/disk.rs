//! The steps of writing, each of which a kill may follow; tests stop after any of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// What a store does to a file system.
pub trait Disk {
    /// Creates a folder that does not exist.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Creates a file with these bytes and writes them to the medium.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Writes the entries of a folder to the medium.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Renames a file or a folder; replaces a file.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a folder with all that is in it.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem;

impl Disk for FileSystem {
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }
}

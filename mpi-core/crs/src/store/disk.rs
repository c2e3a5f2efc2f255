//! The file-system operations of a store; tests simulate a kill after any of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// The file-system operations of a [`Store`](super::Store).
pub trait Disk {
    /// Creates a folder; fails if it exists.
    fn make_folder(&self, path: &Path) -> io::Result<()>;
    /// Creates a file with these bytes and syncs it.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Syncs the directory entries of a folder.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Renames a file or a folder; an existing file is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a folder and all of its contents.
    fn remove(&self, path: &Path) -> io::Result<()>;
}

/// The real file system.
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

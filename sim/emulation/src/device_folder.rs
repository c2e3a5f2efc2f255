//! A folder of emulated device files such as `uio0` and `uio1`,
//! by a file system in user space (FUSE).
//! The file system is mounted until the [`DeviceFolder`] is dropped.

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileType, Filesystem, Generation, INodeNo,
    ReplyAttr, ReplyEntry,
};
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

/// Time for which the kernel may cache the files' attributes, which never change.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// A mounted file system; dropping it unmounts it.
#[derive(Debug)]
pub(crate) struct DeviceFolder {
    _session: BackgroundSession,
    names: DeviceFiles,
    // The folder is dropped last: it cannot be removed while a file system is mounted over it.
    folder: TempDir,
}

impl DeviceFolder {
    /// Mounts a file system with these files over a temporary folder.
    ///
    /// The mount needs /dev/fuse and the right to mount:
    /// root, or root in a new user and mount namespace.
    pub fn mount(files: impl Filesystem + 'static, names: DeviceFiles) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let session = fuser::spawn_mount(files, &folder, &Config::default())?;
        Ok(Self {
            _session: session,
            names,
            folder,
        })
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the path of the file with this number.
    pub fn file(&self, number: usize) -> PathBuf {
        self.path().join(self.names.name(number))
    }
}

impl Drop for DeviceFolder {
    /// Detaches the file system from the file tree, even while a process has one of its files open.
    ///
    /// A child process holds this process's open files between fork and `execve`.
    /// During that time the unmount of [`fuser`] fails with EBUSY, and the folder would remain.
    /// Without the right to unmount (EPERM), fuser calls `fusermount`.
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.path(), rustix::mount::UnmountFlags::DETACH);
    }
}

/// The names of the files of a [`DeviceFolder`]: a prefix and a number from 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DeviceFiles {
    pub prefix: &'static str,
    pub count: usize,
}

impl DeviceFiles {
    fn name(self, number: usize) -> String {
        format!("{}{number}", self.prefix)
    }

    /// Returns the index of a file from its inode number;
    /// the inode number of file 0 follows the root's.
    pub fn number(self, file: INodeNo) -> Option<usize> {
        let number = usize::try_from(file.0.checked_sub(INodeNo::ROOT.0 + 1)?).ok()?;
        (number < self.count).then_some(number)
    }

    /// Answers a request that looks up a file by its name.
    pub fn lookup(self, wanted: &OsStr, reply: ReplyEntry) {
        match (0..self.count).find(|&number| wanted.to_str() == Some(&self.name(number))) {
            Some(number) => {
                let file = INodeNo(INodeNo::ROOT.0 + 1 + number as u64);
                let attributes = attributes(file, FileType::RegularFile, 0o600);
                reply.entry(&FOR_EVER, &attributes, Generation(0));
            }
            None => reply.error(Errno::ENOENT),
        }
    }

    /// Answers a request for the attributes of the folder or of a file.
    pub fn getattr(self, file: INodeNo, reply: ReplyAttr) {
        if file == INodeNo::ROOT {
            reply.attr(&FOR_EVER, &attributes(file, FileType::Directory, 0o700));
        } else if self.number(file).is_some() {
            reply.attr(&FOR_EVER, &attributes(file, FileType::RegularFile, 0o600));
        } else {
            reply.error(Errno::ENOENT);
        }
    }
}

fn attributes(file: INodeNo, kind: FileType, perm: u16) -> FileAttr {
    FileAttr {
        ino: file,
        size: 0,
        blocks: 0,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        rdev: 0,
        blksize: 512,
        flags: 0,
    }
}

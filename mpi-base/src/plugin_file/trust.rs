//! Trust in plugin folders and files: only trusted users may have write access.
//!
//! A plugin has all rights of the process,
//! so a user with write access to its file or folder has these rights, too.
//! Trusted users are root, the user of the process, and the owner of the installation,
//! because they can also write the library.

use crate::privilege;
use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Permission bits for write access (inode(7)).
const GROUP_WRITES: u32 = 0o020;
const OTHERS_WRITE: u32 = 0o002;

/// The reason why a folder or a file is not trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Untrusted {
    /// Every user has write access.
    All {
        /// The permission bits of the file.
        mode: u32,
    },
    /// A group other than the process's group has write access.
    Group {
        /// The group that has write access.
        gid: u32,
        /// The permission bits of the file.
        mode: u32,
    },
    /// The file belongs to a user that is not trusted.
    Owner {
        /// The owner of the file.
        uid: u32,
    },
}

impl fmt::Display for Untrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All { mode } => write!(
                f,
                "every user may write it (mode {mode:04o}), so it is not opened; chmod o-w makes it usable"
            ),
            Self::Group { gid, mode } => write!(
                f,
                "the members of group {gid} may write it (mode {mode:04o}), so it is not opened; chmod g-w makes it usable"
            ),
            Self::Owner { uid } => write!(
                f,
                "it belongs to user {uid}, and not to root, the user of this process or the owner of the installation, so it is not opened"
            ),
        }
    }
}

/// The users and groups whose files are trusted.
pub struct Trust {
    users: Vec<u32>,
    groups: Vec<u32>,
}

impl Trust {
    /// Trusts root, this process's user and group, and owner and group of the installation's folder.
    /// A process with more rights than its user trusts only root,
    /// because its user could create a folder that looks like an installation.
    pub fn of_this_process(installation: Option<&Path>) -> Trust {
        if privilege::is_raised() {
            return Trust {
                users: vec![0],
                groups: vec![0],
            };
        }
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        let owner = installation.and_then(|folder| folder.metadata().ok());
        Trust {
            users: [0, user]
                .into_iter()
                .chain(owner.as_ref().map(Metadata::uid))
                .collect(),
            groups: [0, group]
                .into_iter()
                .chain(owner.as_ref().map(Metadata::gid))
                .collect(),
        }
    }

    /// Checks the owner and the rights of a folder or a file; symbolic links are followed.
    /// A path that cannot be read is accepted here,
    /// because the later attempt to read it reports the error.
    pub fn check(&self, path: &Path) -> Result<(), Untrusted> {
        path.metadata().map_or(Ok(()), |found| {
            self.check_rights(found.uid(), found.gid(), found.mode())
        })
    }

    fn check_rights(&self, uid: u32, gid: u32, mode: u32) -> Result<(), Untrusted> {
        let mode = mode & 0o7777;
        if mode & OTHERS_WRITE != 0 {
            return Err(Untrusted::All { mode });
        }
        if mode & GROUP_WRITES != 0 && !self.groups.contains(&gid) {
            return Err(Untrusted::Group { gid, mode });
        }
        match self.users.contains(&uid) {
            true => Ok(()),
            false => Err(Untrusted::Owner { uid }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_trusted_users_alone_can_write_are_opened() {
        let trust = Trust {
            users: vec![0, 1000, 1001],
            groups: vec![0, 1000],
        };
        for (uid, gid, mode) in [
            (0, 0, 0o100_644),
            (1000, 1000, 0o040_775),
            (1001, 7, 0o100_755),
        ] {
            assert_eq!(trust.check_rights(uid, gid, mode), Ok(()));
        }
        let refused = |uid, gid, mode| trust.check_rights(uid, gid, mode).unwrap_err();
        assert_eq!(refused(0, 0, 0o100_666), Untrusted::All { mode: 0o666 });
        assert_eq!(
            refused(1000, 1000, 0o041_777),
            Untrusted::All { mode: 0o1777 }
        );
        assert_eq!(
            refused(1000, 7, 0o100_664),
            Untrusted::Group {
                gid: 7,
                mode: 0o664
            }
        );
        assert_eq!(
            refused(1002, 1000, 0o100_600),
            Untrusted::Owner { uid: 1002 }
        );
    }
}

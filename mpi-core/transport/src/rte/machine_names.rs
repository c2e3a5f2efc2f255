//! Published service names of processes without a launcher, visible to the same user's processes on this machine.
//!
//! A name is a file in a directory that only this user can access, `$XDG_RUNTIME_DIR/portcullis-names` or `/tmp/portcullis-names-UID`.
//! UID is the effective user ID. A program with raised privileges uses only the directory in `/tmp`, because the user that started the program
//! controls the environment variable.
//! The publisher holds a lock on the file while the name is published.
//! So a name becomes invalid with the end of its process, however the process ends.
//! If a process can lock the file of a name, the publisher has ended; the process then removes the file.
//! The file contains the port name.
//! The file is empty only between its creation and its first write; during this time the name does not exist yet.

use super::RteError;
use mpi_base::{environment, text};
use rustix::fs::{FlockOperation, flock};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Maximum length of a port name in bytes; the rest of a longer file is ignored.
const LONGEST: u64 = 4096;

/// The names that this process has published.
#[derive(Default)]
pub struct MachineNames {
    held: Mutex<HashMap<String, File>>,
}

impl MachineNames {
    /// Publishes a port under a service name. Fails if a running process has published the name.
    pub fn publish(&self, service: &str, port: &str) -> Result<(), RteError> {
        let folder = folder().map_err(|error| failed("publishing", service, error))?;
        let file = claim(&folder.join(file_name(service)), port)
            .map_err(|error| failed("publishing", service, error))?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(service.into(), file);
        Ok(())
    }

    /// Returns the port of a service if a running process of this user has published the service.
    pub fn look_up(service: &str) -> Result<Option<String>, RteError> {
        let read = || -> io::Result<Option<String>> {
            let path = folder()?.join(file_name(service));
            let mut file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
                // The publisher has ended. Another process may have replaced the file since it was opened, so the file is removed only if the path still refers to it.
                remove_if_same(&path, &file);
                return Ok(None);
            }
            let mut port = Vec::new();
            (&mut file).take(LONGEST).read_to_end(&mut port)?;
            Ok((!port.is_empty()).then(|| text::from_bytes(&port)))
        };
        read().map_err(|error| failed("looking up", service, error))
    }

    /// Withdraws a name. Returns false if this process has not published it.
    pub fn unpublish(&self, service: &str) -> Result<bool, RteError> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = held.remove(service) else {
            return Ok(false);
        };
        let folder = folder().map_err(|error| failed("taking back", service, error))?;
        remove_if_same(&folder.join(file_name(service)), &file);
        Ok(true)
    }
}

impl Drop for MachineNames {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Ok(folder) = folder() else { return };
        for (service, file) in held.drain() {
            remove_if_same(&folder.join(file_name(&service)), &file);
        }
    }
}

/// Creates and locks the file of a name, and writes the port to it.
fn claim(path: &Path, port: &str) -> io::Result<File> {
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(0o600).open(path)?;
        if !lock(&file) {
            let why = "another process holds the name";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        // The file may have been removed between opening and locking. Then another file must be created.
        if !is_same(path, &file) {
            continue;
        }
        file.set_len(0)?;
        file.write_all(&text::to_bytes(port))?;
        return Ok(file);
    }
}

/// Locks a file. Returns false if its publisher holds the lock.
/// A reader holds the lock for a short time, so this function retries.
fn lock(file: &File) -> bool {
    const LOOKS: u32 = 20;
    (0..LOOKS).any(|look| {
        if look > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}

/// Returns true if the path refers to this open file.
fn is_same(path: &Path, file: &File) -> bool {
    match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(here)) => (there.dev(), there.ino()) == (here.dev(), here.ino()),
        _ => false,
    }
}

/// Removes the file of a name if the path still refers to it; the caller has locked the file.
fn remove_if_same(path: &Path, file: &File) {
    if is_same(path, file) {
        // If the removal fails, the next process that finds the file unlocked tries again.
        let _ = fs::remove_file(path);
    }
}

/// Returns the directory of this user's names; creates it if necessary.
/// Returns an error if another user owns the directory or can access it.
fn folder() -> io::Result<PathBuf> {
    let me = rustix::process::geteuid().as_raw();
    let folder = match environment::var("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty()) {
        Some(dir) => Path::new(&dir).join("portcullis-names"),
        None => PathBuf::from(format!("/tmp/portcullis-names-{me}")),
    };
    match DirBuilder::new().mode(0o700).create(&folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let why = format!("{}: {error}", folder.display());
            return Err(io::Error::new(error.kind(), why));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(&folder)?;
    if !found.is_dir() || found.uid() != me || found.mode() & 0o077 != 0 {
        let why = format!(
            "{} is not a folder of this user alone (it should have the mode 0700)",
            folder.display()
        );
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(folder)
}

/// Returns the file name for a service name: its first 48 characters, a 64-bit hash, and its length.
fn file_name(service: &str) -> String {
    const KEPT: usize = 48;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let shown: String = (service.chars().take(KEPT))
        .map(|c| if plain(c) { c } else { '.' })
        .collect();
    let number = service
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{shown}-{number:016x}-{}", service.len())
}

fn failed(doing: &str, service: &str, error: io::Error) -> RteError {
    RteError::System {
        doing: format!("{doing} the service `{service}` for this user's processes on this machine"),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(test: &str) -> String {
        format!("{test}, process {} of the tests", std::process::id())
    }

    #[test]
    fn a_name_is_known_until_it_is_taken_back_and_no_other_can_take_it() {
        let (names, others) = (MachineNames::default(), MachineNames::default());
        let service = service("withdrawn");
        assert_eq!(MachineNames::look_up(&service).unwrap(), None);
        names.publish(&service, "a-port:1").unwrap();
        assert_eq!(
            MachineNames::look_up(&service).unwrap().as_deref(),
            Some("a-port:1")
        );
        let refused = others.publish(&service, "another").unwrap_err();
        assert!(
            refused
                .to_string()
                .contains("another process holds the name")
        );
        assert!(!others.unpublish(&service).unwrap());
        assert!(names.unpublish(&service).unwrap());
        assert_eq!(MachineNames::look_up(&service).unwrap(), None);
    }

    #[test]
    fn what_a_dead_publisher_left_is_no_name_and_is_taken_away() {
        let service = service("left");
        let path = folder().unwrap().join(file_name(&service));
        fs::write(&path, "a-port:1").unwrap();
        assert_eq!(MachineNames::look_up(&service).unwrap(), None);
        assert!(!path.exists());
        fs::write(&path, "a-port:1").unwrap();
        let names = MachineNames::default();
        names.publish(&service, "b:2").unwrap();
        let found = MachineNames::look_up(&service).unwrap();
        assert_eq!(found.as_deref(), Some("b:2"));
        drop(names);
        assert!(!path.exists());
    }

    #[test]
    fn names_that_look_alike_have_files_of_their_own() {
        let files = [
            "a b",
            "a.b",
            "a/b",
            "../a",
            &"x".repeat(300),
            &"x".repeat(301),
        ];
        let names: std::collections::BTreeSet<_> = files.iter().map(|s| file_name(s)).collect();
        assert_eq!(names.len(), files.len());
        assert!(
            names
                .iter()
                .all(|name| name.len() < 100 && !name.contains('/'))
        );
    }
}

//! Names of services that processes without a launcher publish, for this user's processes on this machine.
//!
//! Protocol: a name is a file in a folder that only this user can enter, `$XDG_RUNTIME_DIR/portcullis-names` or `/tmp/portcullis-names-UID`.
//! The user is the effective one. A program with more rights than the user that started it takes the folder in `/tmp`, since the other
//! one is that user's choice.
//! The publisher holds a lock on the file as long as the name is published, so a name ends with its process however that ends:
//! a file that can be locked is what a dead publisher has left, and the one that finds it takes it away.
//! The file holds the port; it is empty only between being made and being written, and then there is no such name yet.

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

/// A port name is at most this long; what else lies in the folder is not read in full.
const LONGEST: u64 = 4096;

/// The names that this process has published.
#[derive(Default)]
pub struct MachineNames {
    held: Mutex<HashMap<String, File>>,
}

impl MachineNames {
    /// Makes a port known under the name of a service; a name that a living process holds is refused.
    pub fn publish(&self, service: &str, port: &str) -> Result<(), RteError> {
        let folder = folder().map_err(|error| failed("publishing", service, error))?;
        let file = claim(&folder.join(file_name(service)), port)
            .map_err(|error| failed("publishing", service, error))?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.insert(service.into(), file);
        Ok(())
    }

    /// The port of a service, if a living process of this user has published it.
    pub fn look_up(service: &str) -> Result<Option<String>, RteError> {
        let read = || -> io::Result<Option<String>> {
            let path = folder()?.join(file_name(service));
            let mut file = match File::open(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            };
            if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
                // Its publisher has gone. Another one that finds it so may be ahead, or a new publisher; the file says which.
                remove_if_same(&path, &file);
                return Ok(None);
            }
            let mut port = Vec::new();
            (&mut file).take(LONGEST).read_to_end(&mut port)?;
            Ok((!port.is_empty()).then(|| text::from_bytes(&port)))
        };
        read().map_err(|error| failed("looking up", service, error))
    }

    /// Takes a name back; false if it is not this process's.
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

/// The locked file of a name, with the port in it.
fn claim(path: &Path, port: &str) -> io::Result<File> {
    loop {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.mode(0o600).open(path)?;
        if !lock(&file) {
            let why = "another process holds the name";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, why));
        }
        // What was opened may have been taken away before it was locked.
        if !is_same(path, &file) {
            continue;
        }
        file.set_len(0)?;
        file.write_all(&text::to_bytes(port))?;
        return Ok(file);
    }
}

/// Locks a file, unless its publisher has it; a process that only looks has it for a moment.
fn lock(file: &File) -> bool {
    const LOOKS: u32 = 20;
    (0..LOOKS).any(|look| {
        if look > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
    })
}

/// Whether the path leads to this file.
fn is_same(path: &Path, file: &File) -> bool {
    match (fs::metadata(path), file.metadata()) {
        (Ok(there), Ok(here)) => (there.dev(), there.ino()) == (here.dev(), here.ino()),
        _ => false,
    }
}

/// Takes a name's file away, which the caller has locked.
fn remove_if_same(path: &Path, file: &File) {
    if is_same(path, file) {
        // If it cannot be removed, it is found to be of nobody again.
        let _ = fs::remove_file(path);
    }
}

/// The folder of this user's names, made if it is not there; one that others could have put there, or can enter, is not used.
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

/// A service may have any name; a long one keeps its beginning, and the number of all of it.
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
        let service = service("taken back");
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

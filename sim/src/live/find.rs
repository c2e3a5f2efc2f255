//! Boards of other processes of this machine, found by the memory that those have open.

use super::{Snapshot, Window};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// How the kernel shows memory that can have a board: that of [`Memory`](super::Memory), and that of an MPI job's ranks.
const NAMES: [&str; 2] = ["/memfd:hwbarr", "/memfd:portcullis-node"];

/// A board of another process.
#[derive(Debug)]
pub struct Found {
    /// The process that holds its memory.
    pub pid: u32,
    /// The program that runs there.
    pub program: String,
    window: Window,
}

impl Found {
    /// How many nodes the board has; `None` if it is gone.
    pub fn nodes(&self) -> Option<usize> {
        self.window.nodes()
    }

    /// The board now, and the nodes that a living process drives; `None` if it is gone, or the process that held it.
    pub fn look(&self) -> Option<(Snapshot, u64)> {
        super::wires::is_alive(self.pid)
            .then(|| self.window.look())
            .flatten()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.program)
    }
}

/// Every board that this user may look at, each once, by the process with the lowest number that holds it.
pub fn boards() -> Vec<Found> {
    let mut known = BTreeSet::new();
    let mut pids: Vec<u32> = entries("/proc".as_ref());
    pids.sort_unstable();
    let own = std::process::id();
    let others = pids.into_iter().filter(|pid| *pid != own);
    others.flat_map(|pid| of_process(pid, &mut known)).collect()
}

/// The boards that this process holds, if this user may look at them.
pub fn boards_of(pid: u32) -> Vec<Found> {
    of_process(pid, &mut BTreeSet::new())
}

/// Whatever cannot be read, since a process has ended or belongs to somebody else, has no board for us.
fn of_process(pid: u32, known: &mut BTreeSet<(u64, u64)>) -> Vec<Found> {
    let folder = format!("/proc/{pid}/fd");
    let mut found = Vec::new();
    for descriptor in entries::<u32>(folder.as_ref()) {
        let path = format!("{folder}/{descriptor}");
        let Ok(name) = fs::read_link(&path) else {
            continue;
        };
        let name = name.to_string_lossy();
        if !NAMES.iter().any(|known| name.starts_with(known)) {
            continue;
        }
        let Ok(file) = File::open(&path) else {
            continue;
        };
        let Ok(about) = file.metadata() else {
            continue;
        };
        if !known.insert((about.dev(), about.ino())) {
            continue;
        }
        if let Ok(Some(window)) = Window::open(&file) {
            let program = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            found.push(Found {
                pid,
                program: program.trim_end().to_owned(),
                window,
            });
        }
    }
    found
}

/// The entries of a folder that are numbers.
fn entries<T: std::str::FromStr>(folder: &Path) -> Vec<T> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

//! Discovery of the boards of other processes on this machine, through their open memory files.

use super::{Look, Window};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Names under which the kernel lists memory that can contain a board.
/// They are the names of [`Memory`](super::Memory) and of the shared memory of an MPI job.
const NAMES: [&str; 2] = ["/memfd:hwbarr", "/memfd:portcullis-node"];

/// Maximum number of ancestors of a process that are examined.
const GENERATIONS: usize = 64;

/// A board of another process.
#[derive(Debug)]
pub struct Found {
    /// The process that holds the board's memory.
    pub pid: u32,
    /// The program of that process.
    pub program: String,
    window: Window,
}

impl Found {
    /// Returns the board's state; `None` if the board or the process no longer exists.
    pub fn look(&self) -> Option<Look> {
        super::claim::is_alive(self.pid)
            .then(|| self.window.look())
            .flatten()
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Another user may have chosen the name, so it is escaped.
        let program = printable::name(&self.program);
        write!(f, "process {} ({program})", self.pid)
    }
}

/// Returns every board that this user may read.
/// A board that several processes hold is listed once, for the process with the lowest ID.
pub fn boards() -> Vec<Found> {
    let own = std::process::id();
    boards_where(|pid| pid != own)
}

/// Returns the boards that this process holds.
/// If it holds none, returns those of its descendants, such as the ranks that `mpirun` starts.
pub fn boards_of(pid: u32) -> Vec<Found> {
    let own = boards_where(|other| other == pid);
    match own.is_empty() {
        true => boards_where(|other| is_of(other, pid)),
        false => own,
    }
}

fn boards_where(is_meant: impl Fn(u32) -> bool) -> Vec<Found> {
    let mut known = BTreeSet::new();
    let mut pids: Vec<u32> = entries("/proc".as_ref());
    pids.retain(|pid| is_meant(*pid));
    pids.sort_unstable();
    let found = pids.into_iter();
    found.flat_map(|pid| of_process(pid, &mut known)).collect()
}

/// Returns true if process `pid` is `ancestor` or one of its descendants.
fn is_of(pid: u32, ancestor: u32) -> bool {
    // A process ID may be reused during this loop, so the chain of parents could have a cycle.
    // Therefore the number of ancestors is limited.
    let parents = std::iter::successors(Some(pid), |pid| parent(*pid)).take(GENERATIONS);
    parents.into_iter().any(|pid| pid == ancestor)
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The program's name is in parentheses and may itself contain parentheses.
    // The process state and the parent's ID follow the last closing parenthesis.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the boards of a process; none if it has ended or belongs to another user.
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

/// Returns the file names in a folder that are numbers, such as process IDs in `/proc`.
fn entries<T: std::str::FromStr>(folder: &Path) -> Vec<T> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.parse().ok()).collect()
}

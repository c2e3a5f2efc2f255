//! Detection of other MPI libraries in the memory maps of running ranks (proc_pid_maps(5)).
//!
//! A program's libraries are not always known before the start: an interpreter opens any library.
//! A rank on another library never calls this library's `MPI_Init`.
//! Then each rank is a singleton, and the job ends with status 0.
//! So the launcher reads each rank's maps until the rank has contacted its PMI server:
//! at the rank's first output, and at growing intervals.
//!
//! A rank may be a script whose child is the MPI program, so its descendants are searched too.
//! Processes that another launcher has started are not searched.

use super::on;
use crate::process_tree::descendants_of;
use crate::rank_environment::is_of_a_launch;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Prefixes of the file names of MPI libraries, of all implementations and versions.
const NAMES: [&str; 4] = [
    "libmpi.so",
    "libmpich.so",
    on::STANDARD_NAMES,
    "libmpi_cray.so",
];

/// The time from a rank's start to the first reading of the rank's memory maps.
const FIRST: Duration = Duration::from_millis(10);
/// The maximum interval between two readings of the maps.
const LONGEST: Duration = Duration::from_secs(2);
/// The ratio of the interval to the duration of a reading: readings use at most 1/100 of a core.
const SHARE: u32 = 100;

/// The ranks of this host that have not called this library's `MPI_Init`, by process index.
#[derive(Debug, Default)]
pub struct Watch {
    silent: BTreeMap<usize, Silent>,
    /// The time of the next reading of all maps; `interval` is the time until the reading after it.
    next: Option<Instant>,
    interval: Duration,
    /// Caches whether a file is another MPI library, since the test reads the whole file.
    judged: HashMap<PathBuf, bool>,
}

/// A rank that has sent nothing to its PMI server yet.
#[derive(Debug)]
struct Silent {
    pid: i32,
    has_written: bool,
}

impl Watch {
    /// Begins to watch a rank that has just been started.
    pub fn began(&mut self, number: usize, pid: i32) {
        let has_written = false;
        self.silent.insert(number, Silent { pid, has_written });
        self.interval = FIRST;
        self.next = Some(Instant::now() + FIRST);
    }

    /// Stops watching a rank that has contacted its PMI server or has ended.
    pub fn is_settled(&mut self, number: usize) {
        self.silent.remove(&number);
    }

    /// Notes that a rank has written output.
    /// At the rank's first output, returns the other MPI library that the rank has loaded.
    pub fn has_written(&mut self, number: usize) -> Option<PathBuf> {
        let rank = self.silent.get_mut(&number)?;
        if std::mem::replace(&mut rank.has_written, true) {
            return None;
        }
        let found = loaded_by(rank.pid, &mut self.judged)?;
        self.silent.remove(&number);
        Some(found)
    }

    /// Returns the time at which [`Watch::read`] is due; `None` if no rank is watched.
    pub fn next(&self) -> Option<Instant> {
        self.next.filter(|_| !self.silent.is_empty())
    }

    /// Reads the maps of all silent ranks if due; returns ranks with other MPI libraries.
    pub fn read(&mut self, now: Instant) -> Vec<(usize, PathBuf)> {
        if self.next().is_none_or(|next| now < next) {
            return Vec::new();
        }
        let judged = &mut self.judged;
        let found: Vec<(usize, PathBuf)> = self
            .silent
            .iter()
            .filter_map(|(number, rank)| Some((*number, loaded_by(rank.pid, judged)?)))
            .collect();
        for (number, _) in &found {
            self.silent.remove(number);
        }
        self.interval = (self.interval * 3 / 2)
            .min(LONGEST)
            .max(now.elapsed() * SHARE);
        self.next = Some(Instant::now() + self.interval);
        found
    }
}

/// Returns the first other MPI library in the maps of a rank's process or of its descendants.
fn loaded_by(pid: i32, judged: &mut HashMap<PathBuf, bool>) -> Option<PathBuf> {
    let mut is_of_others = |file: &PathBuf| {
        *judged
            .entry(file.clone())
            .or_insert_with(|| !on::is_of_portcullis(file))
    };
    if let Some(found) = libraries_of(pid).into_iter().find(&mut is_of_others) {
        return Some(found);
    }
    let below = descendants_of(pid);
    if below.is_empty() {
        return None;
    }
    let launch = launch_of(pid);
    below
        .into_iter()
        .filter(|below| launch_of(*below) == launch)
        .find_map(|below| libraries_of(below).into_iter().find(&mut is_of_others))
}

/// Returns the MPI libraries in a process's maps, selected by file name, each once.
fn libraries_of(pid: i32) -> Vec<PathBuf> {
    // A process that has ended has empty maps, and another user's maps are unreadable.
    libraries_in(&fs::read(format!("/proc/{pid}/maps")).unwrap_or_default())
}

fn libraries_in(maps: &[u8]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for line in maps.split(|byte| *byte == b'\n') {
        let Some(at) = line.iter().position(|byte| *byte == b'/') else {
            continue;
        };
        let path = Path::new(OsStr::from_bytes(&line[at..]));
        let name = path.file_name().unwrap_or_default().as_bytes();
        let is_named_so = NAMES.iter().any(|begin| name.starts_with(begin.as_bytes()));
        if is_named_so && found.last().is_none_or(|last| last != path) {
            found.push(path.to_owned());
        }
    }
    found
}

/// Returns the launch variables in a process's environment, such as those of PMI, sorted.
fn launch_of(pid: i32) -> Vec<Vec<u8>> {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let mut variables: Vec<Vec<u8>> = environment
        .split(|byte| *byte == 0)
        .filter(|setting| {
            let name = setting.split(|byte| *byte == b'=').next();
            is_of_a_launch(OsStr::from_bytes(name.unwrap_or_default()))
        })
        .map(<[u8]>::to_vec)
        .collect();
    variables.sort_unstable();
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_names_libraries_by_any_path_and_each_once() {
        let maps = b"7f00-7f01 r--p 0 fe:01 1 /opt/a b/libmpi.so.40.30.4\n\
                     7f01-7f02 r-xp 0 fe:01 1 /opt/a b/libmpi.so.40.30.4\n\
                     7f02-7f03 r-xp 0 fe:01 2 /usr/lib/libmpi_cxx.so.40\n\
                     7f03-7f04 rw-p 0 00:00 0 \n\
                     7f04-7f05 r-xp 0 fe:01 3 /usr/lib/libmpich.so.12\n\
                     7f05-7f06 rw-p 0 00:00 0 [heap]\n";
        let expected = ["/opt/a b/libmpi.so.40.30.4", "/usr/lib/libmpich.so.12"];
        assert_eq!(libraries_in(maps), expected.map(PathBuf::from));
    }

    #[test]
    fn maps_are_read_when_a_rank_first_writes_and_then_at_growing_intervals() {
        let mut watch = Watch::default();
        assert_eq!(watch.next(), None);
        watch.began(3, std::process::id() as i32);
        assert_eq!(watch.has_written(3), None);
        assert!(watch.silent[&3].has_written);
        let first = watch.next().unwrap();
        assert_eq!(watch.read(first), []);
        assert!(watch.interval >= FIRST * 3 / 2);
        watch.is_settled(3);
        assert_eq!((watch.next(), watch.has_written(3)), (None, None));
    }
}

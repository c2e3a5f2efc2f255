//! Notes between ranks and their watcher, as files in a private folder, and what a job leaves behind.
//!
//! Files, because a launcher that is being killed may lose what ranks print.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::clock::now_ms;

/// The notes of one job: `ready.RANK` and `child.RANK` hold a process's number, `go` lets a rank leave, `deed` says when it did.
pub struct Folder {
    path: PathBuf,
    /// Removed with the watcher's value.
    _own: Option<tempfile::TempDir>,
}

impl Folder {
    pub fn new() -> io::Result<Folder> {
        let own = tempfile::tempdir()?;
        let path = own.path().to_owned();
        fs::create_dir(path.join("tmp"))?;
        Ok(Folder {
            path,
            _own: Some(own),
        })
    }

    /// A rank's view.
    pub fn at(path: &Path) -> Folder {
        Folder {
            path: path.to_owned(),
            _own: None,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the job is to put its temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Whole or not at all, as others look at any time.
    fn note(&self, name: &str, text: &str) -> io::Result<()> {
        let fresh = self.path.join(format!(".{name}.{}", std::process::id()));
        fs::write(&fresh, text)?;
        fs::rename(&fresh, self.path.join(name))
    }

    fn read<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        fs::read_to_string(self.path.join(name)).ok()?.parse().ok()
    }

    pub fn ready(&self, rank: i32) -> io::Result<()> {
        self.note(&format!("ready.{rank}"), &std::process::id().to_string())
    }

    pub fn has_child(&self, rank: i32, pid: u32) -> io::Result<()> {
        self.note(&format!("child.{rank}"), &pid.to_string())
    }

    pub fn let_go(&self) {
        // A rank that is never let go is seen as a launcher that hangs.
        let _ = self.note("go", "");
    }

    pub fn may_go(&self) -> bool {
        self.path.join("go").exists()
    }

    pub fn says_deed(&self) -> io::Result<()> {
        self.note("deed", &now_ms().to_string())
    }

    pub fn deed_done(&self) -> Option<f64> {
        self.read("deed")
    }

    /// The processes of all ranks, in their order, as soon as all are ready.
    pub fn await_ranks(&self, ranks: u32, limit: Duration) -> Option<Vec<i32>> {
        let begin = Instant::now();
        loop {
            let pids: Option<Vec<i32>> = (0..ranks)
                .map(|rank| self.read(&format!("ready.{rank}")))
                .collect();
            if pids.is_some() || begin.elapsed() >= limit {
                return pids;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The children that ranks have made.
    pub fn children(&self) -> Vec<i32> {
        let names = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names
            .filter(|name| name.starts_with("child."))
            .filter_map(|name| self.read(&name))
            .collect()
    }

    /// How many files lie in the job's temporary folder.
    pub fn left(&self) -> usize {
        fs::read_dir(self.temporary()).map_or(0, |entries| entries.flatten().count())
    }
}

/// The names in `/dev/shm`.
pub fn segments() -> BTreeSet<std::ffi::OsString> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

/// Those that still live when the time is over; returns as soon as there are none.
pub fn living_after(pids: &[i32], limit: Duration) -> Vec<i32> {
    let begin = Instant::now();
    loop {
        let living: Vec<i32> = pids.iter().copied().filter(|&pid| lives(pid)).collect();
        if living.is_empty() || begin.elapsed() >= limit {
            return living;
        }
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Whether a process runs; one that has ended and that its parent has not asked for yet does not.
fn lives(pid: i32) -> bool {
    // The state is the first word behind the name, which is in brackets (proc_pid_stat(5)).
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| {
            stat.rsplit_once(") ")
                .map(|(_, rest)| !rest.starts_with(['Z', 'X']))
        })
        .unwrap_or(false)
}

/// Ends what a launcher has left.
pub fn end(pids: &[i32]) {
    for pid in pids.iter().filter_map(|&pid| Pid::from_raw(pid)) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

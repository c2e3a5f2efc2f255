//! Notes: small files in a private folder through which the ranks of a job and the benchmark inform each other.
//! Also the search for processes and files that the job has left behind.
//!
//! Notes are files, since a launcher that is being killed may lose the ranks' output.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::clock::now_ms;

/// The folder with the notes of one job, one file per note.
/// `ready.RANK` and `child.RANK` contain a pid. The file `go` lets rank 1 end.
/// `deed` contains the time of the fault.
pub struct Folder {
    path: PathBuf,
    /// The temporary folder, removed when this value is dropped; `None` in a rank.
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

    /// Opens the folder in a rank; the rank does not remove the folder.
    pub fn at(path: &Path) -> Folder {
        Folder {
            path: path.to_owned(),
            _own: None,
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the folder in which the job creates its temporary files (`TMPDIR`).
    pub fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Writes a note atomically, since other processes read it at any time.
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
        // If the note cannot be written, the rank does not end, and the launcher counts as hanging.
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

    /// Waits until all ranks are ready; returns their pids in rank order.
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

    /// Returns the pids of the children that ranks have started.
    pub fn children(&self) -> Vec<i32> {
        let names = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names
            .filter(|name| name.starts_with("child."))
            .filter_map(|name| self.read(&name))
            .collect()
    }

    /// Returns the number of files in the job's temporary folder.
    pub fn left(&self) -> usize {
        fs::read_dir(self.temporary()).map_or(0, |entries| entries.flatten().count())
    }
}

/// Returns the file names in `/dev/shm`.
pub fn segments() -> BTreeSet<std::ffi::OsString> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name()).collect()
}

/// Returns the processes that are still alive after `limit`; returns early if none is alive.
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

/// Returns true if a process is alive; a zombie is not.
fn lives(pid: i32) -> bool {
    // The state is the first word after the name in parentheses (proc_pid_stat(5)).
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .ok()
        .and_then(|stat| {
            stat.rsplit_once(") ")
                .map(|(_, rest)| !rest.starts_with(['Z', 'X']))
        })
        .unwrap_or(false)
}

/// Kills the processes that a launcher has left behind.
pub fn end(pids: &[i32]) {
    for pid in pids.iter().filter_map(|&pid| Pid::from_raw(pid)) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

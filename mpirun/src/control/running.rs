//! The processes of this user that run mpirun, also those without a control socket.
//!
//! An mpirun has no control socket before it has started or restored its ranks, and while it ends.
//! A process counts as an mpirun if its program is the file `mpirun` in the folder of this program.

use rustix::process::getuid;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

/// Returns true if this process is an mpirun of this user, and neither the supervisor of an mpirun
/// nor a daemon of another host's job.
pub(super) fn is_mpirun(process: i32) -> bool {
    mpirun().is_some_and(|file| is_front_end(process, file))
}

/// Returns the pids of all processes for which [`is_mpirun`] is true.
pub(super) fn mpiruns() -> Vec<i32> {
    let Some(file) = mpirun() else {
        return Vec::new();
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let processes = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let mut found: Vec<i32> = processes
        .filter(|process| is_front_end(*process, file))
        .collect();
    found.sort_unstable();
    found
}

fn is_front_end(process: i32, file: File) -> bool {
    let is_below = |process| parent(process).is_some_and(|parent| runs(parent, file));
    runs(process, file) && !is_daemon(process) && !is_below(process)
}

/// A file, as its device and its inode.
type File = (u64, u64);

/// Returns the file `mpirun` in the folder of this program.
fn mpirun() -> Option<File> {
    let own = std::env::current_exe().ok()?;
    let file = fs::metadata(own.with_file_name("mpirun")).ok()?;
    Some((file.dev(), file.ino()))
}

/// Returns true if a process of this user that has not ended runs this file.
fn runs(process: i32, file: File) -> bool {
    let folder = format!("/proc/{process}");
    let is_ours = fs::metadata(&folder).is_ok_and(|entry| entry.uid() == getuid().as_raw());
    let program = fs::metadata(format!("{folder}/exe"));
    is_ours && program.is_ok_and(|program| (program.dev(), program.ino()) == file)
}

fn is_daemon(process: i32) -> bool {
    let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let first = line.split(|byte| *byte == 0).nth(1);
    first.is_some_and(|option| option.starts_with(b"--daemon"))
}

fn parent(process: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"));
    line?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_runs_its_own_program_and_no_other() {
        let own = std::process::id() as i32;
        let program = fs::metadata("/proc/self/exe").unwrap();
        let file = (program.dev(), program.ino());
        assert!(runs(own, file));
        assert!(!runs(own, (file.0, file.1 + 1)));
        assert!(!runs(i32::MAX, file));
        assert!(!is_daemon(own));
        assert_eq!(
            parent(own),
            Some(std::os::unix::process::parent_id() as i32)
        );
    }
}

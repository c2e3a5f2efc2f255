//! Leftovers of a job: processes with the job's mark in their environment,
//! and files in the job's temporary folder.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// The environment variable that every process of a job inherits; its value is the job's mark.
pub const MARK: &str = "PORTCULLIS_TEST_JOB";

/// Maximum time from a job's end to the end of its last process.
pub const GRACE: Duration = Duration::from_secs(1);

/// Returns process id and command line of each process with this mark.
pub fn processes(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.parse::<u32>().is_err() {
            continue;
        }
        // A zombie, or a process that ended during the scan, has no environment.
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment
            .split(|&byte| byte == 0)
            .any(|variable| variable == wanted.as_bytes())
        {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(format!(
                "{name} {}",
                String::from_utf8_lossy(&command).replace('\0', " ")
            ));
        }
    }
    found
}

/// Panics if a process of the job outlives [`GRACE`], or if a file is left.
#[track_caller]
pub fn assert_none(mark: &str, temporary: &Path) {
    assert_none_after(mark, temporary, GRACE);
}

/// As `assert_none`, with another grace period.
#[track_caller]
pub fn assert_none_after(mark: &str, temporary: &Path, grace: Duration) {
    let begin = Instant::now();
    loop {
        let left = processes(mark);
        if left.is_empty() {
            break;
        }
        assert!(
            begin.elapsed() < grace,
            "left behind after {} s:\n{}",
            grace.as_secs(),
            left.join("\n")
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    let files: Vec<String> = fs::read_dir(temporary)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().display().to_string())
        .collect();
    assert!(
        files.is_empty(),
        "files were left behind: {}",
        files.join(", ")
    );
    let segments: Vec<String> = fs::read_dir("/dev/shm")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.contains("portcullis"))
        .collect();
    assert!(
        segments.is_empty(),
        "segments were left behind: {}",
        segments.join(", ")
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marked_process_is_found_until_it_ends() {
        let mark = format!("self-test-{}", std::process::id());
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .env(MARK, &mark)
            .spawn()
            .unwrap();
        // `spawn` may return before the environment of the new program can be read.
        let limit = Instant::now() + Duration::from_secs(10);
        while processes(&mark).len() != 1 {
            assert!(Instant::now() < limit, "the process was not found");
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(processes(&mark).is_empty());
    }
}

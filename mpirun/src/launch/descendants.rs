//! Everything below this process, found in `/proc` and ended.
//!
//! A stray is re-parented to the supervisor as soon as its own parent dies, because the supervisor is a subreaper;
//! so whatever a rank has left behind is found by walking down from the supervisor.

use super::sys;
use std::fs;

/// The direct children of a process.
fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<i32>>()
        })
        .collect()
}

/// All descendants of a process, parents before children.
pub fn below(pid: i32) -> Vec<i32> {
    let mut found = children(pid);
    let mut next = 0;
    while next < found.len() {
        let below = children(found[next]);
        found.extend(below);
        next += 1;
    }
    found
}

/// All descendants of this process but the spared and those below them, parents before children.
fn all_but(spared: &[i32]) -> Vec<i32> {
    let unspared = |pid: i32| {
        let mut below = children(pid);
        below.retain(|pid| !spared.contains(pid));
        below
    };
    let mut found = unspared(rustix::process::getpid().as_raw_pid());
    let mut next = 0;
    while next < found.len() {
        let below = unspared(found[next]);
        found.extend(below);
        next += 1;
    }
    found
}

/// Kills and reaps until nothing is left below this process.
///
/// A process that forks while it is being killed leaves a child for the next round;
/// the number of rounds is bounded so that a fork bomb cannot keep the launcher.
pub fn end_all() {
    end_all_but(&[]);
}

/// The same without the spared and those below them.
pub fn end_all_but(spared: &[i32]) {
    const ROUNDS: usize = 100;
    for _ in 0..ROUNDS {
        let strays = all_but(spared);
        if strays.is_empty() {
            return;
        }
        for &pid in &strays {
            sys::signal_process(pid, libc::SIGKILL);
        }
        // A killed child is reaped here; its own children come to us and are found in the next round.
        // A process in an uninterruptible sleep would hold us, so wait for one and poll for the rest.
        while sys::reap().is_some() {}
        if !all_but(spared).is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

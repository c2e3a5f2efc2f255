//! Descendants of this process: search in `/proc`, and termination.
//!
//! This process is a subreaper: the kernel re-parents orphaned descendants to it.
//! So a traversal of the tree below this process finds every process that a rank has left behind.

use super::sys;
use crate::process_tree::children;

/// Returns all descendants, parents before children, except `spared` and their descendants.
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

/// Returns all descendants of this process, parents before children.
pub fn of_this_process() -> Vec<i32> {
    all_but(&[])
}

/// Kills and reaps descendants until this process has none.
///
/// A process that forks while it is being killed leaves a child for the next round.
/// The number of rounds is bounded, so a fork bomb cannot keep the launcher alive.
pub fn end_all() {
    end_all_but(&[]);
}

/// Kills and reaps all descendants except `spared` and their descendants.
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
        // A killed child's children are re-parented to this process; the next round finds them.
        // A blocking wait would hang on a process in an uninterruptible sleep, so poll instead.
        while sys::reap().is_some() {}
        if !all_but(spared).is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

//! All descendants of this process: found in `/proc` and ended.
//!
//! A stray is re-parented to the supervisor as soon as its own parent dies, because the supervisor is a subreaper.
//! So a walk down from the supervisor finds every process that a rank has left behind.

use super::sys;
use crate::process_tree::children;

/// Returns all descendants of this process, parents before children, without `spared` and the processes below those.
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

/// Kills and reaps until this process has no descendants.
///
/// A process that forks while it is being killed leaves a child for the next round;
/// the number of rounds is bounded so that a fork bomb cannot keep the launcher.
pub fn end_all() {
    end_all_but(&[]);
}

/// The same, without `spared` and the processes below those.
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
        // Reaping a killed child re-parents its own children to this process; the next round finds them.
        // A blocking wait would hang on a process in an uninterruptible sleep, so reap without blocking and check again.
        while sys::reap().is_some() {}
        if !all_but(spared).is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

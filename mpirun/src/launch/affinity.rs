//! The processors to which threads of the job are bound, which CRIU does not save.
//!
//! The supervisor reads them before a dump, so they are in its image, and binds the threads again after a restore.
//! A thread that may run on all processors of the supervisor is unbound; the restart's mpirun gives it its processors.

use crate::process_tree::descendants_of;
use rustix::process::{Pid, getpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::time::Duration;

/// The bound threads below the supervisor.
pub(super) struct Affinities(Vec<(Pid, CpuSet)>);

impl Affinities {
    /// Reads the bindings until two readings agree: a rank binds its thread to one processor for the time
    /// in which it moves the thread there (`mpi_base::migrate`), and this is no binding to restore.
    pub(super) fn read() -> Affinities {
        const PAUSE: Duration = Duration::from_millis(10);
        const READINGS: usize = 6;
        let mut bound = bound_threads();
        for _ in 1..READINGS {
            if bound.is_empty() {
                break;
            }
            std::thread::sleep(PAUSE);
            let again = bound_threads();
            if again == bound {
                break;
            }
            bound = again;
        }
        Affinities(bound)
    }

    /// Binds the threads of a restored job. A restored thread has its old number.
    pub(super) fn set(&self) {
        for (thread, processors) in &self.0 {
            // Without these processors on this host, the thread stays unbound.
            let _ = sched_setaffinity(Some(*thread), processors);
        }
    }
}

fn bound_threads() -> Vec<(Pid, CpuSet)> {
    let own = sched_getaffinity(None).ok();
    let processes = descendants_of(getpid().as_raw_pid()).into_iter();
    let threads = processes.flat_map(threads_of).filter_map(|thread| {
        let processors = sched_getaffinity(Some(thread)).ok()?;
        (own != Some(processors)).then_some((thread, processors))
    });
    threads.collect()
}

fn threads_of(process: i32) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{process}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    let numbers = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    numbers.filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_of_a_process_are_found() {
        let own = std::process::id() as i32;
        let other = std::thread::spawn(rustix::thread::gettid);
        let found = threads_of(own);
        assert!(found.contains(&getpid()), "{found:?}");
        assert!(other.join().is_ok());
        assert!(threads_of(-1).is_empty());
    }
}

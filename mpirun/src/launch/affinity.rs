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
    pub(super) fn read() -> Affinities {
        Affinities(settled(bound_threads))
    }

    /// Binds the threads of a restored job. A restored thread has its old number.
    pub(super) fn set(&self) {
        for (thread, processors) in &self.0 {
            // Without these processors on this host, the thread stays unbound.
            let _ = sched_setaffinity(Some(*thread), processors);
        }
    }
}

/// Reads the bindings until two readings agree: a rank binds its thread to one processor for the time
/// in which it moves the thread there (`mpi_base::migrate`), and this is no binding to restore.
fn settled<T: PartialEq>(mut read: impl FnMut() -> Vec<T>) -> Vec<T> {
    const PAUSE: Duration = Duration::from_millis(10);
    const READINGS: usize = 6;
    let mut bound = read();
    for _ in 1..READINGS {
        if bound.is_empty() {
            break;
        }
        std::thread::sleep(PAUSE);
        let again = read();
        if again == bound {
            break;
        }
        bound = again;
    }
    bound
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

    /// Returns the result of [`settled`] for these readings, and the number of readings.
    fn settles(readings: &[&[u32]]) -> (Vec<u32>, usize) {
        let mut count = 0;
        let read = || {
            let reading = readings[count.min(readings.len() - 1)];
            count += 1;
            reading.to_vec()
        };
        let bound = settled(read);
        (bound, count)
    }

    #[test]
    fn a_binding_that_is_gone_in_the_second_reading_is_not_saved() {
        assert_eq!(settles(&[&[]]), (vec![], 1));
        assert_eq!(settles(&[&[1, 2]]), (vec![1, 2], 2));
        assert_eq!(settles(&[&[1, 2, 9], &[1, 2]]), (vec![1, 2], 3));
        assert_eq!(settles(&[&[9], &[]]), (vec![], 2));
        // Bindings that change in each reading: the last one is used.
        let changing: &[&[u32]] = &[&[1], &[2], &[3], &[4], &[5], &[6], &[7]];
        assert_eq!(settles(changing), (vec![6], 6));
    }

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

//! Test whether a rank's other threads all sleep until a thread of the same process wakes them.
//!
//! A thread that computes, reads a pipe or sleeps for a time may call MPI later.
//! A thread may wait without a time limit for a mutex, condition variable or semaphore,
//! or for the end of a thread of its process (`pthread_join`).
//! Such a thread does nothing until another thread of the process acts.

use std::fs;

/// Waiting operations of futex(2), without flags.
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
/// The flag of a futex that only threads of the same process can wake.
const FUTEX_PRIVATE: u64 = 128;
/// The operation of `pthread_join`: `FUTEX_WAIT_BITSET` with the flag `FUTEX_CLOCK_REALTIME`.
/// The kernel clears the word, a thread's ID, when the thread ends, and wakes a futex that is not private.
const JOIN: u64 = FUTEX_WAIT_BITSET | 256;

/// Returns the number of times that the threads other than those in `waiting` have been scheduled,
/// if all of them sleep until a thread of the process wakes them.
/// The threads are not read at one time, but none of them has run between two reads with the same number.
///
/// Returns `None` if a thread of `waiting` does not exist, or if `/proc` hides the threads' states.
pub fn others_sleep(pid: u32, waiting: &[u32]) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let number_of = |task: fs::DirEntry| task.file_name().to_str()?.parse().ok();
    let threads: Vec<u32> = tasks
        .map(|task| task.ok().and_then(number_of))
        .collect::<Option<_>>()?;
    if !waiting.iter().all(|thread| threads.contains(thread)) {
        return None;
    }
    let of_thread = |thread: &u32| {
        let read =
            |file: &str| fs::read_to_string(format!("/proc/{pid}/task/{thread}/{file}")).ok();
        let sleeps = match sleep(&read("syscall")?)? {
            Sleep::Private => true,
            Sleep::Join { address, thread } => {
                let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
                threads.contains(&thread) && is_private(&maps, address)
            }
        };
        sleeps.then(|| switches(&read("status")?))?
    };
    let others = threads.iter().filter(|thread| !waiting.contains(thread));
    others.map(of_thread).sum()
}

/// A sleep that only a thread of the same process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sleep {
    /// At a private futex, without a time limit.
    Private,
    /// For the end of a thread, if the futex at this address is the thread's.
    Join { address: u64, thread: u32 },
}

/// Returns the sleep of a thread; `syscall` is the content of `/proc/PID/task/TID/syscall`.
fn sleep(syscall: &str) -> Option<Sleep> {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    let words: Vec<u64> = syscall
        .split_whitespace()
        .map(number)
        .collect::<Option<_>>()?;
    let [call, address, operation, expected, time_limit, ..] = words[..] else {
        return None;
    };
    if call != libc::SYS_futex as u64 || time_limit != 0 {
        return None;
    }
    let is_wait = [FUTEX_WAIT, FUTEX_WAIT_BITSET].contains(&(operation & 0x7f));
    match operation {
        _ if is_wait && operation & FUTEX_PRIVATE != 0 => Some(Sleep::Private),
        JOIN => Some(Sleep::Join {
            address,
            thread: u32::try_from(expected).ok()?,
        }),
        _ => None,
    }
}

/// Returns true if an address is in private memory of the process; `maps` is the content of `/proc/PID/maps`.
fn is_private(maps: &str, address: u64) -> bool {
    maps.lines().any(|line| {
        let (range, rest) = line.split_once(' ').unwrap_or_default();
        let (from, to) = range.split_once('-').unwrap_or_default();
        let bound = |text| u64::from_str_radix(text, 16).ok();
        let contains = |from, to| (from..to).contains(&address);
        let is_inside = bound(from)
            .zip(bound(to))
            .is_some_and(|(from, to)| contains(from, to));
        is_inside && rest.as_bytes().get(3) == Some(&b'p')
    })
}

/// Returns the number of context switches of a thread; `status` is the content of `/proc/PID/task/TID/status`.
fn switches(status: &str) -> Option<u64> {
    let lines = status
        .lines()
        .filter_map(|line| line.split_once("_ctxt_switches:"));
    let counts: Vec<u64> = lines
        .filter_map(|(_, count)| count.trim().parse().ok())
        .collect();
    (counts.len() == 2).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::{Condvar, Mutex, mpsc};
    use std::time::Duration;

    #[test]
    fn only_a_wait_without_a_time_limit_inside_the_process_counts() {
        let futex = libc::SYS_futex;
        let line = |operation: u64, limit: u64| {
            format!("{futex} 0x7f00 {operation:#x} 0x2 {limit:#x} 0x0 0xffffffff 0x7ffd 0x7f01\n")
        };
        assert_eq!(sleep(&line(128, 0)), Some(Sleep::Private));
        assert_eq!(sleep(&line(0x189, 0)), Some(Sleep::Private));
        assert_eq!(sleep(&line(128, 0x7ffd)), None, "a time limit");
        assert_eq!(sleep(&line(0, 0)), None, "another process may wake it");
        assert_eq!(sleep(&line(129, 0)), None, "it wakes");
        assert_eq!(sleep("running\n"), None);
        assert_eq!(sleep("0 0x3 0x7ffd 0x1 0x0 0x0 0x0 0x7ffd 0x7f01\n"), None);
        assert_eq!(sleep(""), None);
    }

    #[test]
    fn a_join_is_a_wait_at_a_word_of_private_memory() {
        let line = |operation: u64, limit: u64| {
            let futex = libc::SYS_futex;
            format!("{futex} 0x7f08 {operation:#x} 0x48 {limit:#x} 0x0 0xffffffff 0x7ffd 0x7f01\n")
        };
        let join = Sleep::Join {
            address: 0x7f08,
            thread: 72,
        };
        assert_eq!(sleep(&line(0x109, 0)), Some(join));
        assert_eq!(sleep(&line(0x109, 7)), None, "a time limit");
        assert_eq!(sleep(&line(9, 0)), None, "no join");
        let maps = "7e00-7f00 rw-s 0 00:01 5 /dev/shm/x\n7f00-8f00 rw-p 0 00:00 0\n";
        assert!(is_private(maps, 0x7f08));
        assert!(!is_private(maps, 0x7e08), "shared memory");
        assert!(!is_private(maps, 0x9000));
    }

    #[test]
    fn a_thread_that_runs_has_a_new_count_and_one_that_joins_sleeps() {
        let status = "State:\tS\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(switches(status), Some(15));
        assert_eq!(switches("State:\tS\n"), None);
    }

    /// Two threads wake each other, so one of them always runs, although each is seen asleep.
    #[test]
    fn threads_that_wake_each_other_never_have_the_same_count_twice() {
        let (turn, changed) = (Mutex::new(0), Condvar::new());
        let end = AtomicBool::new(false);
        let (names, ids) = mpsc::channel();
        let pass = |mine: u32| {
            names.send(mpi_base::cpu::this_thread()).unwrap();
            let mut turn = turn.lock().unwrap();
            while !end.load(Relaxed) {
                turn = changed
                    .wait_while(turn, |turn| *turn != mine && !end.load(Relaxed))
                    .unwrap();
                *turn = 1 - mine;
                changed.notify_one();
            }
        };
        let counts = std::thread::scope(|scope| {
            scope.spawn(|| pass(0));
            scope.spawn(|| pass(1));
            let passing = [ids.recv().unwrap(), ids.recv().unwrap()];
            let others = || -> Vec<u32> {
                let tasks = fs::read_dir("/proc/self/task").unwrap();
                let names = tasks.map(|task| task.unwrap().file_name());
                let ids = names.map(|name| name.to_str().unwrap().parse().unwrap());
                ids.filter(|id| !passing.contains(id)).collect()
            };
            // On a loaded machine one of the two threads is mostly seen running, and there may be few samples.
            let sample = |_| others_sleep(std::process::id(), &others());
            let counts: Vec<u64> = (0..20_000).filter_map(sample).take(10).collect();
            end.store(true, Relaxed);
            drop(turn.lock().unwrap());
            changed.notify_all();
            counts
        });
        let are_new = counts.windows(2).all(|pair| pair[0] != pair[1]);
        assert!(are_new, "{counts:?}");
    }

    #[test]
    fn a_sleeping_thread_does_not_count_as_waiting_for_its_process() {
        let (stop, stopped) = mpsc::channel::<()>();
        let sleeper = std::thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_secs(60))
                != Err(mpsc::RecvTimeoutError::Disconnected)
            {}
        });
        let me = mpi_base::cpu::this_thread();
        assert_eq!(others_sleep(std::process::id(), &[me]), None);
        assert_eq!(others_sleep(std::process::id(), &[u32::MAX]), None);
        drop(stop);
        sleeper.join().unwrap();
    }
}

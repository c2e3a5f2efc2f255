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

/// Returns true if all threads except those in `waiting` sleep until a thread of the process wakes them.
///
/// Returns false if a thread of `waiting` does not exist, or if `/proc` hides the threads' states.
pub fn others_sleep(pid: u32, waiting: &[u32]) -> bool {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    let number_of = |task: fs::DirEntry| task.file_name().to_str()?.parse().ok();
    let threads: Option<Vec<u32>> = tasks.map(|task| task.ok().and_then(number_of)).collect();
    let Some(threads) = threads else { return false };
    let sleeps = |thread: &u32| {
        let call = fs::read_to_string(format!("/proc/{pid}/task/{thread}/syscall"));
        call.is_ok_and(|call| waits_for_its_process(&call, &threads))
    };
    let mut others = threads.iter().filter(|thread| !waiting.contains(thread));
    waiting.iter().all(|thread| threads.contains(thread)) && others.all(sleeps)
}

/// Returns true if a thread of the process with these threads waits without a time limit at a private futex,
/// or for the end of one of the threads.
/// `syscall` is the content of `/proc/PID/task/TID/syscall`.
fn waits_for_its_process(syscall: &str, threads: &[u32]) -> bool {
    let number = |word: &str| match word.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    };
    let words: Vec<Option<u64>> = syscall.split_whitespace().map(number).collect();
    let [
        Some(call),
        _,
        Some(operation),
        Some(expected),
        Some(time_limit),
        ..,
    ] = words[..]
    else {
        return false;
    };
    let is_wait = [FUTEX_WAIT, FUTEX_WAIT_BITSET].contains(&(operation & 0x7f));
    // The kernel clears the word of a thread that ends, and wakes a shared futex.
    // A lock in memory of several processes that contains its owner has a flag beside the ID while another thread waits.
    let is_join = u32::try_from(expected).is_ok_and(|thread| threads.contains(&thread));
    let is_of_process = operation & FUTEX_PRIVATE != 0 || is_join;
    call == libc::SYS_futex as u64 && is_wait && is_of_process && time_limit == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn only_a_wait_without_a_time_limit_inside_the_process_counts() {
        let futex = libc::SYS_futex;
        let line = |operation: u64, limit: u64| {
            format!("{futex} 0x7f00 {operation:#x} 0x2 {limit:#x} 0x0 0xffffffff 0x7ffd 0x7f01\n")
        };
        let waits = |syscall: &str| waits_for_its_process(syscall, &[71, 72]);
        assert!(waits(&line(128, 0)));
        assert!(waits(&line(0x189, 0)));
        assert!(!waits(&line(128, 0x7ffd)), "a time limit");
        assert!(!waits(&line(0, 0)), "another process may wake it");
        assert!(!waits(&line(129, 0)), "it wakes");
        assert!(!waits("running\n"));
        assert!(!waits("0 0x3 0x7ffd 0x1 0x0 0x0 0x0 0x7ffd 0x7f01\n"));
        assert!(!waits(""));
    }

    #[test]
    fn a_thread_that_joins_a_thread_of_its_process_waits_for_it() {
        let line = |thread: u32, limit: u64| {
            let futex = libc::SYS_futex;
            format!("{futex} 0x7f00 0x109 {thread:#x} {limit:#x} 0x0 0xffffffff 0x7ffd 0x7f01\n")
        };
        assert!(waits_for_its_process(&line(72, 0), &[71, 72]));
        assert!(!waits_for_its_process(&line(73, 0), &[71, 72]));
        assert!(!waits_for_its_process(&line(72, 9), &[71, 72]));
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
        assert!(!others_sleep(std::process::id(), &[me]));
        assert!(!others_sleep(std::process::id(), &[u32::MAX]));
        drop(stop);
        sleeper.join().unwrap();
    }
}

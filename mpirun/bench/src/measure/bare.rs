//! Barrier without MPI, as a lower bound for `MPI_Barrier`: one counter in shared memory.
//!
//! Every rank increments the counter and polls until the sum is complete.
//! If cores are oversubscribed, a rank yields its core between polls.
//! Each rank must then be switched in once per barrier, so no software barrier is much faster.
//! The difference to `MPI_Barrier` is the cost of the library.
//!
//! Rank 0 creates the memory and broadcasts its pid and descriptor.
//! The other ranks open the memory through `/proc`.
//! If a rank cannot open the memory (other machine, no permission), no figure is printed.

use std::fs::File;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant, SystemTime};

use mpi_base::atomic::{AtomicU64, Ordering};
use mpi_base::mem::{Segment, memfd};

use crate::mpi::{Combine, MpiError, World};

/// The distance between the counter and the token in bytes.
const LINE: usize = 128;

/// A shared-memory barrier of all ranks.
pub struct Bare {
    segment: Segment,
    ranks: u64,
    passed: u64,
    crowded: bool,
}

impl Bare {
    /// Creates a barrier; returns `None` on all ranks if one of them cannot map the memory.
    pub fn new(world: &World<'_>) -> Result<Option<Bare>, MpiError> {
        let own = (world.rank() == 0).then(make).flatten();
        let fd = own.as_ref().map_or(0, |(fd, _)| fd.as_raw_fd() as u64);
        let token = own.as_ref().map_or(0, |(_, token)| *token);
        let fd = world.bcast_number(fd)?;
        let token = world.bcast_number(token)?;
        let pid = world.bcast_number(std::process::id().into())?;
        let segment = open(pid, fd).filter(|segment| {
            let there = token_in(segment).map(|word| word.load(Ordering::Acquire));
            there == Some(token) && token != 0
        });
        let here = if segment.is_some() { 1.0 } else { 0.0 };
        // This reduction also keeps rank 0's descriptor open until all ranks have opened it.
        let everywhere = world.collectives().combine(here, Combine::Min)? > 0.5;
        let ranks = u64::try_from(world.size()).unwrap_or(1);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(segment.filter(|_| everywhere).map(|segment| Bare {
            segment,
            ranks,
            passed: 0,
            crowded: ranks > cores as u64,
        }))
    }

    /// Executes `times` barriers; returns their total time.
    pub fn run(&mut self, times: u64) -> Duration {
        let Some(count) = self.segment.at::<AtomicU64>(0) else {
            return Duration::ZERO;
        };
        let begin = Instant::now();
        for _ in 0..times {
            self.passed += 1;
            let complete = self.passed * self.ranks;
            if count.fetch_add(1, Ordering::AcqRel) + 1 == complete {
                continue;
            }
            while count.load(Ordering::Acquire) < complete {
                match self.crowded {
                    true => std::thread::yield_now(),
                    false => std::hint::spin_loop(),
                }
            }
        }
        begin.elapsed()
    }
}

/// Creates the memory and stores a token there, so that a rank detects another machine's memory.
fn make() -> Option<(OwnedFd, u64)> {
    let fd = memfd("bare barrier", 2 * LINE as u64).ok()?;
    let segment = Segment::map(&fd, 2 * LINE).ok()?;
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let token = since.map_or(1, |since| since.as_nanos() as u64) | 1;
    token_in(&segment)?.store(token, Ordering::Release);
    Some((fd, token))
}

fn token_in(segment: &Segment) -> Option<&AtomicU64> {
    segment.at(LINE)
}

fn open(pid: u64, fd: u64) -> Option<Segment> {
    let path = format!("/proc/{pid}/fd/{fd}");
    let file = File::options().read(true).write(true).open(path).ok()?;
    Segment::map(&file, 2 * LINE).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_that_open_the_memory_through_proc_find_the_token_and_pass_together() {
        let (fd, token) = make().expect("memory");
        let raw = fd.as_raw_fd() as u64;
        let bare = || Bare {
            segment: open(std::process::id().into(), raw).expect("the same memory"),
            ranks: 2,
            passed: 0,
            crowded: true,
        };
        let there = token_in(&bare().segment).map(|word| word.load(Ordering::Acquire));
        assert_eq!(there, Some(token));
        std::thread::scope(|scope| {
            scope.spawn(|| bare().run(100));
            bare().run(100);
        });
        let segment = bare().segment;
        let count = segment.at::<AtomicU64>(0).expect("a count");
        assert_eq!(count.load(Ordering::Acquire), 200);
    }
}

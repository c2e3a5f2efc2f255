//! Task farm: rank 0 hands out tasks one at a time, and the other ranks compute.
//!
//! If there is one rank more than cores, rank 0 shares a core with a worker.
//! Every task then costs at least two context switches.
//! The figure is the share of the cores' time that was spent in tasks.

use std::time::{Duration, Instant};

use mpi_base::cpu::Cores;
use rustix::time::{ClockId, clock_gettime};

use crate::mpi::{ANY_SOURCE, Combine, MpiError, World};
use crate::pace::Pace;
use crate::row::Row;

const ASK: i32 = 1;
const TASK: i32 = 2;
/// Rank 0's answers to a request for work: compute one task, or end.
const WORK: u8 = 1;
const END: u8 = 0;

/// Hands out tasks of `micros` microseconds for the time of a row; `micros` becomes the row's size.
pub fn row(world: &World<'_>, micros: usize, pace: Pace) -> Result<Row, MpiError> {
    let task = Duration::from_micros(micros as u64);
    world.barrier()?;
    let begin = Instant::now();
    let tasks = match world.rank() {
        0 => manage(world, pace.budget)?,
        _ => {
            work(world, task)?;
            0
        }
    };
    let took = begin.elapsed();
    let workers = usize::try_from(world.size() - 1).unwrap_or(1);
    let cores = Cores::of_this_process().usable.min(workers).max(1);
    let share = 100.0 * tasks as f64 * task.as_secs_f64() / (took.as_secs_f64() * cores as f64);
    Ok(Row {
        size: micros,
        // Only rank 0 has computed a share; it is 0 at the other ranks.
        avg: world.collectives().combine(share, Combine::Max)?,
        iterations: tasks,
        ..Row::default()
    })
}

/// Answers requests for work of any worker until the time is over; returns the number of tasks.
fn manage(world: &World<'_>, budget: Duration) -> Result<u64, MpiError> {
    let (begin, mut working, mut tasks) = (Instant::now(), world.size() - 1, 0);
    while working > 0 {
        let mut worker = [0; 4];
        world.recv(&mut worker, ANY_SOURCE, ASK)?;
        let answer = match begin.elapsed() < budget {
            true => WORK,
            false => END,
        };
        match answer {
            WORK => tasks += 1,
            _ => working -= 1,
        }
        world.send(&[answer], i32::from_ne_bytes(worker), TASK)?;
    }
    Ok(tasks)
}

fn work(world: &World<'_>, task: Duration) -> Result<(), MpiError> {
    let mut answer = [END];
    loop {
        world.send(&world.rank().to_ne_bytes(), 0, ASK)?;
        world.recv(&mut answer, 0, TASK)?;
        if answer == [END] {
            return Ok(());
        }
        let begin = processor_time();
        while processor_time().saturating_sub(begin) < task {
            std::hint::spin_loop();
        }
    }
}

/// Returns the CPU time of this thread.
/// The wall-clock time of a task would also count the time of other processes on the core.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

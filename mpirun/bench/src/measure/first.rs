//! First uses: times of the first and, for most kinds, of the second operation in a job.
//!
//! Programs execute most operations only a few times, so set-up at the first use matters.
//! Every row is one call after a barrier; its figure is the time of the slowest rank.
//! No barrier precedes the first barrier, so the figure is that of the rank that arrives last.
//! A job gives one sample for each row. With `--vs` every round of every library is a separate job.

use std::path::PathBuf;
use std::time::Instant;

use crate::buffer::Buffer;
use crate::choices::WindowKind;
use crate::cli::FileOptions;
use crate::mpi::{Access, Calls, Combine, Duplicate, MpiError, Window, World};
use crate::row::Row;

/// The rows, in order of measurement.
pub const ROWS: &[&str] = &[
    "first barrier",
    "second barrier",
    "first sendrecv 8",
    "second sendrecv 8",
    "first allreduce 8",
    "second allreduce 8",
    "first bcast 1 MiB",
    "second bcast 1 MiB",
    "first allreduce 1 MiB",
    "second allreduce 1 MiB",
    "first alltoall 64 KiB",
    "second alltoall 64 KiB",
    "first sendrecv 64 KiB",
    "second sendrecv 64 KiB",
    "first sendrecv 4 MiB",
    "second sendrecv 4 MiB",
    "first dup",
    "first barrier on the duplicate",
    "first allreduce 8 on a duplicate",
    "second allreduce 8 on the duplicate",
    "second dup",
    "first free of a duplicate",
    "second free of a duplicate",
    "third dup",
    "third free of a duplicate",
    "first window of 1 MiB",
    "first fence",
    "first put 64 KiB and fence",
    "second put 64 KiB and fence",
    "first free of a window",
    "second window of 1 MiB",
    "second free of a window",
    "first file opened",
    "first collective write",
    "second write, file kept open",
    "first file closed",
    "second file opened",
    "first write of the second file",
    "second file closed",
];

/// The number of bytes that a rank writes collectively, in interleaved pieces of [`PIECE`] bytes.
const WRITTEN: usize = 8 << 20;
const PIECE: usize = 1 << 10;

/// The length of the longest message in bytes.
const LONGEST: usize = 4 << 20;

/// The times that this rank has measured so far, in the order of [`ROWS`].
struct Stopwatch<'w, 'a> {
    world: &'w World<'a>,
    micros: Vec<f64>,
}

impl Stopwatch<'_, '_> {
    /// Times one call, after a barrier.
    fn time<T>(&mut self, call: impl FnOnce() -> Result<T, MpiError>) -> Result<T, MpiError> {
        self.world.barrier()?;
        self.time_at_once(call)
    }

    fn time_at_once<T>(
        &mut self,
        call: impl FnOnce() -> Result<T, MpiError>,
    ) -> Result<T, MpiError> {
        let begin = Instant::now();
        let outcome = call();
        self.micros.push(begin.elapsed().as_secs_f64() * 1e6);
        outcome
    }
}

/// Measures all rows. All buffers are written before, so only the library's own pages are new.
pub fn rows(options: &FileOptions, world: &World<'_>) -> Result<Vec<Row>, MpiError> {
    let ranks = usize::try_from(world.size()).unwrap_or(1);
    let longest = LONGEST.max(ranks * (64 << 10)).max(WRITTEN);
    let (sent, mut received) = (Buffer::new(longest, 1), Buffer::new(longest, 2));
    let mut watch = Stopwatch {
        world,
        micros: Vec::with_capacity(ROWS.len()),
    };
    let received = received.bytes_mut();
    watch.time_at_once(|| world.barrier())?;
    watch.time(|| world.barrier())?;
    messages(&mut watch, sent.bytes(), received)?;
    duplicates(&mut watch)?;
    windows(&mut watch, received)?;
    files(&mut watch, options, sent.bytes())?;
    (0..)
        .zip(watch.micros)
        .map(|(at, took)| row(world, at, took))
        .collect()
}

/// Returns a row with the time of the slowest rank.
/// The row of the first barrier contains the time of the last rank to arrive.
fn row(world: &World<'_>, size: usize, took: f64) -> Result<Row, MpiError> {
    let which = match size {
        0 => Combine::Min,
        _ => Combine::Max,
    };
    Ok(Row {
        size,
        avg: world.collectives().combine(took, which)?,
        iterations: 1,
        ..Row::default()
    })
}

fn messages(
    watch: &mut Stopwatch<'_, '_>,
    sent: &[u8],
    received: &mut [u8],
) -> Result<(), MpiError> {
    let world = watch.world;
    let ranks = usize::try_from(world.size()).unwrap_or(1);
    let (to, from) = (
        (world.rank() + 1) % world.size(),
        (world.rank() + world.size() - 1) % world.size(),
    );
    let around = |watch: &mut Stopwatch<'_, '_>, received: &mut [u8], len: usize| {
        watch.time(|| world.send_and_receive((&sent[..len], to), (&mut received[..len], from)))
    };
    for _ in 0..2 {
        around(watch, received, 8)?;
    }
    for len in [8, 8] {
        watch.time(|| {
            world
                .collectives()
                .allreduce_floats(&sent[..len], &mut received[..len])
        })?;
    }
    for len in [1 << 20; 2] {
        watch.time(|| world.collectives().bcast(&mut received[..len], 0))?;
    }
    for len in [1 << 20; 2] {
        watch.time(|| {
            world
                .collectives()
                .allreduce_floats(&sent[..len], &mut received[..len])
        })?;
    }
    for len in [ranks * (64 << 10); 2] {
        watch.time(|| {
            world
                .collectives()
                .alltoall(&sent[..len], &mut received[..len])
        })?;
    }
    for len in [64 << 10, 64 << 10, LONGEST, LONGEST] {
        around(watch, received, len)?;
    }
    Ok(())
}

fn duplicates(watch: &mut Stopwatch<'_, '_>) -> Result<(), MpiError> {
    let world = watch.world;
    let first: Duplicate<'_> = watch.time(|| world.duplicate())?;
    watch.time(|| first.barrier())?;
    for _ in 0..2 {
        watch.time(|| first.sum(1.0))?;
    }
    let second = watch.time(|| world.duplicate())?;
    watch.time(|| first.free())?;
    watch.time(|| second.free())?;
    let third = watch.time(|| world.duplicate())?;
    watch.time(|| third.free())
}

fn windows(watch: &mut Stopwatch<'_, '_>, scratch: &mut [u8]) -> Result<(), MpiError> {
    let world = watch.world;
    let to = (world.rank() + 1) % world.size();
    let window: Window<'_> = watch.time(|| world.window(WindowKind::Allocate, 1 << 20))?;
    watch.time(|| window.fence())?;
    let (ours, unused) = scratch[..128 << 10].split_at_mut(64 << 10);
    for _ in 0..2 {
        watch.time(|| window.fenced_access(Access::Put, ours, unused, Some(to)))?;
    }
    watch.time(|| window.free())?;
    let window = watch.time(|| world.window(WindowKind::Allocate, 1 << 20))?;
    watch.time(|| window.free())
}

/// The path of a file that is removed when this value is dropped.
struct Removed(Option<PathBuf>);

impl Drop for Removed {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            let _ = std::fs::remove_file(path);
        }
    }
}

fn files(
    watch: &mut Stopwatch<'_, '_>,
    options: &FileOptions,
    data: &[u8],
) -> Result<(), MpiError> {
    let world = watch.world;
    // Rank 0's pid distinguishes the files of two jobs in one folder.
    let job = world.bcast_number(std::process::id().into())?;
    let path = |which: u32| {
        options
            .directory
            .join(format!("mpi-bench.{job}.first{which}"))
    };
    let view = world.interleaved(WRITTEN / PIECE, PIECE)?;
    let start = i64::from(world.rank()) * PIECE as i64;
    for which in 0..2 {
        let _removed = Removed((world.rank() == 0).then(|| path(which)));
        let file = watch.time(|| world.open_file(&path(which), false))?;
        file.set_view(start, &view, false)?;
        for _ in which..2 {
            watch.time(|| {
                file.write(Calls::All(0), &data[..WRITTEN], None)?;
                world.barrier()
            })?;
        }
        watch.time(|| file.close())?;
        world.barrier()?;
    }
    Ok(())
}

//! File I/O patterns: IOR easy and hard, mpi-tile-io, FLASH checkpoints, shared-pointer logs.
//!
//! Each write iteration begins with an empty file, so the kernel allocates all pages anew.
//! The truncation of the file is not timed.
//! An iteration lasts from one barrier to the next: the slowest rank completes the file.
//! With `--plain`, every second iteration moves the same number of bytes by `pwrite` or `pread`.
//! Each rank then uses a separate range of a second file.
//! The first iteration of a row is always read back and compared.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::buffer::Buffer;
use crate::cli::{FileOptions, Pattern};
use crate::measure::collective;
use crate::measure::error::MeasureError;
use crate::mpi::{Calls, Combine, FileType, MpiError, OpenFile, World};
use crate::pace::Pace;
use crate::row::Row;
use crate::sizes::Sizes;

/// The number of accesses of a rank per iteration in the patterns `easy` and `own`.
const BLOCKS: usize = 4;
/// The number of pieces of a rank in `hard`, and of its records in `shared` and `records`.
const PIECES: usize = 64;
/// The number of bytes that each rank accesses in one iteration of `strided`.
const STRIDED: usize = 4 << 20;
/// The number of arrays of `checkpoint`.
const ARRAYS: usize = 9;
/// The number of ghost cells at each edge of a tile.
const GHOSTS: usize = 2;
/// The maximum number of bytes of one `pwrite` or `pread` call.
const PLAIN: usize = 4 << 20;

pub fn default_sizes(pattern: Pattern) -> Sizes {
    Sizes(match pattern {
        Pattern::Easy | Pattern::Own => vec![1 << 20, 8 << 20],
        Pattern::Hard => vec![47_008],
        Pattern::Strided => vec![64, 256, 1024, 4096],
        Pattern::Tile => vec![256, 1024],
        Pattern::Checkpoint => vec![32 << 10, 1 << 20],
        Pattern::Shared | Pattern::Records => vec![1024, 64 << 10],
    })
}

/// The names of a row's files; dropping this value removes the files.
struct Names {
    mpi: PathBuf,
    plain: PathBuf,
    mine: bool,
}

impl Names {
    fn new(options: &FileOptions, world: &World<'_>, own: bool) -> Result<Names, MpiError> {
        // Rank 0's pid distinguishes the files of two jobs in one folder.
        let job = world.bcast_number(std::process::id().into())?;
        let suffix = match own {
            true => format!(".{}", world.rank()),
            false => String::new(),
        };
        let name = |kind| {
            options
                .directory
                .join(format!("mpi-bench.{job}.{kind}{suffix}"))
        };
        Ok(Names {
            mpi: name("mpi"),
            plain: name("plain"),
            mine: own || world.rank() == 0,
        })
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        if self.mine {
            for name in [&self.mpi, &self.plain] {
                let _ = std::fs::remove_file(name);
            }
        }
    }
}

/// A pattern with its open file.
struct Task<'a> {
    world: &'a World<'a>,
    file: OpenFile<'a>,
    pattern: Pattern,
    size: usize,
    /// The datatype of the tile in memory, without its ghost cells.
    inside: Option<FileType<'a>>,
}

/// Returns the number of rows and columns of the ranks' grid, as square as possible.
fn grid(ranks: usize) -> [usize; 2] {
    let rows = (1..=ranks).filter(|n| ranks.is_multiple_of(*n) && n * n <= ranks);
    let rows = rows.max().unwrap_or(1);
    [rows, ranks / rows]
}

/// Returns the number of bytes that a rank moves in an iteration, and its buffer size in bytes.
fn bytes(pattern: Pattern, size: usize) -> (usize, usize) {
    let moved = match pattern {
        Pattern::Easy | Pattern::Own => BLOCKS * size,
        Pattern::Hard | Pattern::Shared | Pattern::Records => PIECES * size,
        Pattern::Strided => STRIDED / size.clamp(1, STRIDED) * size,
        Pattern::Tile => size * size * size_of::<f64>(),
        Pattern::Checkpoint => ARRAYS * size,
    };
    let edge = size + 2 * GHOSTS;
    match pattern {
        Pattern::Tile => (moved, edge * edge * size_of::<f64>()),
        _ => (moved, moved),
    }
}

impl<'a> Task<'a> {
    fn new(
        world: &'a World<'a>,
        path: &Path,
        pattern: Pattern,
        size: usize,
    ) -> Result<Task<'a>, MpiError> {
        let file = world.open_file(path, pattern == Pattern::Own)?;
        let (rank, ranks) = ranks(world);
        let mut inside = None;
        match pattern {
            Pattern::Hard | Pattern::Strided => {
                let pieces = bytes(pattern, size).0 / size.max(1);
                let filetype = world.interleaved(pieces, size)?;
                file.set_view((rank * size) as i64, &filetype, false)?;
            }
            Pattern::Tile => {
                let [rows, columns] = grid(ranks);
                let start = [rank / columns * size, rank % columns * size];
                let whole = [rows * size, columns * size];
                let filetype = world.rectangle(whole, [size, size], start)?;
                file.set_view(0, &filetype, true)?;
                let edge = size + 2 * GHOSTS;
                inside = Some(world.rectangle([edge; 2], [size; 2], [GHOSTS; 2])?);
            }
            _ => {}
        }
        Ok(Task {
            world,
            file,
            pattern,
            size,
            inside,
        })
    }

    /// Returns the accesses of an iteration: ranges of the buffer with their file positions.
    fn accesses(&self) -> Vec<(std::ops::Range<usize>, Calls)> {
        let (rank, ranks) = ranks(self.world);
        let size = self.size;
        let piece = |i: usize| i * size..(i + 1) * size;
        let at = |place: usize| (place * size) as i64;
        match self.pattern {
            Pattern::Easy => (0..BLOCKS)
                .map(|i| (piece(i), Calls::Alone(at(rank * BLOCKS + i))))
                .collect(),
            Pattern::Own => (0..BLOCKS)
                .map(|i| (piece(i), Calls::Alone(at(i))))
                .collect(),
            Pattern::Records => (0..PIECES)
                .map(|i| (piece(i), Calls::Alone(at(i * ranks + rank))))
                .collect(),
            Pattern::Shared => (0..PIECES).map(|i| (piece(i), Calls::Shared)).collect(),
            Pattern::Checkpoint => (0..ARRAYS)
                .map(|i| (piece(i), Calls::All(at(i * ranks + rank))))
                .collect(),
            Pattern::Hard | Pattern::Strided | Pattern::Tile => {
                vec![(0..bytes(self.pattern, size).1, Calls::All(0))]
            }
        }
    }

    fn write(&self, data: &[u8]) -> Result<(), MpiError> {
        self.accesses()
            .into_iter()
            .try_for_each(|(part, calls)| self.file.write(calls, &data[part], self.inside.as_ref()))
    }

    fn read(&self, data: &mut [u8]) -> Result<(), MpiError> {
        self.accesses().into_iter().try_for_each(|(part, calls)| {
            self.file.read(calls, &mut data[part], self.inside.as_ref())
        })
    }

    /// Prepares an iteration: truncates the file before writes, and rewinds the shared pointer.
    fn prepare(&self, reads: bool) -> Result<(), MpiError> {
        if !reads {
            self.file.set_size(0)?;
        }
        if self.pattern == Pattern::Shared {
            self.file.rewind_shared()?;
        }
        Ok(())
    }

    /// Reads the file back; returns true if it contains the written data.
    fn is_right(&self, data: &[u8]) -> Result<bool, MpiError> {
        self.prepare(true)?;
        let mut back = Buffer::new(data.len(), 0);
        self.read(back.bytes_mut())?;
        let same = match (self.pattern, self.size) {
            // The order of the ranks' records at the shared pointer is undefined.
            (Pattern::Shared, _) => back.bytes().iter().all(|byte| *byte != 0),
            (Pattern::Tile, size) => {
                let row = (size + 2 * GHOSTS) * size_of::<f64>();
                let ghosts = GHOSTS * size_of::<f64>();
                let inside = |data: &[u8], i: usize| {
                    let begin = (i + GHOSTS) * row + ghosts;
                    data[begin..begin + size * size_of::<f64>()].to_vec()
                };
                (0..size).all(|i| inside(data, i) == inside(back.bytes(), i))
            }
            _ => data == back.bytes(),
        };
        let right = self
            .world
            .collectives()
            .combine(f64::from(u8::from(same)), Combine::Min)?;
        Ok(right == 1.0)
    }
}

fn ranks(world: &World<'_>) -> (usize, usize) {
    let number = |n: i32| usize::try_from(n).unwrap_or(0);
    (number(world.rank()), number(world.size()))
}

/// Access to the same number of bytes without MPI.
struct Plain {
    file: File,
    at: u64,
    /// The number of bytes of one `pwrite` or `pread` call.
    call: usize,
    cuts: bool,
}

impl Plain {
    fn new(
        names: &Names,
        world: &World<'_>,
        pattern: Pattern,
        size: usize,
    ) -> Result<Plain, MeasureError> {
        let own = pattern == Pattern::Own;
        let open = || {
            let mut options = OpenOptions::new();
            let options = options.read(true).write(true).create(true).truncate(false);
            options.open(&names.plain)
        };
        let file = all(world, open())?;
        let (rank, _) = ranks(world);
        let (moved, _) = bytes(pattern, size);
        let call = match pattern {
            Pattern::Easy | Pattern::Own | Pattern::Shared | Pattern::Records => size,
            _ => moved,
        };
        Ok(Plain {
            file,
            at: if own { 0 } else { (rank * moved) as u64 },
            call: call.clamp(1, PLAIN),
            cuts: own || rank == 0,
        })
    }

    fn prepare(&self) -> std::io::Result<()> {
        match self.cuts {
            true => self.file.set_len(0),
            false => Ok(()),
        }
    }

    fn write(&self, data: &[u8]) -> std::io::Result<()> {
        let mut at = self.at;
        data.chunks(self.call).try_for_each(|part| {
            self.file.write_all_at(part, at)?;
            at += part.len() as u64;
            Ok(())
        })
    }

    fn read(&self, data: &mut [u8]) -> std::io::Result<()> {
        let mut at = self.at;
        data.chunks_mut(self.call).try_for_each(|part| {
            self.file.read_exact_at(part, at)?;
            at += part.len() as u64;
            Ok(())
        })
    }
}

/// Combines the outcomes of all ranks, since a rank that fails alone would block the others.
fn all<T>(world: &World<'_>, outcome: std::io::Result<T>) -> Result<T, MeasureError> {
    let failed = f64::from(u8::from(outcome.is_err()));
    match (outcome, world.collectives().combine(failed, Combine::Max)?) {
        (Err(error), _) => Err(MeasureError::Plain(error)),
        (Ok(_), 1.0) => Err(MeasureError::Plain(std::io::Error::other(
            "at another rank",
        ))),
        (Ok(done), _) => Ok(done),
    }
}

/// Times `act`, from one barrier to the next.
fn timed<E>(
    world: &World<'_>,
    act: impl FnOnce() -> Result<(), E>,
) -> Result<(Result<(), E>, Duration), MpiError> {
    world.barrier()?;
    let begin = Instant::now();
    let outcome = act();
    world.barrier()?;
    Ok((outcome, begin.elapsed()))
}

/// Measures one row of `io`: the bandwidth of all ranks together in MB/s.
pub fn row(
    options: &FileOptions,
    world: &World<'_>,
    size: usize,
    pace: Pace,
) -> Result<Row, MeasureError> {
    let pattern = options.pattern;
    let (moved, room) = bytes(pattern, size);
    let names = Names::new(options, world, pattern == Pattern::Own)?;
    let task = Task::new(world, &names.mpi, pattern, size)?;
    let mut data = Buffer::new(room, 0);
    let salt = world.rank().unsigned_abs().wrapping_mul(31);
    for (at, byte) in (0u32..).zip(data.bytes_mut()) {
        // No byte is zero, since zero is the value of holes in a file.
        *byte = (at.wrapping_mul(7).wrapping_add(at >> 8).wrapping_add(salt) % 251) as u8 + 1;
    }
    task.prepare(false)?;
    world.barrier()?;
    task.write(data.bytes())?;
    world.barrier()?;
    if !task.is_right(data.bytes())? {
        return Err(MeasureError::Differs { pattern, size });
    }
    let plain = match options.plain {
        true => Some(Plain::new(&names, world, pattern, size)?),
        false => None,
    };
    let mut plain_data = Buffer::new(moved, b'p');
    if let Some(plain) = &plain {
        all(world, plain.prepare())?;
        all(world, plain.write(plain_data.bytes()))?;
    }
    let (mut took, mut plain_took) = (Duration::ZERO, Duration::ZERO);
    let mut failed = None;
    let mut batch = |n: u64| -> Result<(), MpiError> {
        (took, plain_took) = (Duration::ZERO, Duration::ZERO);
        for _ in 0..n {
            task.prepare(options.read)?;
            let (outcome, time) = timed(world, || match options.read {
                true => task.read(data.bytes_mut()),
                false => task.write(data.bytes()),
            })?;
            outcome?;
            took += time;
            let Some(plain) = &plain else { continue };
            if !options.read {
                failed = failed.take().or(plain.prepare().err());
            }
            let (outcome, time) = timed(world, || match options.read {
                true => plain.read(plain_data.bytes_mut()),
                false => plain.write(plain_data.bytes()),
            })?;
            failed = failed.take().or(outcome.err());
            plain_took += time;
        }
        Ok(())
    };
    let iterations = pace.settle(world, &mut batch)?;
    batch(iterations)?;
    task.file.close()?;
    all(world, failed.map_or(Ok(()), Err))?;
    let rate = |took: Duration| -> Result<f64, MpiError> {
        let slowest = world
            .collectives()
            .combine(took.as_secs_f64(), Combine::Max)?;
        let total = moved as f64 * f64::from(world.size()) * iterations as f64;
        Ok(total / 1e6 / slowest)
    };
    Ok(Row {
        size,
        avg: rate(took)?,
        iterations,
        bare: match plain {
            Some(_) => Some(rate(plain_took)?),
            None => None,
        },
        ..Row::default()
    })
}

/// Measures one row of `open`: the time of opening and closing, in microseconds.
pub fn open(
    options: &FileOptions,
    world: &World<'_>,
    size: usize,
    pace: Pace,
) -> Result<Row, MeasureError> {
    let names = Names::new(options, world, false)?;
    let mut open_and_close = |n: u64| {
        (0..n).try_for_each(|_| world.open_file(&names.mpi, false).and_then(OpenFile::close))
    };
    let iterations = pace.settle(world, &mut open_and_close)?;
    world.barrier()?;
    let begin = Instant::now();
    open_and_close(iterations)?;
    let micros = begin.elapsed().as_secs_f64() * 1e6 / iterations as f64;
    Ok(Row {
        iterations,
        ..collective::across(world, size, micros)?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grid_of_ranks_is_as_square_as_their_number_lets_it_be() {
        assert_eq!(grid(1), [1, 1]);
        assert_eq!(grid(6), [2, 3]);
        assert_eq!(grid(7), [1, 7]);
        assert_eq!(grid(16), [4, 4]);
    }

    #[test]
    fn a_tile_moves_its_inside_and_has_room_for_its_ghost_cells() {
        assert_eq!(bytes(Pattern::Tile, 4), (128, 512));
        assert_eq!(bytes(Pattern::Strided, 64), (STRIDED, STRIDED));
        assert_eq!(bytes(Pattern::Hard, 47_008), (64 * 47_008, 64 * 47_008));
    }
}

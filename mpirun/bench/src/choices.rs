//! Enumerated option values, except the benchmark.

use clap::ValueEnum;

/// The memory of messages that are in flight together; `-b` of the OSU benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Buffers {
    /// One for all of them, which stays in the nearest cache
    Single,
    /// One for each, as in programs
    Multiple,
}

impl Buffers {
    /// Returns the memory in bytes for `window` messages of `size` bytes.
    pub fn memory(self, size: usize, window: usize) -> usize {
        match self {
            Buffers::Single => size,
            Buffers::Multiple => size * window,
        }
    }
}

/// The function that creates a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WindowKind {
    /// Of memory of the program
    Create,
    Allocate,
    /// With memory attached to it
    Dynamic,
    Shared,
}

/// The synchronisation that completes an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sync {
    /// MPI_Win_flush; all ranks are locked for the whole run
    Flush,
    /// An exclusive lock around each access
    Lock,
    /// MPI_Win_fence
    Fence,
    /// MPI_Win_post, start, complete and wait
    Pscw,
}

/// The settings of the compared libraries (peers) to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Settings {
    /// Every tuned setting; each row takes the best of them
    Best,
    /// As the peer comes
    Default,
    /// All libraries over TCP, ours too, each peer at its best there
    Tcp,
}

//! Enumerated option values, except the benchmark.

use clap::ValueEnum;

/// Whether messages that are in flight together share a buffer; as `-b` of the OSU benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Buffers {
    /// One buffer for all messages, which stays in the nearest cache
    Single,
    /// One buffer for each message in flight, as in most applications
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
    /// On memory of the program
    Create,
    Allocate,
    /// With attached memory
    Dynamic,
    Shared,
}

/// The synchronisation that completes an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Sync {
    /// MPI_Win_flush, within one MPI_Win_lock_all for all accesses
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
    /// Every tuned setting; each row uses the best setting
    Best,
    /// The default setting of each library
    Default,
    /// All libraries over TCP, each with its best TCP setting
    Tcp,
}

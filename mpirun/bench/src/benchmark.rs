//! List of the benchmarks, with their properties.

use clap::ValueEnum;
use serde::Serialize;

/// A benchmark of `mpi-bench`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Benchmark {
    /// Half a round trip between two ranks
    Latency,
    /// One-way bandwidth, 64 messages in flight
    Bw,
    /// Bandwidth in both directions at once
    Bibw,
    /// Message rate of many pairs: rank r to rank r + n/2, 64 messages in flight each
    Rate,
    /// Half a round trip of many pairs at once
    Multilat,
    /// Message rate of two ranks with several threads each; a size is the number of threads
    Threads,
    /// Latency with posted receives that do not match; a size is the number of receives
    Posted,
    /// Latency with unexpected messages in the queue; a size is the number of messages
    Unexpected,
    /// Latency of a matrix column
    Column,
    /// Latency of the face of a cube
    Face,
    /// Latency of doubles at irregular displacements
    Indexed,
    /// Latency of one index range in four arrays
    Arrays,
    /// MPI_Barrier on all ranks
    Barrier,
    /// Time from the first rank's exit to the last rank's exit from MPI_Barrier
    ExitSkew,
    /// MPI_Comm_dup of all ranks, and MPI_Comm_free
    Dup,
    /// MPI_Bcast from rank 0
    Bcast,
    /// MPI_Reduce to rank 0, sum of MPI_FLOAT
    Reduce,
    /// MPI_Allreduce, sum of MPI_FLOAT
    Allreduce,
    /// MPI_Reduce_scatter_block, sum of MPI_FLOAT; a size is the length of one rank's block
    ReduceScatter,
    /// MPI_Scan, sum of MPI_FLOAT
    Scan,
    /// MPI_Exscan, sum of MPI_FLOAT
    Exscan,
    /// MPI_Gather to rank 0; a size is the length of one rank's block
    Gather,
    /// MPI_Scatter from rank 0; a size is the length of one rank's block
    Scatter,
    /// MPI_Allgather; a size is the length of one rank's block
    Allgather,
    /// MPI_Alltoall; a size is the length of the block from one rank to another
    Alltoall,
    /// MPI_Ibarrier on all ranks, and MPI_Wait
    Ibarrier,
    /// MPI_Ibcast from rank 0, and MPI_Wait
    Ibcast,
    /// MPI_Ireduce to rank 0, sum of MPI_FLOAT, and MPI_Wait
    Ireduce,
    /// MPI_Iallreduce, sum of MPI_FLOAT, and MPI_Wait
    Iallreduce,
    /// MPI_Iallgather, and MPI_Wait; a size is the length of one rank's block
    Iallgather,
    /// MPI_Ialltoall, and MPI_Wait; a size is the length of the block from one rank to another
    Ialltoall,
    /// Share of MPI_Iallreduce that overlaps with computation, in percent
    Overlap,
    /// MPI_Put of rank 0 to rank 1, with its completion (--sync)
    Put,
    /// MPI_Get of rank 0 from rank 1, with its completion (--sync)
    Get,
    /// MPI_Accumulate of 64-bit integers, MPI_SUM, with its completion (--sync)
    Acc,
    /// MPI_Get_accumulate of 64-bit integers, MPI_SUM, with its completion (--sync)
    GetAcc,
    /// MPI_Fetch_and_op of a 64-bit integer, MPI_SUM, with its completion (--sync)
    Fop,
    /// MPI_Compare_and_swap of a 64-bit integer, with its completion (--sync)
    Cas,
    /// Bandwidth of MPI_Put, with 64 calls per flush
    PutBw,
    /// Bandwidth of MPI_Get, with 64 calls per flush
    GetBw,
    /// Bandwidth of MPI_Put in both directions at once
    PutBibw,
    /// An exclusive lock of rank 1, MPI_Put of 8 bytes, and the unlock
    Lock,
    /// MPI_Win_lock_all and MPI_Win_unlock_all
    LockAll,
    /// MPI_Win_flush without a preceding access
    Flush,
    /// MPI_Win_fence of all ranks
    Fence,
    /// MPI_Win_post, start, complete and wait of all ranks for all ranks
    Pscw,
    /// All ranks add to one integer at rank 0 at the same time, with MPI_Fetch_and_op and a flush
    Counter,
    /// Files that all ranks write or read together; see --pattern, --read and --plain
    Io,
    /// MPI_File_open of one file by all ranks, and MPI_File_close
    Open,
    /// The first and the second operation of each kind in a job; see --directory
    First,
    /// Operations beside processes that compute; with -n or --vs, busy loops run meanwhile (--load)
    Beside,
    /// A manager's tasks for the other ranks: the share of the cores that compute; a size is the duration of a task in microseconds
    Farm,
    /// MPI_Init; with --vs also the time from the command to its return, and of the whole command
    Init,
    /// A program that does nothing, from the start to the end of the launcher's command
    Launch,
    /// Memory of a rank after MPI_Init (its proportional set size)
    Memory,
    /// Memory of the launcher's processes while the job runs
    LauncherMemory,
}

impl Benchmark {
    /// Returns true if the benchmark requires exactly two ranks.
    pub fn is_pairwise(self) -> bool {
        use Benchmark::*;
        matches!(
            self,
            Latency | Bw | Bibw | Threads | Posted | Unexpected | Column | Face | Indexed | Arrays
        ) || self.is_access()
            || matches!(self, PutBw | GetBw | PutBibw)
    }

    /// Returns true if the benchmark measures one access of any size from rank 0 to rank 1.
    pub fn is_access(self) -> bool {
        use Benchmark::*;
        matches!(self, Put | Get | Acc | GetAcc | Fop | Cas)
    }

    /// Returns true if the benchmark measures a window operation without a choice of message sizes.
    pub fn is_of_windows(self) -> bool {
        use Benchmark::*;
        matches!(self, Lock | LockAll | Flush | Fence | Pscw | Counter)
    }

    /// Returns true if the benchmark creates an MPI window.
    pub fn has_window(self) -> bool {
        use Benchmark::*;
        self.is_access() || self.is_of_windows() || matches!(self, PutBw | GetBw | PutBibw)
    }

    /// Returns the length in bytes of the elements that the benchmark transfers, if these are not bytes.
    pub fn element(self) -> Option<usize> {
        use Benchmark::*;
        match self {
            Reduce | Allreduce | ReduceScatter | Scan | Exscan | Ireduce | Iallreduce | Overlap => {
                Some(size_of::<f32>())
            }
            Acc | GetAcc | Fop | Cas => Some(size_of::<i64>()),
            _ if self.is_of_layouts() => Some(size_of::<f64>()),
            _ => None,
        }
    }

    /// Returns true if the benchmark transfers exactly one element.
    pub fn is_of_one_element(self) -> bool {
        matches!(self, Benchmark::Fop | Benchmark::Cas)
    }

    /// Returns true if the benchmark sends doubles that are not contiguous.
    pub fn is_of_layouts(self) -> bool {
        use Benchmark::*;
        matches!(self, Column | Face | Indexed | Arrays)
    }

    /// Returns true if the benchmark writes files in the folder `--directory`.
    pub fn has_files(self) -> bool {
        matches!(self, Benchmark::Io | Benchmark::Open | Benchmark::First)
    }

    /// Returns true if the benchmark requires an even number of ranks.
    pub fn is_in_pairs(self) -> bool {
        matches!(self, Benchmark::Rate | Benchmark::Multilat)
    }

    /// Returns true if one iteration transfers several messages that are in flight together.
    pub fn is_windowed(self) -> bool {
        use Benchmark::*;
        matches!(self, Bw | Bibw | Rate | Threads | PutBw | GetBw | PutBibw)
    }

    /// Returns true if a row is the average of many iterations.
    pub fn is_of_loops(self) -> bool {
        use Benchmark::*;
        !matches!(self, First | Init | Launch | Memory | LauncherMemory)
    }

    /// Returns the benchmark's name on the command line.
    pub fn name(self) -> String {
        self.to_possible_value()
            .map_or_else(String::new, |v| v.get_name().to_owned())
    }
}

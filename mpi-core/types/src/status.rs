//! Statuses, and the constants for wildcards and for the null process.

/// The status of a completed receive or probe: `MPI_Status` without its C layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Rank of the sender in the communicator; [`ANY_SOURCE`] if there was no message.
    pub source: i32,
    pub tag: i32,
    /// Number of bytes of packed data that were received.
    pub bytes: u64,
    pub cancelled: bool,
}

/// Any source, in a receive or a probe. This constant and the next two have the values of the
/// standard ABI, so arguments need no translation.
pub const ANY_SOURCE: i32 = -1;
/// Any tag, in a receive or a probe.
pub const ANY_TAG: i32 = -2;
/// The null process: a send to it has no effect, and a receive from it gets no data.
pub const PROC_NULL: i32 = -3;

impl Status {
    /// The status of an operation that received no message.
    pub const EMPTY: Status = Status {
        source: ANY_SOURCE,
        tag: ANY_TAG,
        bytes: 0,
        cancelled: false,
    };

    /// The status of a receive from `MPI_PROC_NULL`.
    pub const PROC_NULL: Status = Status {
        source: PROC_NULL,
        tag: ANY_TAG,
        bytes: 0,
        cancelled: false,
    };
}

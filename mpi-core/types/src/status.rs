//! Statuses, wildcards and the null process.

/// What a completed receive or probe says about its message; `MPI_Status` without C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Rank of the sender in the communicator; [`ANY_SOURCE`] where there was no message.
    pub source: i32,
    pub tag: i32,
    /// Bytes of packed data that were received.
    pub bytes: u64,
    pub cancelled: bool,
}

/// Wildcards and the null process, with the values of the standard ABI so that nothing is translated on the way in.
pub const ANY_SOURCE: i32 = -1;
/// Any tag, in a receive or a probe.
pub const ANY_TAG: i32 = -2;
/// No process: what is sent there is gone, and what is received from there is empty.
pub const PROC_NULL: i32 = -3;

impl Status {
    /// The status of an operation that received nothing.
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

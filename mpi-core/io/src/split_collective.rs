//! State of a file between calls: its open split collective, and memory for collective accesses.

use crate::collective::shm_aggregation::ShmBuffers;
use std::rc::Rc;

/// An open split collective: the name of its call, and the number of bytes transferred.
pub(crate) struct SplitCollective {
    pub(crate) call: &'static str,
    pub(crate) bytes: i64,
}

/// The state of the shared memory for collective accesses.
#[derive(Default)]
pub(crate) enum SharedMemory {
    #[default]
    Untried,
    Ready(Rc<ShmBuffers>),
    /// The memory cannot be shared, or each of several nodes has only one member.
    Impossible,
}

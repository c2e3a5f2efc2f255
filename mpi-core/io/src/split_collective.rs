//! State that an open file keeps between calls: an open split collective, and the shared memory of its members.

use crate::collective::shm_aggregation::ShmBuffers;
use std::rc::Rc;

/// An open split collective: its call, and the number of bytes it has moved.
pub(crate) struct SplitCollective {
    pub(crate) call: &'static str,
    pub(crate) bytes: i64,
}

/// The shared memory of collective accesses.
#[derive(Default)]
pub(crate) enum SharedMemory {
    #[default]
    Untried,
    Ready(Rc<ShmBuffers>),
    /// Memory cannot be shared, or each of several nodes has only one member.
    Impossible,
}

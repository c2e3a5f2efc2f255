//! The exchange of addresses between the processes of a job.

use mpi_base::proc::ProcId;

/// Where each process of a job says how it can be reached.
///
/// What was put before the fence that follows [`open_all`](super::open_all) (see [`Opened::fence`](super::Opened::fence)) can be read by every process after it.
pub trait Modex: Send + Sync {
    /// Says something about this process to all others; every key once, before the fence.
    fn put(&self, key: &str, value: &[u8]) -> Result<(), String>;

    /// What `of` has put under `key`; may take a round trip to the launcher.
    fn get(&self, of: ProcId, key: &str) -> Result<Vec<u8>, String>;
}

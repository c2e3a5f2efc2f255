//! Modex: the exchange of addresses between the processes of a job.

use mpi_base::proc::ProcId;

/// Key-value store in which each process of a job publishes its addresses.
///
/// What was put before the fence that follows [`open_all`](super::open_all) (see [`Opened::fence`](super::Opened::fence)) can be read by every process after it.
pub trait Modex: Send + Sync {
    /// Publishes a value of this process under `key`; each key once, before the fence.
    fn put(&self, key: &str, value: &[u8]) -> Result<(), String>;

    /// Returns what `of` has put under `key`; may take a round trip to the launcher.
    fn get(&self, of: ProcId, key: &str) -> Result<Vec<u8>, String>;
}

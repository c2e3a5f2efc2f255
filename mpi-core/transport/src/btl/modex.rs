//! Modex: the exchange of addresses between the processes of a job.

use mpi_base::proc::ProcId;

/// The key-value store in which each process of a job publishes its addresses.
///
/// After the fence that follows [`open_all`](super::open_all)
/// (see [`Opened::fence`](super::Opened::fence)),
/// every process can read all values that were published before this fence.
pub trait Modex: Send + Sync {
    /// Publishes a value of this process under `key`, before the fence. Each key may be published once.
    fn put(&self, key: &str, value: &[u8]) -> Result<(), String>;

    /// Returns the value that process `of` has published under `key`; this can take a round trip to the launcher.
    fn get(&self, of: ProcId, key: &str) -> Result<Vec<u8>, String>;
}

//! The components this library is built with: the one place that names crates above the engine.

use mpi_base::param::Params;
use mpi_core::coll::{self, Component};

/// The collective components.
pub fn coll(_params: &Params) -> Vec<Box<dyn Component>> {
    coll::built_in()
}

//! Access of tools to the lanes other than 0: queues of communicators, engines and requests.
//!
//! Performance variables are read in a module on which the lanes depend through the registry,
//! so lanes register their functions here when they start. Without lanes there is nothing to read.

use crate::abi::MPI_Comm;
use crate::object::request::RequestState;
use mpi_base::state::About;
use mpi_core::Engine;
use mpi_core::comm::Comm;
use mpi_core::pml::Matching;
use std::sync::OnceLock;

/// A function that is called with an engine.
type Visit<'a> = &'a mut dyn FnMut(&Engine);

/// A function that is called with a matching state.
type Read<'a> = &'a mut dyn FnMut(&Matching);

/// The functions of lanes; the callers hold lock 0.
#[derive(Clone, Copy)]
pub struct LaneTools {
    /// Calls a function with the engine of each lane other than 0.
    pub each_engine: fn(Visit<'_>),
    /// Calls a function with the matching state of a communicator, unless the communicator belongs to lane 0.
    pub with_matching: fn(&Comm, Read<'_>),
    /// Returns the requests of lanes other than 0 whose handles the program holds.
    pub left_requests: fn() -> Vec<LeftRequest>,
}

/// A request whose handle the program holds.
pub struct LeftRequest {
    pub comm: MPI_Comm,
    pub state: RequestState,
    /// The operation; `None` for a persistent request.
    pub about: Option<About>,
}

static TOOLS: OnceLock<LaneTools> = OnceLock::new();

/// Registers the functions of lanes.
pub fn register(tools: LaneTools) {
    let _ = TOOLS.set(tools);
}

/// Calls `visit` with the engine of each lane other than 0.
pub fn each_engine(mut visit: impl FnMut(&Engine)) {
    if let Some(tools) = TOOLS.get() {
        (tools.each_engine)(&mut visit);
    }
}

/// Returns the sum of a value of all lanes other than 0.
pub fn sum(of: impl Fn(&Engine) -> u64) -> u64 {
    let mut sum = 0;
    each_engine(|engine| sum += of(engine));
    sum
}

/// Calls `read` with the matching state of a communicator in its lane; `None` if it belongs to lane 0.
pub fn with_matching<R>(comm: &Comm, read: impl Fn(&Matching) -> R) -> Option<R> {
    let mut result = None;
    if let Some(tools) = TOOLS.get() {
        (tools.with_matching)(comm, &mut |matching| result = Some(read(matching)));
    }
    result
}

/// Returns the requests of lanes other than 0 whose handles the program holds.
pub fn left_requests() -> Vec<LeftRequest> {
    TOOLS
        .get()
        .map_or_else(Vec::new, |tools| (tools.left_requests)())
}

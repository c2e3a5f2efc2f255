//! `mpirun --explain`: what was selected and why the rest was not, told by rank 0 when it has joined the job.

use mpi_base::param::{Level, Param, Params};
use mpi_core::Engine;
use mpi_core::btl::OpenError;
use mpi_core::plugin::{Catalogue, Origin};

/// Set by `mpirun --explain`.
pub static EXPLAIN: Param<bool> = Param::new(
    "mpi",
    "base",
    "explain",
    "false",
    Level::USER,
    "Whether rank 0 says what was selected and why the rest was not; what mpirun --explain sets",
);

/// What was seen while the library was put together.
pub struct Findings<'a> {
    pub rte: &'static str,
    pub rte_rejected: &'a [(&'static str, String)],
    pub btl_refused: &'a [(&'static str, OpenError)],
    pub plugins: &'a Catalogue,
}

/// Lines about what is settled before the job starts.
pub fn before_start(params: &Params, found: &Findings<'_>) -> Vec<String> {
    let mut lines = vec![format!("rte: {} serves", found.rte)];
    lines.extend(
        found
            .rte_rejected
            .iter()
            .map(|(name, why)| format!("rte: {name} does not: {why}")),
    );
    lines.extend(
        params
            .settings()
            .map(|(name, value, source)| format!("parameter {name} = {value} ({source})")),
    );
    lines.extend(
        params
            .complaints()
            .iter()
            .map(|complaint| format!("parameter ignored: {complaint}")),
    );
    lines.extend(
        found
            .btl_refused
            .iter()
            .map(|(name, why)| format!("btl: {name} is not used: {why}")),
    );
    lines.extend(
        found
            .plugins
            .taken
            .iter()
            .filter(|taken| taken.origin != Origin::BuiltIn)
            .map(|taken| {
                format!(
                    "plugin: {} {} from {}",
                    taken.plugin.name, taken.plugin.version, taken.origin
                )
            }),
    );
    lines.extend(
        found
            .plugins
            .rejected
            .iter()
            .map(|rejected| format!("plugin: {rejected}")),
    );
    lines
}

/// Prints everything, once there is a world.
pub fn tell(engine: &Engine, mut lines: Vec<String>) {
    lines.extend(engine.pml().bml().btls().iter().map(|btl| {
        let limits = btl.limits();
        format!(
            "btl: {} is used, eager up to {} bytes, pieces of {} bytes",
            btl.name(),
            limits.eager,
            limits.max_send
        )
    }));
    if let Some(world) = engine.world()
        && let Some(table) = world.coll()
    {
        lines.extend(table.explain("MPI_COMM_WORLD"));
    }
    for line in lines {
        eprintln!("explain: {line}");
    }
}

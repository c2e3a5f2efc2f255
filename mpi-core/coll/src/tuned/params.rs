//! The parameters of `tuned`.

use crate::CallId;
use mpi_base::param::{About, Level, Param};
use std::path::PathBuf;

/// Path of a file with a decision table that replaces the built-in one.
pub static RULES: Param<PathBuf> = Param::new(
    "coll",
    "tuned",
    "rules",
    "",
    Level::TUNER,
    "Path of a decision table that replaces the built-in one; its content must be the same on all ranks",
);

macro_rules! algorithms {
    ($($call:literal),*) => {[$(
        Param::new(
            "coll",
            "tuned",
            concat!($call, "_algorithm"),
            "",
            Level::TUNER,
            concat!("The algorithm of ", $call, ", instead of what the decision table says; it must be the same at all ranks."),
        )
    ),*]};
}

/// The parameters that force an algorithm, one per [`CallId`].
static ALGORITHMS: [Param<String>; CallId::ALL.len()] = algorithms!(
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "reduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "exscan",
    "neighbor_allgather",
    "neighbor_allgatherv",
    "neighbor_alltoall",
    "neighbor_alltoallv",
    "neighbor_alltoallw"
);

/// Returns the parameter that forces the algorithm of a collective.
pub fn algorithm(call: CallId) -> &'static Param<String> {
    &ALGORITHMS[call as usize]
}

/// Returns all parameters, for lists such as that of `mpi-info`.
pub fn all() -> impl Iterator<Item = &'static About> {
    std::iter::once(RULES.about()).chain(ALGORITHMS.iter().map(Param::about))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_has_the_parameter_of_its_name() {
        for call in CallId::ALL {
            assert_eq!(algorithm(call).about().name, format!("{call}_algorithm"));
        }
        assert_eq!(all().count(), 1 + CallId::ALL.len());
    }
}

//! Checks of a job's parameters, which the launcher makes before any process starts.
//!
//! The launcher reports unknown parameter names of its own frameworks.
//! The library in rank 0 reports all other unknown names.
//! The launcher checks the values of its own and of all built-in parameters.
//! Each rank checks the values of plugins' parameters.

use crate::frameworks;
use crate::launch::program::Plan;
use mpi_abi::frameworks::{malformed, with};
use mpi_abi::params::TELL_MISSPELT;
use mpi_abi::unknown_params::{is_launchers, sentences};
use mpi_base::param::{ParamError, Params};
use mpi_core::plugin::Catalogue;

/// Returns an error for the first parameter whose value is invalid.
pub fn check_values(plan: &Plan) -> Result<(), ParamError> {
    let params = of_job(plan);
    let known = with(&Catalogue::default()).into_iter();
    let known: Vec<_> = known.chain(frameworks::of_launcher()).collect();
    malformed(&params, &known)
}

fn of_job(plan: &Plan) -> Params {
    Params::load(plan.env.iter().cloned(), &crate::prefix::parameter_files())
}

/// Returns a message for each setting that names an unknown parameter of the launcher.
pub fn unknown_params(plan: &Plan) -> Vec<String> {
    let params = of_job(plan);
    // An unparsable value counts as true here; the library reports the error.
    match params.get(&TELL_MISSPELT).unwrap_or(true) {
        true => sentences(&params, &frameworks::of_launcher(), |name| {
            !is_launchers(name)
        }),
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_abi::unknown_params::LAUNCHERS;

    #[test]
    fn the_library_leaves_to_the_launcher_what_the_launcher_has() {
        let mine = frameworks::of_launcher().map(|framework| framework.name);
        assert_eq!(mine, LAUNCHERS);
    }
}

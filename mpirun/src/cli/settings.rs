//! Checks of a job's parameters that the launcher makes before anything starts.
//!
//! The launcher reports unknown parameter names in its own frameworks; the library reports all others, in rank 0.
//! The launcher checks values of its own and all built-in parameters; each rank checks those of plugins.

use crate::frameworks;
use crate::launch::program::Plan;
use mpi_abi::frameworks::{malformed, with};
use mpi_abi::params::TELL_MISSPELT;
use mpi_abi::unknown_params::{is_launchers, sentences};
use mpi_base::param::{ParamError, Params};
use mpi_core::plugin::Catalogue;

/// Returns the first setting whose value its parameter does not accept.
pub fn check_values(plan: &Plan) -> Result<(), ParamError> {
    let params = of_job(plan);
    let known = with(&Catalogue::default()).into_iter();
    let known: Vec<_> = known.chain(frameworks::of_launcher()).collect();
    malformed(&params, &known)
}

fn of_job(plan: &Plan) -> Params {
    Params::load(plan.env.iter().cloned(), &crate::prefix::parameter_files())
}

/// Returns a sentence for each of a job's settings that names an unknown parameter of the launcher.
pub fn unknown_params(plan: &Plan) -> Vec<String> {
    let params = of_job(plan);
    // The library reports a value that cannot be read.
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

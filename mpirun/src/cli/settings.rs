//! What is wrong with a job's settings, as far as the launcher sees it before anything has started.
//!
//! Of names under which nothing can be set it tells those that were meant for it; of all others the library tells, in rank 0.
//! Values it knows of are its own and those of everything that is built in; each rank sees those of plugins.

use crate::info::frameworks;
use crate::launch::program::Plan;
use mpi_abi::frameworks::{malformed, with};
use mpi_abi::params::TELL_MISSPELT;
use mpi_abi::unknown_params::{is_launchers, sentences};
use mpi_base::param::{ParamError, Params};
use mpi_core::plugin::Catalogue;

/// The first setting whose value its parameter does not take.
pub fn check_values(plan: &Plan) -> Result<(), ParamError> {
    let params = of_job(plan);
    let known = with(&Catalogue::default()).into_iter();
    let known: Vec<_> = known.chain(frameworks::of_launcher()).collect();
    malformed(&params, &known)
}

fn of_job(plan: &Plan) -> Params {
    Params::load(plan.env.iter().cloned(), &crate::prefix::parameter_files())
}

/// A sentence for each of a job's settings that was meant for the launcher and that it does not have.
pub fn unknown_params(plan: &Plan) -> Vec<String> {
    let params = of_job(plan);
    // A value that cannot be read is complained about by the library.
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

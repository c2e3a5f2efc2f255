//! Settings under the launcher's own names that no parameter of it has; of all others the library tells, in rank 0.

use crate::info::frameworks;
use crate::launch::program::Plan;
use mpi_abi::misspelt::{TELL, is_launchers, sentences};
use mpi_base::param::Params;

/// A sentence for each of a job's settings that was meant for the launcher and that it does not have.
pub fn misspelt(plan: &Plan) -> Vec<String> {
    let params = Params::load(plan.env.iter().cloned(), &crate::prefix::parameter_files());
    // A value that cannot be read is complained about by the library.
    match params.get(&TELL).unwrap_or(true) {
        true => sentences(&params, &frameworks::of_launcher(), |name| {
            !is_launchers(name)
        }),
        false => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mpi_abi::misspelt::LAUNCHERS;

    #[test]
    fn the_library_leaves_to_the_launcher_what_the_launcher_has() {
        let mine = frameworks::of_launcher().map(|framework| framework.name);
        assert_eq!(mine, LAUNCHERS);
    }
}

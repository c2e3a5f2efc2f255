//! Check that a process is not one of several ranks before it starts launchers.
//!
//! With `mpirun -n 2 mpi-bench latency --vs LIBDIR`, every rank would run the whole comparison.
//! All comparisons would run at the same time and disturb each other, and all figures be wrong.

use std::fmt;

/// The environment variables that contain the number of ranks, of PMI-1 and of Open MPI's launcher.
const SIZES: [&str; 2] = ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"];

/// The error if this process is one of several ranks: it must not start launchers.
#[derive(Debug)]
pub struct OneOfMany {
    task: &'static str,
    ranks: u32,
}

impl fmt::Display for OneOfMany {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, ranks } = self;
        write!(
            f,
            "{task} starts its launchers itself, but this is one of {ranks} ranks of a job already: run it without a launcher, with the number of ranks as -n {ranks}"
        )
    }
}

impl std::error::Error for OneOfMany {}

/// Checks that `task` may start launchers; `told` reads environment variables.
pub fn check(task: &'static str, told: impl Fn(&str) -> Option<String>) -> Result<(), OneOfMany> {
    let sizes = SIZES.iter().filter_map(|name| told(name)?.parse().ok());
    match sizes.max() {
        Some(ranks) if ranks > 1 => Err(OneOfMany { task, ranks }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(name: &str, value: &str) -> Result<(), OneOfMany> {
        check("a comparison", |asked| {
            (asked == name).then(|| value.to_owned())
        })
    }

    #[test]
    fn one_of_several_ranks_starts_no_launchers() {
        for name in SIZES {
            let refused = checked(name, "4").unwrap_err().to_string();
            assert!(refused.contains("one of 4 ranks"), "{refused}");
        }
    }

    #[test]
    fn a_shell_that_is_a_job_of_its_own_may() {
        assert!(checked("PMI_SIZE", "1").is_ok());
        assert!(checked("PMI_SIZE", "many").is_ok());
        assert!(checked("SHLVL", "2").is_ok());
    }
}

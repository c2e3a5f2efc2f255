//! Environment of the ranks: that of this process, without the variables of an outer launcher.

use mpi_base::environment;
use mpi_core::rte::own_launcher;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Returns true for a variable of one process of one launch, which must not reach another launch.
pub fn is_of_a_launch(name: &OsStr) -> bool {
    const PREFIXES: [&str; 4] = ["PMI_", "PMIX_", "OMPI_COMM_WORLD_", "MPI_LOCAL"];
    let name = name.as_bytes();
    PREFIXES
        .iter()
        .any(|prefix| name.starts_with(prefix.as_bytes()))
        || own_launcher::VARIABLES
            .iter()
            .any(|own| name == own.as_bytes())
        || name == b"OMPI_UNIVERSE_SIZE"
}

/// Returns this process's environment without the variables of an outer launcher.
pub fn clean_env() -> Vec<(OsString, OsString)> {
    environment::for_children()
        .filter(|(name, _)| !is_of_a_launch(name))
        .collect()
}

/// Sets a variable and replaces an earlier value.
pub fn set_env(
    env: &mut Vec<(OsString, OsString)>,
    name: impl Into<OsString>,
    value: impl Into<OsString>,
) {
    let name = name.into();
    env.retain(|(present, _)| *present != name);
    env.push((name, value.into()));
}

/// Splits `NAME=VALUE` at the first `=`; `None` without `=`.
pub fn split_at_sign(pair: &OsStr) -> Option<(&OsStr, &OsStr)> {
    let bytes = pair.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=')?;
    Some((
        OsStr::from_bytes(&bytes[..at]),
        OsStr::from_bytes(&bytes[at + 1..]),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_an_outer_launcher_do_not_leak() {
        for name in [
            "PMI_RANK",
            "PMIX_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "PORTCULLIS_NODE_FD",
        ] {
            assert!(is_of_a_launch(OsStr::new(name)));
        }
        for name in ["PATH", "PORTCULLIS_MCA_btl", "PMI"] {
            assert!(!is_of_a_launch(OsStr::new(name)));
        }
    }
}

//! Commands of yosys that proofs and bitstreams share.

use std::fmt::{Display, Write as _};

/// Returns a `chparam` command that sets these parameters.
pub(crate) fn chparam(parameters: &[(&str, impl Display)]) -> String {
    parameters
        .iter()
        .fold(String::new(), |mut text, (name, value)| {
            let _ = write!(text, " -chparam {name} {value}");
            text
        })
}

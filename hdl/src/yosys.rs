//! What proofs and bitstreams both say to yosys.

use std::fmt::{Display, Write as _};

/// Parameters in the words of yosys.
pub(crate) fn chparam(parameters: &[(&str, impl Display)]) -> String {
    parameters
        .iter()
        .fold(String::new(), |mut text, (name, value)| {
            let _ = write!(text, " -chparam {name} {value}");
            text
        })
}

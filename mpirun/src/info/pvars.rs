//! `mpi-info --pvars`: the performance variables of the tool interface, from the table that serves it.

use mpi_abi::abi::*;
use mpi_abi::tool::pvar::{PVARS, Pvar};
use mpi_base::param::Style;
use std::ffi::c_int;
use std::fmt::Write as _;

/// Returns the list: a line for each variable, or for tools its fields with colons between them.
pub(super) fn list(style: Style) -> String {
    let mut out = String::new();
    for pvar in PVARS {
        // Writing into a String cannot fail.
        let _ = match style {
            Style::Parsable => writeln!(
                out,
                "pvar:{}:class:{}:bound:{}:help:{}",
                pvar.name,
                class(pvar.class),
                bound(pvar),
                pvar.help
            ),
            Style::Readable => writeln!(
                out,
                "{:>36}: {} ({}, {})",
                pvar.name,
                pvar.help,
                class(pvar.class),
                bound(pvar)
            ),
        };
    }
    out
}

fn bound(pvar: &Pvar) -> &'static str {
    match (pvar.is_of_comm(), pvar.is_continuous()) {
        (false, _) => "process",
        (true, true) => "communicator",
        (true, false) => "ranks of a communicator",
    }
}

fn class(class: c_int) -> &'static str {
    match class {
        MPI_T_PVAR_CLASS_LEVEL => "level",
        MPI_T_PVAR_CLASS_HIGHWATERMARK => "highwatermark",
        MPI_T_PVAR_CLASS_COUNTER => "counter",
        MPI_T_PVAR_CLASS_AGGREGATE => "aggregate",
        _ => "generic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_has_a_line_and_a_known_class() {
        for style in [Style::Readable, Style::Parsable] {
            let listed = list(style);
            assert_eq!(listed.lines().count(), PVARS.len());
            assert!(!listed.contains("generic"), "{listed}");
            assert!(listed.contains("pml_ob1_unexpected_messages"), "{listed}");
        }
    }
}

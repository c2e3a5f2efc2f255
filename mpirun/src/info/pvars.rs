//! `mpi-info --pvars`: performance variables and events of the tool interface (MPI_T).

use mpi_abi::abi::*;
use mpi_abi::tool::event::{EVENTS, Event};
use mpi_abi::tool::pvar::{PVARS, Pvar};
use mpi_base::param::Style;
use std::ffi::c_int;
use std::fmt::Write as _;

/// Returns a line for each variable and event, in the parsable style with colons between fields.
pub(super) fn list(style: Style) -> String {
    let mut out = String::new();
    for pvar in PVARS {
        // Writing to a `String` cannot fail.
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
    for event in EVENTS {
        list_event(&mut out, event, style);
    }
    out
}

fn list_event(out: &mut String, event: &Event, style: Style) {
    let Event {
        name, help, bound, ..
    } = event;
    let (bound, elements) = (bound.name(), event.elements.join(", "));
    // Writing to a `String` cannot fail.
    let _ = match style {
        Style::Parsable => writeln!(
            out,
            "event:{name}:elements:{elements}:bound:{bound}:help:{help}"
        ),
        Style::Readable => writeln!(out, "{name:>36}: {help} (event, {bound}: {elements})"),
    };
}

fn bound(pvar: &Pvar) -> &'static str {
    match pvar.is_of_ranks() {
        true => "ranks of a communicator",
        false => pvar.bound().name(),
    }
}

fn class(class: c_int) -> &'static str {
    match class {
        MPI_T_PVAR_CLASS_STATE => "state",
        MPI_T_PVAR_CLASS_LEVEL => "level",
        MPI_T_PVAR_CLASS_SIZE => "size",
        MPI_T_PVAR_CLASS_HIGHWATERMARK => "highwatermark",
        MPI_T_PVAR_CLASS_COUNTER => "counter",
        MPI_T_PVAR_CLASS_AGGREGATE => "aggregate",
        MPI_T_PVAR_CLASS_TIMER => "timer",
        _ => "generic",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_and_each_event_has_a_line_and_a_known_class() {
        for style in [Style::Readable, Style::Parsable] {
            let listed = list(style);
            assert_eq!(listed.lines().count(), PVARS.len() + EVENTS.len());
            assert!(!listed.contains("generic"), "{listed}");
            assert!(listed.contains("pml_ob1_unexpected_messages"), "{listed}");
            assert!(listed.contains("pml_ob1_message_unexpected"), "{listed}");
        }
    }
}

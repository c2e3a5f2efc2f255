//! Generation of Rust code that copies sections when their requests start and complete.
//!
//! The library keeps copies of sections for active requests (`pending.rs` of the library).
//! Procedures that make, start, complete or free requests call `pending`; so does `MPI_Finalize`.

use std::fmt::Write as _;

use crate::statements::Statements;
use crate::table::{Direction, Procedure};

/// Returns the name of the parameter for the request that a procedure makes.
pub fn of(procedure: &Procedure) -> Option<&str> {
    let mut all = procedure.parameters.iter();
    let found = all.find(|p| p.kind == "REQUEST" && p.direction == Direction::Out);
    found.map(|p| p.name.as_str())
}

/// Adds the statements that report the requests of a procedure to the library's `pending`.
pub fn watch(statements: &mut Statements, procedure: &Procedure) {
    let Statements {
        before,
        after,
        kept,
        ..
    } = statements;
    if let Some(request) = of(procedure) {
        if kept.is_empty() {
            let _ = writeln!(after, "        pending::made(outcome, {request});");
        } else {
            let persistent = procedure.name.ends_with("_init");
            let kept = kept.join(", ");
            let _ = writeln!(
                after,
                "        pending::keep::<{persistent}, _>(outcome, {request}, [{kept}]);"
            );
        }
        return;
    }
    if procedure.name == "MPI_Finalize" {
        before.push_str("        pending::end();\n");
    }
    let used = procedure
        .parameters
        .iter()
        .find(|p| p.kind == "REQUEST" && !p.pointer);
    let Some(requests) = used else {
        return;
    };
    let name = &requests.name;
    let count = match &requests.length {
        Some(length) => format!("length(*{length} as i64)"),
        None => "1".into(),
    };
    let procedure = procedure.name.trim_start_matches("MPI_");
    match procedure {
        "Start" | "Startall" => {
            let _ = writeln!(before, "        pending::start({name}, {count});");
        }
        "Request_free" => {
            let _ = writeln!(before, "        let freeing = pending::freeing({name});");
            let _ = writeln!(after, "        freeing.freed(outcome);");
        }
        // These procedures do not change the state of the request.
        "Cancel" | "Parrived" | "Pready" | "Pready_list" | "Pready_range" | "Grequest_complete" => {
        }
        _ => {
            let _ = writeln!(
                before,
                "        let watched = pending::among({name}, {count});"
            );
            let reported = reported(procedure);
            let _ = writeln!(after, "        watched.completed({name}, {reported});");
        }
    }
}

/// Returns the Rust code for the set of requests that a procedure has reported as complete.
fn reported(procedure: &str) -> &'static str {
    match procedure {
        "Wait" | "Waitall" => "pending::Reported::all(outcome == 0)",
        _ if procedure.ends_with("any") => "pending::Reported::one(index)",
        _ if procedure.ends_with("some") => {
            "pending::Reported::some(outcome, array_of_indices, outcount)"
        }
        _ => "pending::Reported::all(flag_c != 0)",
    }
}

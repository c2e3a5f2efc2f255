//! Generation of the exported symbols: wrappers around the bodies, with fast paths.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::kinds::{Class, Width};
use crate::module_f08::HANDLES;
use crate::signatures::{
    Style, arguments, body_name, by_value, c_name, c_parameters, c_result, exports,
    is_small_pointer, rust_name,
};
use crate::table::{Direction, Parameter, Procedure};

/// The fast path of a call: its conditions, and the arguments for C.
struct Quick {
    /// The arguments that are handles; the fast path requires predefined handles.
    handles: Vec<String>,
    /// The conditions on the other arguments.
    conditions: Vec<String>,
    passed: Vec<String>,
}

/// Returns the fast path of a procedure: predefined handles, contiguous arrays and no sentinels.
/// Returns `None` if an argument needs a conversion, or if there are fewer than two handles and other conditions together.
fn quick(procedure: &Procedure, width: Width, style: Style) -> Option<Quick> {
    let (mut conditions, mut handles, mut passed) = (Vec::new(), Vec::new(), Vec::new());
    for parameter in c_parameters(procedure, width) {
        let name = rust_name(&parameter.name);
        let value = by_value(parameter, width);
        let out = parameter.direction != Direction::In;
        let now = match parameter.class(width) {
            _ if parameter.hidden || is_small_pointer(parameter) => return None,
            Class::Int if parameter.kind == "WEIGHT" || (parameter.kind == "INDEX" && out) => {
                return None;
            }
            Class::Int | Class::Wide(_) if value => format!("*{name}"),
            Class::Int | Class::Wide(_) => format!("{name}.cast()"),
            Class::Handle(_) if value => {
                handles.push(name.clone());
                format!("handle::predefined({name})")
            }
            Class::Buffer if style == Style::Described => {
                conditions.push(match has_no_sentinel(procedure, parameter) {
                    true => format!("section::is_plain({name})"),
                    false => format!("section::is_simple({name})"),
                });
                format!("(*{name}).base()")
            }
            Class::Buffer => {
                if !has_no_sentinel(procedure, parameter) {
                    conditions.push(format!("cells::is_outside({name})"));
                }
                name.clone()
            }
            Class::Status => {
                conditions.push(format!("cells::is_outside({name})"));
                format!("{name}.cast()")
            }
            _ => return None,
        };
        passed.push(now);
    }
    let quick = Quick {
        handles,
        conditions,
        passed,
    };
    (quick.conditions.len() + quick.handles.len() > 1).then_some(quick)
}

/// Returns true if the buffer cannot be a sentinel when its datatype is predefined.
/// `MPI_BOTTOM` needs a datatype with absolute addresses; `MPI_IN_PLACE` is for collectives, whose
/// buffers have other names.
fn has_no_sentinel(procedure: &Procedure, buffer: &Parameter) -> bool {
    let mut all = procedure.parameters.iter();
    buffer.name == "buf" && all.any(|p| p.kind == "DATATYPE")
}

/// The text fragments of the wrapper for an exported symbol.
struct Shell<'e> {
    symbol: &'e str,
    /// The argument list with types (`declared`), and with names only (`passed`).
    declared: String,
    passed: String,
    /// True if `ierror` is optional.
    optional: bool,
    /// The Rust expression that calls the procedure's body.
    call: String,
}

/// Writes the wrappers for all exported symbols of a procedure.
pub fn shells(text: &mut String, procedure: &Procedure, prefix: &str, by_hand: &BTreeSet<String>) {
    let which = if prefix.is_empty() { "Mpi" } else { "Pmpi" };
    for export in exports(procedure, prefix) {
        let (width, style) = (export.width, export.style);
        let arguments = arguments(procedure, width, style);
        let is_length = |(n, t): &&(String, &str)| *t == "usize" && n.ends_with("_len");
        let show = |(n, t): &(String, &str)| format!("{n}: {t}");
        let mut declared: Vec<String> = arguments
            .iter()
            .filter(|a| !is_length(a))
            .map(show)
            .collect();
        if procedure.reports {
            declared.push("ierror: *mut i32".into());
        }
        // The string lengths follow ierror.
        declared.extend(arguments.iter().filter(is_length).map(show));
        let passed: Vec<&str> = arguments.iter().map(|(n, _)| n.as_str()).collect();
        let name = body_name(procedure, width, style);
        let shell = Shell {
            symbol: &export.symbol,
            declared: declared.join(", "),
            passed: passed.join(", "),
            // ierror is optional only in module `mpi_f08`.
            optional: export.symbol.contains("_f08"),
            call: format!("{name}::<{which}>({})", passed.join(", ")),
        };
        let hand = [name, body_name(procedure, width, Style::Plain)];
        let hand = hand.iter().any(|h| by_hand.contains(h));
        let case = quick(procedure, width, style).filter(|_| procedure.reports && !hand);
        if procedure.returns.is_some() {
            let result = format!(" -> {}", c_result(procedure));
            exported(text, &shell, &result, &shell.call);
        } else if !procedure.reports {
            exported(text, &shell, "", &format!("_ = {}", shell.call));
        } else if let Some(case) = case {
            let call = format!(
                "{which}::{}({})",
                c_name(procedure, width),
                case.passed.join(", ")
            );
            with_usual_case(text, &shell, &case, &call);
        } else {
            exported(text, &shell, "", &reported(&shell, &shell.call));
        }
    }
}

/// Returns the statement that makes a call and stores the error code in `ierror`.
fn reported(shell: &Shell, call: &str) -> String {
    match shell.optional {
        true => format!("report(ierror, {call})"),
        false => always_reported(shell, call),
    }
}

/// Returns the statement that makes a call and stores the error code in an `ierror` that is mandatory.
fn always_reported(shell: &Shell, call: &str) -> String {
    let name = shell.symbol.trim_end_matches('_').to_uppercase();
    format!("always_report(ierror, {call}, \"{name}\")")
}

/// Writes a wrapper whose fast path consists of the C call only.
///
/// The wrapper reads the handles once and passes them by value to the general case.
/// So at a jump to the general case the registers already have its arguments.
fn with_usual_case(text: &mut String, shell: &Shell, case: &Quick, call: &str) {
    let Shell { symbol, passed, .. } = shell;
    let handles = &case.handles;
    let (mut read, mut by_address) = (String::new(), String::new());
    for name in handles {
        let _ = write!(read, "let {name} = *{name}; ");
        let _ = write!(
            by_address,
            "let mut {name} = {name}; let {name} = &raw mut {name}; "
        );
    }
    let by_value = shell.declared.split(", ").map(|argument| {
        let (name, _) = argument.split_once(": ").unwrap_or((argument, ""));
        match handles.iter().any(|handle| handle == name) {
            true => format!("{name}: i32"),
            false => argument.into(),
        }
    });
    let by_value = by_value.collect::<Vec<String>>().join(", ");
    let handles = handles.join(", ");
    let conditions: String = case.conditions.iter().map(|c| format!(" && {c}")).collect();
    let other = reported(shell, &shell.call);
    let _ = writeln!(
        text,
        "\n#[cold]\n#[inline(never)]\nunsafe extern \"C\" fn other_{symbol}({by_value}) {{\n    unsafe {{ {by_address}{other} }}\n}}"
    );
    let stores = always_reported(shell, call);
    let reports = format!(
        "handle::are_predefined([{handles}]){conditions} {{ {stores} }} else {{ other_{symbol}({passed}, ierror) }}"
    );
    if !shell.optional {
        return exported(text, shell, "", &format!("{read}if {reports}"));
    }
    let _ = writeln!(
        text,
        "\n#[inline(never)]\nunsafe extern \"C\" fn reporting_{symbol}({by_value}) {{\n    unsafe {{ if !ierror.is_null() && {reports} }}\n}}"
    );
    // If `ierror` is absent, the C call is the last statement, so each branch is a jump.
    let usual = format!(
        "{read}if handle::are_predefined_without([{handles}], ierror){conditions} {{ _ = {call} }} else {{ reporting_{symbol}({passed}, ierror) }}"
    );
    exported(text, shell, "", &usual);
}

/// Writes an exported function.
fn exported(text: &mut String, shell: &Shell, result: &str, statement: &str) {
    let Shell {
        symbol, declared, ..
    } = shell;
    let _ = writeln!(
        text,
        "\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({declared}){result} {{\n    unsafe {{ {statement} }}\n}}"
    );
}

/// Writes the functions that compare handles with `==` and `/=`.
pub fn comparisons(text: &mut String) {
    for handle in HANDLES {
        for (name, operator) in [("eq", "=="), ("ne", "!=")] {
            let _ = writeln!(
                text,
                "\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn mpi_fortran_{name}_{}_(left: *const i32, right: *const i32) -> i32 {{\n    unsafe {{ convert::of_logical(*left {operator} *right) }}\n}}",
                handle.to_lowercase()
            );
        }
    }
}

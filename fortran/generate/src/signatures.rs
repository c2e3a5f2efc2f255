//! Signatures in Rust: names, parameters and types of C functions and exported procedures.

use std::collections::BTreeSet;

use crate::kinds::{Class, Width, class};
use crate::module_mpi::overloaded;
use crate::table::{Direction, Parameter, Procedure, Tables};

/// The passing convention of array arguments: by address only, or with a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Described,
}

/// Returns the names of all exported procedures.
pub fn symbols(tables: &Tables) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for procedure in tables.calls() {
        for prefix in ["", "p"] {
            found.extend(exports(procedure, prefix).into_iter().map(|e| e.symbol));
        }
    }
    found
}

/// Returns the styles for which a procedure needs separate bodies.
pub fn styles(procedure: &Procedure, width: Width) -> Vec<Style> {
    let mut needed = Vec::new();
    if !differs(procedure) {
        return vec![Style::Plain];
    }
    if procedure.in_mpi && width == Width::Usual {
        needed.push(Style::Plain);
    }
    if procedure.in_f08 {
        needed.push(Style::Described);
    }
    needed
}

/// Returns true if module `mpi_f08` passes an argument by another convention than `mpif.h`.
pub fn differs(procedure: &Procedure) -> bool {
    let other = |p: &Parameter| matches!(p.class(Width::Usual), Class::Buffer | Class::Detached);
    procedure.parameters.iter().any(other)
}

/// Returns the name of a parameter as a valid Rust identifier.
pub fn rust_name(name: &str) -> String {
    if matches!(
        name,
        "type" | "in" | "ref" | "move" | "fn" | "match" | "box"
    ) {
        format!("{name}_")
    } else {
        name.to_string()
    }
}

/// Returns the name of the body.
pub fn body_name(procedure: &Procedure, width: Width, style: Style) -> String {
    let name = procedure.name.trim_start_matches("MPI_").to_lowercase();
    let twin = if width == Width::Large { "_c" } else { "" };
    let way = if style == Style::Described {
        "_described"
    } else {
        ""
    };
    format!("{name}{twin}{way}")
}

/// Returns the name of the C function.
pub fn c_name(procedure: &Procedure, width: Width) -> String {
    let twin = if width == Width::Large { "_c" } else { "" };
    format!("{}{twin}", procedure.name)
}

// C functions:

/// Returns the parameters of the C function.
pub fn c_parameters(procedure: &Procedure, width: Width) -> impl Iterator<Item = &Parameter> {
    let parameters = procedure.parameters.iter();
    parameters.filter(move |p| (!p.large || width == Width::Large) && p.kind != "VARARGS")
}

/// Returns true if C gets the parameter by value.
pub fn by_value(parameter: &Parameter, width: Width) -> bool {
    // The tables state no length for `array_of_errcodes`, so it looks like a scalar.
    let is_hidden_array = parameter.kind == "ERROR_CODE" && parameter.name == "array_of_errcodes";
    parameter.direction == Direction::In
        && !is_hidden_array
        && parameter.length.is_none()
        && !parameter.pointer
        && !parameter.hidden
        && !matches!(
            parameter.class(width),
            Class::Buffer
                | Class::Status
                | Class::String
                | Class::Arguments(_)
                | Class::AnyLogical
                | Class::OldStatus
                | Class::NewStatus
                | Class::Function
        )
}

/// Returns the type of a C parameter.
pub fn c_type(parameter: &Parameter, width: Width) -> &'static str {
    if !by_value(parameter, width) {
        return "Ptr";
    }
    match parameter.class(width) {
        // These parameters are pointers in C and INTEGERs in Fortran.
        Class::Int if is_small_pointer(parameter) => "i64",
        Class::Int | Class::Logical => "i32",
        Class::Wide(_) => "i64",
        _ => "Ptr",
    }
}

/// Returns true for an INTEGER that is a pointer in C.
pub fn is_small_pointer(parameter: &Parameter) -> bool {
    matches!(parameter.kind.as_str(), "ATTRIBUTE_VAL_10" | "EXTRA_STATE2")
}

/// Returns the return type of a C function.
pub fn c_result(procedure: &Procedure) -> &'static str {
    match procedure.returns.as_deref().map(|k| class(k, Width::Usual)) {
        Some(Class::Double) => "f64",
        Some(Class::Wide(_)) => "i64",
        _ => "i32",
    }
}

// Arguments of Fortran procedures:

/// Returns the type of an argument as Fortran passes it.
pub fn argument_type(parameter: &Parameter, width: Width, style: Style) -> &'static str {
    match parameter.class(width) {
        Class::Wide(_) => "*mut i64",
        Class::Buffer if style == Style::Described => "*const Descriptor",
        Class::String if style == Style::Described && is_described_string(parameter) => {
            "*const Descriptor"
        }
        Class::Buffer | Class::Address | Class::Detached | Class::Function | Class::AnyLogical => {
            "Ptr"
        }
        Class::String | Class::Arguments(_) => "*mut u8",
        _ => "*mut i32",
    }
}

/// Returns true for a string of a BIND(C) procedure with a choice buffer: it has a descriptor.
pub fn is_described_string(parameter: &Parameter) -> bool {
    parameter.name == "datarep" && parameter.length.as_deref() == Some("*")
}

/// Returns true if Fortran passes the string's length at the end of the argument list.
pub fn has_length(
    procedure: &Procedure,
    parameter: &Parameter,
    width: Width,
    style: Style,
) -> bool {
    let described = style == Style::Described && procedure.has_buffer();
    matches!(parameter.class(width), Class::String | Class::Arguments(_)) && !described
}

/// Returns the arguments as Fortran passes them: name and type.
pub fn arguments(procedure: &Procedure, width: Width, style: Style) -> Vec<(String, &'static str)> {
    let mut found: Vec<(String, &'static str)> = procedure
        .arguments(width)
        .map(|p| {
            let plain = if procedure.has_buffer() {
                style
            } else {
                Style::Plain
            };
            (rust_name(&p.name), argument_type(p, width, plain))
        })
        .collect();
    let strings = procedure.arguments(width);
    let strings = strings.filter(|p| has_length(procedure, p, width, style));
    found.extend(strings.map(|p| (format!("{}_len", p.name), "usize")));
    found
}

// Exported symbols:

/// An exported symbol: its name, width and style.
pub struct Export {
    pub symbol: String,
    pub width: Width,
    pub style: Style,
}

/// Returns the exported symbols of a procedure.
pub fn exports(procedure: &Procedure, prefix: &str) -> Vec<Export> {
    let mut found = Vec::new();
    let name = procedure.name.to_lowercase();
    let mut add = |symbol: String, width, style| {
        found.push(Export {
            symbol: format!("{prefix}{symbol}_"),
            width,
            style,
        });
    };
    if procedure.in_mpi {
        add(name.clone(), Width::Usual, Style::Plain);
        if overloaded(procedure) {
            add(format!("{name}_cptr"), Width::Usual, Style::Plain);
        }
    }
    if procedure.in_f08 {
        for width in procedure.widths() {
            let style = if differs(procedure) {
                Style::Described
            } else {
                Style::Plain
            };
            add(procedure.specific(*width).to_lowercase(), *width, style);
        }
    }
    found
}

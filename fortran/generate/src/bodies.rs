//! The Rust text of the library: the C functions that it calls, and a body for each procedure.
//!
//! Each body is written once, generic over the C functions (`MPI_` or `PMPI_`); the exported symbols are shells around it.
//! A procedure that the tables do not describe completely is written by hand in `fortran/library/src/hand`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::kinds::{Class, Width, class};
use crate::module_f08::HANDLES;
use crate::module_mpi::overloaded;
use crate::table::{Direction, Parameter, Procedure, Tables};

/// How arguments are passed: by address alone, or arrays with a descriptor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Described,
}

/// Writes all of it. `by_hand` has the names of the handwritten bodies.
pub fn text(tables: &Tables, by_hand: &BTreeSet<String>) -> String {
    let mut text = String::new();
    c_functions(&mut text, tables);
    for procedure in tables.calls().filter(|p| p.in_c) {
        for width in procedure.widths() {
            if *width == Width::Large && !procedure.in_f08 {
                continue;
            }
            for style in styles(procedure, *width) {
                body(&mut text, procedure, *width, style, by_hand);
            }
        }
        for prefix in ["", "p"] {
            shells(&mut text, procedure, prefix, by_hand);
        }
    }
    comparisons(&mut text);
    text
}

/// The names of all exported procedures.
pub fn symbols(tables: &Tables) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for procedure in tables.calls() {
        for prefix in ["", "p"] {
            found.extend(exports(procedure, prefix).into_iter().map(|e| e.symbol));
        }
    }
    found
}

/// The styles in which a body is needed.
fn styles(procedure: &Procedure, width: Width) -> Vec<Style> {
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

/// The arguments of module `mpi_f08` are passed in another way than those of `mpif.h`.
fn differs(procedure: &Procedure) -> bool {
    let other = |p: &Parameter| matches!(p.class(Width::Usual), Class::Buffer | Class::Detached);
    procedure.parameters.iter().any(other)
}

/// A name in Rust.
fn rust_name(name: &str) -> String {
    if matches!(
        name,
        "type" | "in" | "ref" | "move" | "fn" | "match" | "box"
    ) {
        format!("{name}_")
    } else {
        name.to_string()
    }
}

/// The name of a body.
fn body_name(procedure: &Procedure, width: Width, style: Style) -> String {
    let name = procedure.name.trim_start_matches("MPI_").to_lowercase();
    let twin = if width == Width::Large { "_c" } else { "" };
    let way = if style == Style::Described {
        "_described"
    } else {
        ""
    };
    format!("{name}{twin}{way}")
}

/// The name of the C function.
fn c_name(procedure: &Procedure, width: Width) -> String {
    let twin = if width == Width::Large { "_c" } else { "" };
    format!("{}{twin}", procedure.name)
}

// The C functions.

/// The parameters of the C function.
fn c_parameters(procedure: &Procedure, width: Width) -> impl Iterator<Item = &Parameter> {
    let parameters = procedure.parameters.iter();
    parameters.filter(move |p| (!p.large || width == Width::Large) && p.kind != "VARARGS")
}

/// It is passed to C by value.
fn by_value(parameter: &Parameter, width: Width) -> bool {
    // An array whose length is stated nowhere.
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

/// The type of a parameter of a C function.
fn c_type(parameter: &Parameter, width: Width) -> &'static str {
    if !by_value(parameter, width) {
        return "Ptr";
    }
    match parameter.class(width) {
        // Pointers in C, INTEGERs in Fortran.
        Class::Int if is_small_pointer(parameter) => "i64",
        Class::Int | Class::Logical => "i32",
        Class::Wide(_) => "i64",
        _ => "Ptr",
    }
}

/// It is an INTEGER that C has as a pointer.
fn is_small_pointer(parameter: &Parameter) -> bool {
    matches!(parameter.kind.as_str(), "ATTRIBUTE_VAL_10" | "EXTRA_STATE2")
}

/// The type of the value that a C function returns.
fn c_result(procedure: &Procedure) -> &'static str {
    match procedure.returns.as_deref().map(|k| class(k, Width::Usual)) {
        Some(Class::Double) => "f64",
        Some(Class::Wide(_)) => "i64",
        _ => "i32",
    }
}

/// Declares the C functions, and the trait that has the `MPI_` or the `PMPI_` form of each.
fn c_functions(text: &mut String, tables: &Tables) {
    let mut functions: Vec<(String, String, String, &str)> = Vec::new();
    for procedure in tables
        .calls()
        .filter(|p| p.in_c && p.name != "MPI_Pcontrol")
    {
        for width in procedure.widths() {
            let parameters: Vec<(String, &str)> = c_parameters(procedure, *width)
                .map(|p| (rust_name(&p.name), c_type(p, *width)))
                .collect();
            let declared: Vec<String> = parameters
                .iter()
                .map(|(n, t)| format!("{n}: {t}"))
                .collect();
            let passed: Vec<&str> = parameters.iter().map(|(n, _)| n.as_str()).collect();
            functions.push((
                c_name(procedure, *width),
                declared.join(", "),
                passed.join(", "),
                c_result(procedure),
            ));
        }
    }
    text.push_str("mod c {\n    use super::Ptr;\n    unsafe extern \"C\" {\n");
    for (name, declared, _, result) in &functions {
        for prefix in ["", "P"] {
            let _ = writeln!(
                text,
                "        pub fn {prefix}{name}({declared}) -> {result};"
            );
        }
    }
    text.push_str("    }\n}\n\n/// The C functions under one of their two names.\npub trait Calls {\n    const PROFILED: bool;\n");
    for (name, declared, _, result) in &functions {
        let _ = writeln!(text, "    unsafe fn {name}({declared}) -> {result};");
    }
    text.push_str("}\n");
    for (which, prefix) in [("Mpi", ""), ("Pmpi", "P")] {
        let _ = writeln!(
            text,
            "\npub struct {which};\nimpl Calls for {which} {{\n    const PROFILED: bool = {};",
            prefix.is_empty()
        );
        for (name, declared, passed, result) in &functions {
            let _ = writeln!(
                text,
                "    #[inline(always)]\n    unsafe fn {name}({declared}) -> {result} {{ unsafe {{ c::{prefix}{name}({passed}) }} }}"
            );
        }
        text.push_str("}\n");
    }
}

// Bodies.

/// The type of an argument as Fortran passes it.
fn argument_type(parameter: &Parameter, width: Width, style: Style) -> &'static str {
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

/// A string beside a choice buffer: BIND(C) passes it with a descriptor.
fn is_described_string(parameter: &Parameter) -> bool {
    parameter.name == "datarep" && parameter.length.as_deref() == Some("*")
}

/// It is passed with a length at the end of the argument list.
fn has_length(procedure: &Procedure, parameter: &Parameter, width: Width, style: Style) -> bool {
    let described = style == Style::Described && procedure.has_buffer();
    matches!(parameter.class(width), Class::String | Class::Arguments(_)) && !described
}

/// The arguments as Fortran passes them: (name, type).
fn arguments(procedure: &Procedure, width: Width, style: Style) -> Vec<(String, &'static str)> {
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

/// The statements of a body around its C call.
#[derive(Default)]
struct Statements {
    before: String,
    passed: Vec<String>,
    after: String,
    /// Arguments that a section of an array replaces: (name, expression).
    replaced: Vec<(String, String)>,
}

/// Writes a body.
fn body(
    text: &mut String,
    procedure: &Procedure,
    width: Width,
    style: Style,
    by_hand: &BTreeSet<String>,
) {
    let name = body_name(procedure, width, style);
    let arguments = arguments(procedure, width, style);
    let unused = |n: &str| {
        let is = |p: &&Parameter| p.name == n && p.class(width) == Class::Detached;
        style == Style::Plain && procedure.parameters.iter().any(|p| is(&p))
    };
    let declared = arguments.iter().map(|(n, t)| match unused(n) {
        true => format!("_: {t}"),
        false => format!("{n}: {t}"),
    });
    let declared: Vec<String> = declared.collect();
    let result = c_result(procedure);
    let _ = writeln!(
        text,
        "\n#[inline(always)]\nunsafe fn {name}<C: Calls>({}) -> {result} {{\n    unsafe {{",
        declared.join(", ")
    );
    let mut statements = Statements::default();
    let hand = [name.clone(), body_name(procedure, width, Style::Plain)];
    let hand = hand.iter().find(|h| by_hand.contains(*h));
    for parameter in c_parameters(procedure, width) {
        if parameter.class(width) == Class::Buffer && style == Style::Described {
            described(&mut statements, procedure, parameter, width, hand.is_some());
        } else if hand.is_none() {
            plain(&mut statements, procedure, parameter, width, style);
        }
    }
    text.push_str(&statements.before);
    if let Some(hand) = hand {
        let passed = arguments.iter().map(|(n, t)| {
            if *t == "*const Descriptor" && n != "datarep" {
                format!("{n}_section.address()")
            } else {
                n.clone()
            }
        });
        let passed: Vec<String> = passed.collect();
        let _ = writeln!(text, "        hand::{hand}::<C>({})", passed.join(", "));
    } else {
        let call = format!(
            "C::{}({})",
            c_name(procedure, width),
            statements.passed.join(", ")
        );
        if statements.after.is_empty() {
            let _ = writeln!(text, "        {call}");
        } else {
            let _ = writeln!(text, "        let outcome = {call};");
            text.push_str(&statements.after);
            text.push_str("        outcome\n");
        }
    }
    text.push_str("    }\n}\n");
}

/// Converts an argument for C, and back.
fn plain(
    statements: &mut Statements,
    procedure: &Procedure,
    parameter: &Parameter,
    width: Width,
    style: Style,
) {
    let Statements {
        before,
        passed,
        after,
        replaced,
    } = statements;
    let name = rust_name(&parameter.name);
    if let Some((_, expression)) = replaced.iter().find(|(n, _)| *n == parameter.name) {
        passed.push(expression.clone());
        return;
    }
    if parameter.hidden {
        passed.push("std::ptr::null_mut()".into());
        return;
    }
    let value = by_value(parameter, width);
    let length = parameter.length.as_deref();
    let count = length.map(|l| format!("length(*{} as i64)", rust_name(l)));
    let out = parameter.direction != Direction::In;
    match parameter.class(width) {
        Class::Int if parameter.kind == "INDEX" && out && length.is_none() => {
            passed.push(format!("{name}.cast()"));
            let _ = writeln!(after, "        convert::one_based(outcome, {name});");
        }
        Class::Int if parameter.kind == "INDEX" && out && names(procedure, "outcount") => {
            passed.push(format!("{name}.cast()"));
            let _ = writeln!(
                after,
                "        convert::all_one_based(outcome, {name}, outcount);"
            );
        }
        Class::Int if parameter.kind == "WEIGHT" => passed.push(format!("cells::weights({name})")),
        Class::Int if value && is_small_pointer(parameter) => {
            passed.push(format!("i64::from(*{name})"))
        }
        Class::Int | Class::Wide(_) if value => passed.push(format!("*{name}")),
        Class::Logical if value => passed.push(format!("convert::logical({name})")),
        Class::Logical if parameter.direction == Direction::In => {
            let count = count.unwrap_or_else(|| "0".into());
            let _ = writeln!(
                before,
                "        let {name} = convert::logicals({name}, {count});"
            );
            passed.push(format!("{name}.as_ptr() as Ptr"));
        }
        Class::Logical => {
            let _ = writeln!(before, "        let mut {name}_c = 0i32;");
            passed.push(format!("(&raw mut {name}_c).cast()"));
            let _ = writeln!(after, "        convert::set_logical({name}, {name}_c);");
        }
        Class::Handle(of) if value => passed.push(format!("input::<handle::{of}>({name})")),
        Class::Handle(of) if length.is_some() => {
            let count = count.unwrap_or_else(|| "0".into());
            let make = if parameter.direction == Direction::Out {
                format!("empty({count})")
            } else {
                format!("input({name}, {count})")
            };
            let _ = writeln!(
                before,
                "        let mut {name}_c = handle::Many::<handle::{of}>::{make};"
            );
            passed.push(format!("{name}_c.as_mut_ptr().cast()"));
            if out {
                let _ = writeln!(after, "        {name}_c.output({name});");
            }
        }
        Class::Handle(of) => {
            let first = if parameter.direction == Direction::Out {
                "std::ptr::null_mut()".to_string()
            } else {
                format!("input::<handle::{of}>({name})")
            };
            let _ = writeln!(before, "        let mut {name}_c: Ptr = {first};");
            passed.push(format!("(&raw mut {name}_c).cast()"));
            if out {
                let _ = writeln!(after, "        output::<handle::{of}>({name}, {name}_c);");
            }
        }
        Class::Status => passed.push(format!("cells::status({name})")),
        // Only module `mpi_f08` returns the address; elsewhere the argument may be any variable.
        Class::Detached if style == Style::Plain => {
            let _ = writeln!(
                before,
                "        let mut {name}_c: Ptr = std::ptr::null_mut();"
            );
            passed.push(format!("(&raw mut {name}_c).cast()"));
        }
        Class::Detached => {
            passed.push(name.clone());
            let _ = writeln!(after, "        cells::detached(outcome, {name});");
        }
        Class::Buffer => passed.push(format!("cells::buffer({name})")),
        Class::String if style == Style::Described && is_described_string(parameter) => {
            let _ = writeln!(before, "        let {name} = text::described({name});");
            passed.push(format!("{name}.as_ptr() as Ptr"));
        }
        Class::String if out => {
            let size = string_size(procedure, length);
            let _ = writeln!(before, "        let mut {name}_c = [0u8; {size}];");
            passed.push(format!("{name}_c.as_mut_ptr().cast()"));
            let _ = writeln!(
                after,
                "        text::output(outcome, {name}, {name}_len, &{name}_c);"
            );
        }
        Class::String => {
            // The standard strips keys and values on both sides.
            let how = if procedure.name.starts_with("MPI_Info_") {
                "input_both_sides"
            } else {
                "input"
            };
            let _ = writeln!(
                before,
                "        let {name} = text::{how}({name}, {name}_len);"
            );
            passed.push(format!("{name}.as_ptr() as Ptr"));
        }
        _ => passed.push(format!("{name}.cast()")),
    }
}

/// It has a parameter of this name.
fn names(procedure: &Procedure, name: &str) -> bool {
    procedure.parameters.iter().any(|p| p.name == name)
}

/// The bytes that C may write for a string that it returns.
fn string_size(procedure: &Procedure, length: Option<&str>) -> usize {
    match length {
        Some("MPI_MAX_ERROR_STRING") => 512,
        Some("MPI_MAX_LIBRARY_VERSION_STRING") => 8192,
        Some("MPI_MAX_OBJECT_NAME") => 128,
        Some("MPI_MAX_PORT_NAME") => 1024,
        Some("MPI_MAX_PROCESSOR_NAME") => 256,
        _ if procedure.name == "MPI_File_get_view" => 128,
        _ if procedure.name == "MPI_Info_get_nthkey" => 256,
        _ => 8192,
    }
}

/// The count and the datatype of a buffer's message, if they follow it.
fn message<'p>(procedure: &'p Procedure, buffer: &Parameter) -> Option<(&'p str, &'p str)> {
    let all = &procedure.parameters;
    let at = all.iter().position(|p| p.name == buffer.name)?;
    let (count, datatype) = (all.get(at + 1)?, all.get(at + 2)?);
    let is_count = count.kind.contains("NUM_ELEM") && count.length.is_none();
    let is_type = datatype.kind == "DATATYPE" && datatype.length.is_none();
    // A buffer with a block for each rank has more elements than the count.
    let lower = procedure.name.to_lowercase();
    let receives = buffer.name == "recvbuf";
    let blocks = lower.contains("alltoall")
        || (lower.contains("scatter") && !receives)
        || (lower.contains("gather") && receives)
        || (lower.contains("reduce") && !lower.contains("reduce_local"));
    let shared = lower.contains("reduce") || lower.contains("scan");
    (is_count && is_type && !blocks && !shared).then_some((&count.name, &datatype.name))
}

/// Converts a buffer that is passed with a descriptor.
fn described(
    statements: &mut Statements,
    procedure: &Procedure,
    buffer: &Parameter,
    width: Width,
    by_hand: bool,
) {
    let name = rust_name(&buffer.name);
    let comm = procedure
        .parameters
        .iter()
        .find(|p| p.kind == "COMMUNICATOR" && by_value(p, width));
    let comm = comm.map_or("std::ptr::null_mut()".to_string(), |p| rust_name(&p.name));
    let call = c_name(procedure, width);
    let refused = format!(
        "Err(refused) => return section::refuse::<C>(refused, \"{call}\", \"{name}\", {comm})"
    );
    if let (Some((count, datatype)), false) = (message(procedure, buffer), by_hand) {
        let _ = writeln!(
            statements.before,
            "        let {name}_section = match section::message::<C>({name}, *{count} as i64, input::<handle::Datatype>({datatype})) {{ Ok(found) => found, {refused} }};"
        );
        statements.passed.push(format!("{name}_section.address"));
        let all = &procedure.parameters;
        let wide = all.iter().find(|p| p.name == count);
        let of = wide.map_or("i64", |p| c_type(p, width));
        let count_now = format!("{name}_section.count as {of}");
        statements.replaced.push((count.to_string(), count_now));
        let type_now = format!("{name}_section.datatype");
        statements.replaced.push((datatype.to_string(), type_now));
        return;
    }
    let how = if buffer.asynchronous || is_address(procedure) {
        "section::in_place".to_string()
    } else {
        let (there, back) = match buffer.direction {
            Direction::In => (true, false),
            Direction::Out | Direction::InOut => (true, true),
        };
        format!("section::copied::<{there}, {back}>")
    };
    let _ = writeln!(
        statements.before,
        "        let {name}_section = match {how}({name}) {{ Ok(found) => found, {refused} }};"
    );
    statements.passed.push(format!("{name}_section.address()"));
}

/// It is the address of the buffer that is used, after the call too.
fn is_address(procedure: &Procedure) -> bool {
    let name = &procedure.name;
    name.contains("attach") || name.contains("Win_create") || name.contains("Get_address")
}

// Exported symbols.

/// An exported symbol.
struct Export {
    symbol: String,
    width: Width,
    style: Style,
}

/// The exported symbols of a procedure.
fn exports(procedure: &Procedure, prefix: &str) -> Vec<Export> {
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

/// The usual case of a call: its conditions, and what C gets then.
struct Quick {
    conditions: Vec<String>,
    passed: Vec<String>,
}

/// The usual case of a procedure that returns no handle and has no strings: predefined handles, contiguous arrays, no sentinels.
/// None if its arguments need more than being read, or if they need nothing.
fn quick(procedure: &Procedure, width: Width, style: Style) -> Option<Quick> {
    let mut found = Quick {
        conditions: Vec::new(),
        passed: Vec::new(),
    };
    for parameter in c_parameters(procedure, width) {
        let name = rust_name(&parameter.name);
        let value = by_value(parameter, width);
        let out = parameter.direction != Direction::In;
        let passed = match parameter.class(width) {
            _ if parameter.hidden || is_small_pointer(parameter) => return None,
            Class::Int if parameter.kind == "WEIGHT" || (parameter.kind == "INDEX" && out) => {
                return None;
            }
            Class::Int | Class::Wide(_) if value => format!("*{name}"),
            Class::Int | Class::Wide(_) => format!("{name}.cast()"),
            Class::Handle(_) if value => {
                found
                    .conditions
                    .push(format!("handle::is_predefined({name})"));
                format!("handle::predefined({name})")
            }
            Class::Buffer if style == Style::Described => {
                found.conditions.push(format!("section::is_simple({name})"));
                format!("(*{name}).base()")
            }
            Class::Buffer => {
                found.conditions.push(format!("cells::is_outside({name})"));
                name.clone()
            }
            Class::Status => {
                found.conditions.push(format!("cells::is_outside({name})"));
                format!("{name}.cast()")
            }
            _ => return None,
        };
        found.passed.push(passed);
    }
    (found.conditions.len() > 1).then_some(found)
}

/// Writes the shells of a procedure's exported symbols.
fn shells(text: &mut String, procedure: &Procedure, prefix: &str, by_hand: &BTreeSet<String>) {
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
        let passed: Vec<&str> = arguments.iter().map(|(n, _)| n.as_str()).collect();
        let name = body_name(procedure, width, style);
        let call = format!("{name}::<{which}>({})", passed.join(", "));
        // Only in module `mpi_f08` is ierror optional.
        let report = if export.symbol.contains("_f08") {
            "report"
        } else {
            "always_report"
        };
        let (result, statement) = if procedure.returns.is_some() {
            (format!(" -> {}", c_result(procedure)), call)
        } else if procedure.reports {
            declared.push("ierror: *mut i32".into());
            (String::new(), format!("{report}(ierror, {call})"))
        } else {
            (String::new(), format!("_ = {call}"))
        };
        // The lengths of strings follow ierror.
        declared.extend(arguments.iter().filter(is_length).map(show));
        let declared = declared.join(", ");
        let symbol = &export.symbol;
        let hand = [name, body_name(procedure, width, Style::Plain)];
        let hand = hand.iter().any(|h| by_hand.contains(h));
        let case = quick(procedure, width, style).filter(|_| procedure.reports && !hand);
        let statement = match case {
            None => statement,
            Some(case) => {
                let c = c_name(procedure, width);
                let conditions = case.conditions.join(" && ");
                let _ = writeln!(
                    text,
                    "\n#[cold]\n#[inline(never)]\nunsafe extern \"C\" fn other_{symbol}({declared}) {{\n    unsafe {{ {statement} }}\n}}"
                );
                format!(
                    "if {conditions} {{ {report}(ierror, {which}::{c}({})) }} else {{ other_{symbol}({}, ierror) }}",
                    case.passed.join(", "),
                    passed.join(", ")
                )
            }
        };
        let _ = writeln!(
            text,
            "\n#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {symbol}({declared}){result} {{\n    unsafe {{ {statement} }}\n}}"
        );
    }
}

/// The comparisons of handles.
fn comparisons(text: &mut String) {
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

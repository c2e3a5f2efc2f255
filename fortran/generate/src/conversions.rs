//! Generation of Rust code that converts arguments for C and back, except buffers with a
//! descriptor.

use std::fmt::Write as _;

use crate::kinds::{Class, Width};
use crate::signatures::{Style, by_value, is_described_string, is_small_pointer, rust_name};
use crate::statements::Statements;
use crate::table::{Direction, Parameter, Procedure};

/// Generates the conversion of an argument for C and back.
pub fn plain(
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
        ..
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
        // Only `mpi_f08` returns the buffer's address; elsewhere the argument may be any variable.
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
            // The standard strips leading and trailing blanks of keys and values.
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

/// Returns true if the procedure has a parameter with this name.
fn names(procedure: &Procedure, name: &str) -> bool {
    procedure.parameters.iter().any(|p| p.name == name)
}

/// Returns the size in bytes of the buffer for a string that C returns.
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

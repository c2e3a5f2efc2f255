//! Generation of the C declarations, and the trait `Calls` with the `MPI_` and `PMPI_` functions.

use std::fmt::Write as _;

use crate::signatures::{c_name, c_parameters, c_result, c_type, rust_name};
use crate::table::Tables;

/// Writes the C declarations, and the trait `Calls` with the `MPI_` and `PMPI_` functions.
pub fn declare(text: &mut String, tables: &Tables) {
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

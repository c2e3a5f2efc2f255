//! Generation of the library's Rust code: C declarations, and a body for each procedure.
//!
//! Each body is generic over the C functions (`MPI_` or `PMPI_`); exported symbols wrap it.
//! Procedures without a generated body have a handwritten one in the library's folder `hand`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::buffers::described;
use crate::c_functions::declare;
use crate::conversions::plain;
use crate::kinds::{Class, Width};
use crate::requests;
use crate::shells::{comparisons, shells};
use crate::signatures::{Style, arguments, body_name, c_name, c_parameters, c_result, styles};
use crate::statements::Statements;
use crate::table::{Parameter, Procedure, Tables};

/// Returns all generated code of the library. `by_hand` has the names of the handwritten bodies.
pub fn text(tables: &Tables, by_hand: &BTreeSet<String>) -> String {
    let mut text = String::new();
    declare(&mut text, tables);
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

/// Appends the Rust body of a procedure to the generated code.
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
    requests::watch(&mut statements, procedure);
    text.push_str(&statements.before);
    let call = if let Some(hand) = hand {
        let passed = arguments.iter().map(|(n, t)| {
            if *t == "*const Descriptor" && n != "datarep" {
                format!("{n}_section.address()")
            } else {
                n.clone()
            }
        });
        let passed: Vec<String> = passed.collect();
        format!("hand::{hand}::<C>({})", passed.join(", "))
    } else {
        format!(
            "C::{}({})",
            c_name(procedure, width),
            statements.passed.join(", ")
        )
    };
    if statements.after.is_empty() {
        let _ = writeln!(text, "        {call}");
    } else {
        let _ = writeln!(text, "        let outcome = {call};");
        text.push_str(&statements.after);
        text.push_str("        outcome\n");
    }
    text.push_str("    }\n}\n");
}

//! Listings of parameters for `mpi-info`, in the two formats of `ompi_info`,
//! which users know and scripts parse.

use super::{About, Kind, Params};
use std::fmt::Write;

/// The format of a listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Readable text: labels right-aligned in 24 columns, with the help on the next line.
    Readable,
    /// Text for scripts: one fact per line, with colons between the fields.
    Parsable,
}

/// Lists one parameter with value, source, level, type and help; each line ends with a newline.
pub fn list(about: &About, params: &Params, style: Style) -> String {
    match style {
        Style::Readable => readable(about, params),
        Style::Parsable => parsable(about, params),
    }
}

/// Returns the component's name; a framework's own parameters have "base", as in Open MPI.
fn component(about: &About) -> &str {
    if about.component.is_empty() {
        "base"
    } else {
        about.component
    }
}

fn readable(about: &About, params: &Params) -> String {
    let label = format!("MCA {} {}", about.framework, component(about));
    let mut out = format!(
        "{label:>24}: parameter \"{}\" (current value: \"{}\", data source: {}, level: {}, type: {})\n",
        about.full_name(),
        printable::name(params.text(about)),
        params.source(about),
        about.level,
        about.kind,
    );
    for line in about.help.lines() {
        out.push_str(&format!("{:26}{line}\n", ""));
    }
    if let Kind::OneOf(words) = about.kind {
        out.push_str(&format!("{:26}Valid values: {}\n", "", words.join(", ")));
    }
    out
}

fn parsable(about: &About, params: &Params) -> String {
    let head = format!(
        "mca:{}:{}:param:{}",
        about.framework,
        component(about),
        about.full_name()
    );
    let mut out = String::new();
    let mut fact = |name: &str, value: &str| {
        // Writing into a String cannot fail.
        let _ = writeln!(out, "{head}:{name}:{}", quoted(value));
    };
    fact("value", params.text(about));
    fact("source", &params.source(about).to_string());
    fact("status", "writeable");
    fact("level", &about.level.0.to_string());
    fact("help", about.help);
    if let Kind::OneOf(words) = about.kind {
        for (number, word) in words.iter().enumerate() {
            fact(&format!("enumerator:value:{number}"), word);
        }
    }
    fact("type", &about.kind.to_string());
    out
}

/// Puts a value that contains a colon in quotes, so that a script can split the line at colons.
fn quoted(value: &str) -> String {
    let shown = printable::name(value).to_string();
    match shown.contains(':') {
        true => format!("\"{shown}\""),
        false => shown,
    }
}

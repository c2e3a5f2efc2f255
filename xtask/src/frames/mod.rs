//! The format of the barrier's serial frames as source text: from `hdl/channels/frame.txt` into marked regions of Rust, Verilog, VHDL
//! and Markdown.
//!
//! A region begins with a comment that has [`BEGIN`] and the name of a [`Region`], and ends with a comment that has [`END`].
//! Everything between the two lines is generated.
//!
//! * `table`: the description, and its parser.
//! * `rust`, `verilog`, `vhdl`, `markdown`: the regions in each language.

mod markdown;
mod rust;
mod table;
mod verilog;
mod vhdl;

pub use table::Format;

use crate::workspace;
use std::fs;
use std::path::Path;

/// The description.
pub const TABLE: &str = "hdl/channels/frame.txt";
/// In the first line of a region, before the region's name.
pub const BEGIN: &str = "generated from hdl/channels/frame.txt: ";
/// In the last line of a region.
pub const END: &str = "end of the generated text";

/// The files with regions.
pub const FILES: &[&str] = &[
    "fpga-model/src/channels/frame.rs",
    "hdl/channels/rtl/channel_frame.v",
    "hdl/channels/rtl/channel_frame.vhd",
    "hdl/channels/rtl/channel_command.v",
    "hdl/channels/rtl/channel_command.vhd",
    "hdl/channels/README.md",
];

/// A part of the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Region {
    /// The widths of the fields and the check.
    Format,
    /// The fields of a request, from its bits.
    Request,
    Version,
    Operations,
    Statuses,
}

impl Region {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "format" => Self::Format,
            "request" => Self::Request,
            "version" => Self::Version,
            "operations" => Self::Operations,
            "statuses" => Self::Statuses,
            _ => return None,
        })
    }
}

/// Reads the description.
pub fn format() -> Result<Format, String> {
    let path = workspace::root().join(TABLE);
    let text =
        fs::read_to_string(&path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    Format::parse(&text).map_err(|e| format!("{TABLE}: {e}"))
}

/// Returns the text of this file of [`FILES`] with its regions generated again.
pub fn regenerated(format: &Format, file: &str, text: &str) -> Result<String, String> {
    let lines_of = |region| match Path::new(file).extension().and_then(|e| e.to_str()) {
        Some("rs") => rust::lines(format, region),
        Some("v") => verilog::lines(format, region),
        Some("vhd") => vhdl::lines(format, region),
        Some("md") => markdown::lines(format, region),
        _ => Vec::new(),
    };
    let mut out = String::with_capacity(text.len());
    let mut open = None;
    for (number, line) in (1..).zip(text.lines()) {
        let fault = |what: String| format!("{file}:{number}: {what}");
        if line.contains(END) && open.take().is_none() {
            return Err(fault(format!("\"{END}\" ends no region")));
        }
        if open.is_none() {
            out.push_str(line);
            out.push('\n');
        }
        if let Some((before, name)) = line.split_once(BEGIN) {
            if let Some(first) = open {
                return Err(fault(format!(
                    "the region that begins at line {first} has no end before this one"
                )));
            }
            let name = name.trim_end_matches("-->").trim();
            let region =
                Region::named(name).ok_or_else(|| fault(format!("no region is named {name}")))?;
            let indent = &before[..before.len() - before.trim_start().len()];
            for generated in lines_of(region) {
                let indent = if generated.is_empty() { "" } else { indent };
                out.push_str(&format!("{indent}{generated}\n"));
            }
            open = Some(number);
        }
    }
    match open {
        None => Ok(out),
        Some(first) => Err(format!(
            "{file}:{first}: this region has no line \"{END}\" after it"
        )),
    }
}

/// Returns a name of the description with another separator between its words, in capitals: `SET_MASK`.
fn capitals(name: &str) -> String {
    name.replace(' ', "_").to_uppercase()
}

/// Pads the first part of each line, so that the second parts are aligned.
fn aligned(lines: Vec<(String, String)>) -> Vec<String> {
    let width = lines.iter().map(|(first, _)| first.len()).max();
    let width = width.unwrap_or(0);
    let line = |(first, second)| format!("{first:width$} {second}");
    lines.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions(text: &str) -> Result<String, String> {
        regenerated(&format().expect("the description"), "a.v", text)
    }

    #[test]
    fn only_regions_are_replaced() {
        let text = format!("first\n  // {BEGIN}version\nold\nolder\n  // {END}\nlast\n");
        let expected = format!(
            "first\n  // {BEGIN}version\n  localparam [7:0] VERSION = 8'd2;\n  // {END}\nlast\n"
        );
        assert_eq!(regions(&text), Ok(expected.clone()));
        assert_eq!(regions(&expected), Ok(expected));
    }

    #[test]
    fn a_region_without_an_end_or_a_name_is_refused() {
        for (text, place) in [
            (
                format!("// {BEGIN}version\n"),
                "a.v:1: this region has no line",
            ),
            (
                format!("// {BEGIN}version\n// {BEGIN}version\n"),
                "a.v:2: the region that begins at line 1",
            ),
            (format!("\n// {END}\n"), "a.v:2: "),
            (
                format!("// {BEGIN}sizes\n"),
                "a.v:1: no region is named sizes",
            ),
        ] {
            let refusal = regions(&text).expect_err(&text);
            assert!(refusal.starts_with(place), "{refusal}");
        }
    }
}

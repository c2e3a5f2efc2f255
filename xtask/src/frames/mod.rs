//! Generator of source text for the format of the barrier's serial frames.
//!
//! `hdl/channels/frame.txt` is translated into marked regions of Rust, Verilog, VHDL and Markdown.
//! [`regions`] describes how regions are marked.
//!
//! * `table`: the description and its parser.
//! * `rust`, `verilog`, `vhdl`, `markdown`: the generators of the regions in each language.

mod markdown;
mod rust;
mod table;
mod verilog;
mod vhdl;

pub use table::Format;

use crate::regions::{self, Language, aligned};
use crate::workspace;
use std::fs;

/// The path of the description.
pub const TABLE: &str = "hdl/channels/frame.txt";
/// The files with generated regions.
pub const FILES: &[&str] = &[
    "fpga-model/src/channels/frame.rs",
    "hdl/channels/rtl/channel_frame.v",
    "hdl/channels/rtl/channel_frame.vhd",
    "hdl/channels/rtl/channel_command.v",
    "hdl/channels/rtl/channel_command.vhd",
    "hdl/channels/README.md",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Region {
    /// Constants: the widths of the fields, and the checksum.
    Format,
    /// Statements that extract a request's fields from its bits.
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

/// Reads and parses the description.
pub fn format() -> Result<Format, String> {
    let path = workspace::root().join(TABLE);
    let text =
        fs::read_to_string(&path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    Format::parse(&text).map_err(|e| format!("{TABLE}: {e}"))
}

/// Returns a file's text with its regions regenerated.
pub fn regenerated(format: &Format, file: &str, text: &str) -> Result<String, String> {
    regions::regenerated(TABLE, file, text, |name| {
        let region = Region::named(name)?;
        Some(match Language::of(file)? {
            Language::Rust => rust::lines(format, region),
            Language::Verilog => verilog::lines(format, region),
            Language::Vhdl => vhdl::lines(format, region),
            Language::Markdown => markdown::lines(format, region),
        })
    })
}

/// Returns a name of the description in capitals, with this separator between words, as in `SET_MASK`.
fn capitals(name: &str) -> String {
    name.replace(' ', "_").to_uppercase()
}

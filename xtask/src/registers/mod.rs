//! Generator of source text for the barrier's registers.
//!
//! `hdl/registers/registers.txt` is translated into marked regions of Verilog, VHDL, Rust and
//! Markdown, and into whole files in C, SystemRDL and IP-XACT.
//!
//! * `table`: the description and its parser.
//! * `rtl`: the addresses as constants of Verilog and VHDL.
//! * `rust`: the driver's constants, with an accessor for each field.
//! * `markdown`: the tables of the document.
//! * `c_header`, `system_rdl`, `ip_xact`: one file each.
//! * `buses`: the modules that connect a bus front with the register block; `heads` parses their parameters and ports.

pub mod buses;
mod c_header;
mod heads;
mod ip_xact;
mod markdown;
mod rtl;
mod rust;
mod system_rdl;
mod table;

pub use table::Map;

use crate::regions::{self, Language};
use crate::workspace;
use std::fs;

/// The path of the description.
pub const TABLE: &str = "hdl/registers/registers.txt";

/// The files with generated regions.
pub const FILES: &[&str] = &[
    "hdl/registers/rtl/barrier_regs.v",
    "hdl/registers/rtl/barrier_regs.vhd",
    "hdl/registers/README.md",
    "barrier-driver/src/registers/map.rs",
];

/// Reads and parses the description.
pub fn map() -> Result<Map, String> {
    let path = workspace::root().join(TABLE);
    let text =
        fs::read_to_string(&path).map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
    Map::parse(&text).map_err(|e| format!("{TABLE}: {e}"))
}

/// Returns a file's text with its regions regenerated.
pub fn regenerated(map: &Map, file: &str, text: &str) -> Result<String, String> {
    regions::regenerated(TABLE, file, text, |name| {
        Some(match (Language::of(file)?, name) {
            (Language::Verilog, "constants") => rtl::verilog(map),
            (Language::Vhdl, "constants") => rtl::vhdl(map),
            (Language::Rust, "map") => rust::lines(map),
            (Language::Markdown, "registers") => markdown::lines(map),
            _ => return None,
        })
    })
}

/// Returns the paths and texts of the files that are generated as a whole.
pub fn whole_files(map: &Map) -> [(&'static str, String); 3] {
    [
        ("hdl/registers/barrier_regs.h", c_header::text(map)),
        ("hdl/registers/barrier_regs.rdl", system_rdl::text(map)),
        ("hdl/registers/barrier_regs.xml", ip_xact::text(map)),
    ]
}

/// Returns the notice in the first line of a wholly generated file.
fn notice() -> String {
    format!("generated from {TABLE} by `cargo xtask gen`")
}

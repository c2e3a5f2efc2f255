//! Generator of the plugins' function tables in Rust, from the C headers that define them.
//!
//! The C headers are the source, because plugin authors read them and a C compiler checks them.
//! `header` parses the subset of C that the headers use.
//! `rust` generates the same structures and constants, and their layouts for tests.

mod header;
mod rust;

use crate::{regions, workspace};
use std::fs;

/// A C header, and the Rust file with the code generated from it.
#[derive(Debug)]
pub struct Tables {
    /// The path of the header.
    pub header: &'static str,
    /// The path of the Rust file with the generated region.
    pub file: &'static str,
}

/// The headers of collective and of transport plugins.
pub const ALL: [Tables; 2] = [
    Tables {
        header: "mpi-core/include/portcullis/plugin.h",
        file: "plugin/src/coll/table.rs",
    },
    Tables {
        header: "mpi-core/include/portcullis/transport.h",
        file: "plugin/src/btl/table.rs",
    },
];

impl Tables {
    /// Returns the text of the Rust file with its region regenerated.
    pub fn regenerated(&self, file: &str, text: &str) -> Result<String, String> {
        let path = workspace::root().join(self.header);
        let header = fs::read_to_string(&path)
            .map_err(|e| format!("{} cannot be read: {e}", path.display()))?;
        let items = header::parse(&header).map_err(|e| format!("{}: {e}", self.header))?;
        let lines = rust::lines(&items).map_err(|e| format!("{}: {e}", self.header))?;
        regions::regenerated(self.header, file, text, |name| {
            (name == "tables").then(|| lines.clone())
        })
    }
}

//! The tables of plugins in Rust, generated from the C headers that describe them.
//!
//! The headers are the description: authors of plugins read them, and a compiler checks them.
//! `header` reads the part of C that they use, and `rust` writes the same structures, constants and a list of the layout for tests.

mod header;
mod rust;

use crate::{regions, workspace};
use std::fs;

/// A header, and the file in Rust with its tables.
#[derive(Debug)]
pub struct Tables {
    /// The header.
    pub header: &'static str,
    /// The file whose region is generated.
    pub file: &'static str,
}

/// The headers of plugins.
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
    /// Returns the text of the file in Rust with its region generated again.
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

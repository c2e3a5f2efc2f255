//! The RTL to simulate: that of this crate or the user's.

use std::path::{Path, PathBuf};

use super::CosimError;
use crate::cache::Cache;
use crate::source::{CHANNEL_RTL, CHANNEL_TOP, RTL, Source, TOP, source};
use crate::tool::ToolError;
use crate::verilator::{CHANNEL_HEADER, Form, Recipe, Texts, texts};

/// The C++ source of the shared object's C interface.
const PINS: Source = source!("toggle/dv/verilated_pins.cpp");
const CHANNEL_GATES: Source = source!("channels/dv/verilated_gates.cpp");
const OWN: Source = source!("shared/dv/verilated_own.h");

/// The RTL of a toggle barrier to be translated.
#[derive(Debug, Clone)]
pub struct Design(Texts);

/// The RTL of version 2 to be translated.
#[derive(Debug, Clone)]
pub struct ChannelDesign(Texts);

impl Design {
    /// Returns the toggle barrier of this crate.
    pub fn toggle_barrier() -> Design {
        Design(texts(&RTL))
    }

    /// Returns the Verilog files of a folder as a design; its top module, parameter and ports must be those of `toggle_barrier`.
    pub fn of_folder(folder: &Path) -> Result<Design, CosimError> {
        verilog_of(folder).map(Design)
    }

    /// Builds the shared object for `nodes` nodes unless it is in the cache; returns its path.
    pub(super) fn translate(self, nodes: usize, cache: &Cache) -> Result<PathBuf, CosimError> {
        let recipe = Recipe {
            top: TOP,
            parameters: vec![("N", nodes)],
            rtl: self.0,
            harness: PINS,
            headers: vec![OWN],
            form: Form::SharedObject,
        };
        recipe.make(cache).map_err(CosimError::Tool)
    }
}

impl ChannelDesign {
    /// Returns this crate's RTL of version 2.
    pub fn channel_barrier() -> ChannelDesign {
        ChannelDesign(texts(&CHANNEL_RTL))
    }

    /// Returns the Verilog files of a folder as a design; its top module, parameters and ports must be those of `channel_barrier`.
    pub fn of_folder(folder: &Path) -> Result<ChannelDesign, CosimError> {
        verilog_of(folder).map(ChannelDesign)
    }

    /// Builds the shared object for these numbers of nodes and channels and a lease of `2^lease_bits` edges.
    pub(super) fn translate(
        self,
        nodes: usize,
        channels: usize,
        lease_bits: usize,
        cache: &Cache,
    ) -> Result<PathBuf, CosimError> {
        let recipe = Recipe {
            top: CHANNEL_TOP,
            parameters: vec![("N", nodes), ("C", channels), ("LEASE_BITS", lease_bits)],
            rtl: self.0,
            harness: CHANNEL_GATES,
            headers: vec![CHANNEL_HEADER, OWN],
            form: Form::SharedObject,
        };
        recipe.make(cache).map_err(CosimError::Tool)
    }
}

fn verilog_of(folder: &Path) -> Result<Texts, CosimError> {
    let named = |path: &Path, e| CosimError::Tool(ToolError::Folder(path.display().to_string(), e));
    let mut files = Texts::new();
    for entry in std::fs::read_dir(folder).map_err(|e| named(folder, e))? {
        let path = entry.map_err(|e| named(folder, e))?.path();
        if path.extension().is_some_and(|extension| extension == "v") {
            let text = std::fs::read_to_string(&path).map_err(|e| named(&path, e))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            files.push((name.into_owned(), text));
        }
    }
    if files.is_empty() {
        return Err(CosimError::NoVerilog(folder.to_owned()));
    }
    files.sort();
    Ok(files)
}

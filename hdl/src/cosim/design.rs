//! Which RTL is simulated: that of this crate, or a user's.

use std::path::{Path, PathBuf};

use super::CosimError;
use crate::cache::Cache;
use crate::source::{RTL, Source, TOP, source};
use crate::tool::ToolError;
use crate::verilator::{Form, Recipe, Texts, texts};

/// The shared object's C interface.
const PINS: Source = source!("dv/verilated_pins.cpp");

/// The RTL of a toggle barrier to be translated.
#[derive(Debug, Clone)]
pub struct Design(Texts);

impl Design {
    /// That of this crate.
    pub fn toggle_barrier() -> Design {
        Design(texts(&RTL))
    }

    /// The Verilog files of a folder; the top module, its parameter and its ports have to be those of `toggle_barrier`.
    pub fn of_folder(folder: &Path) -> Result<Design, CosimError> {
        let named =
            |path: &Path, e| CosimError::Tool(ToolError::Folder(path.display().to_string(), e));
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
        Ok(Design(files))
    }

    /// The shared object for so many nodes.
    pub(super) fn translate(self, nodes: usize, cache: &Cache) -> Result<PathBuf, CosimError> {
        let recipe = Recipe {
            top: TOP,
            parameters: vec![("N", nodes)],
            rtl: self.0,
            harness: PINS,
            form: Form::SharedObject,
        };
        recipe.make(cache).map_err(CosimError::Tool)
    }
}

//! The RTL in the model's place: each rank loads the same Verilated barrier and steps the flip-flops of the simulator's board with it.
//!
//! So there is no process that hosts the RTL, and nothing is lost or left behind when a rank dies: the flip-flops are in the
//! shared memory, and the translation is a file in a cache, which whoever comes first makes and the others wait for.
//! Verilator is needed for that once; without it, and without a translation, the component refuses with the name of the package.

use crate::settings::RtlSource;
use hdl::cache::Cache;
use hdl::cosim::{Design, Rtl};

/// The RTL of so many nodes.
pub fn load(source: &RtlSource, nodes: usize) -> Result<&'static Rtl, String> {
    let cache = match &source.cache {
        Some(folder) => Cache::at(folder),
        None => Cache::of_user().ok_or(
            "translated RTL is kept in the user's folder for caches, and there is neither XDG_CACHE_HOME nor HOME; coll_hwbarr_rtl_cache can name one",
        )?,
    };
    let design = match &source.folder {
        Some(folder) => Design::of_folder(folder).map_err(|e| e.to_string())?,
        None => Design::toggle_barrier(),
    };
    let rtl = Rtl::build(design, nodes, &cache).map_err(|e| e.to_string())?;
    // Loaded code is never unloaded: the board, which lies in the job's memory, refers to it for as long as that.
    Ok(Box::leak(Box::new(rtl)))
}

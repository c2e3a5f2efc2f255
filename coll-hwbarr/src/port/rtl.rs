//! The RTL in the model's place: each rank loads the same Verilated barrier and steps the flip-flops of the simulator's board with it.
//!
//! So there is no process that hosts the RTL, and nothing is lost or left behind when a rank dies: the flip-flops are in the
//! shared memory, and the translation is a file in a cache, which the first to come makes and the others wait for.
//! Verilator is needed for that once; without it, and without a translation, the component refuses with the name of the package.

use crate::choice::RtlSource;
use hdl::cache::Cache;
use hdl::cosim::{ChannelDesign, ChannelRtl, CosimError, Design, Rtl};
use mpi_base::privilege;
use std::path::Path;

/// The RTL of so many nodes.
pub fn load(source: &RtlSource, nodes: usize) -> Result<&'static Rtl, String> {
    refuse_raised()?;
    let design = chosen(source, Design::toggle_barrier, Design::of_folder)?;
    kept(Rtl::build(design, nodes, &cache(source)?))
}

/// The RTL of version 2 for so many nodes.
pub fn load_channels(source: &RtlSource, nodes: usize) -> Result<&'static ChannelRtl, String> {
    refuse_raised()?;
    let own = ChannelDesign::channel_barrier;
    let design = chosen(source, own, ChannelDesign::of_folder)?;
    kept(ChannelRtl::build(design, nodes, &cache(source)?))
}

/// The environment says where Verilator and the compiler are, and where their results are kept and loaded from.
fn refuse_raised() -> Result<(), String> {
    match privilege::is_raised() {
        true => Err(
            "this program has more rights than its user, and rtl runs programs that the user's environment names; use the port sim"
                .into(),
        ),
        false => Ok(()),
    }
}

fn cache(source: &RtlSource) -> Result<Cache, String> {
    match &source.cache {
        Some(folder) => Ok(Cache::at(folder)),
        None => Cache::of_user().ok_or_else(|| {
            "translated RTL is kept in the user's folder for caches, and there is neither XDG_CACHE_HOME nor HOME; coll_hwbarr_rtl_cache can name one"
                .into()
        }),
    }
}

/// The product's own design, or that of the user's folder.
fn chosen<D>(
    source: &RtlSource,
    own: impl FnOnce() -> D,
    of_folder: impl FnOnce(&Path) -> Result<D, CosimError>,
) -> Result<D, String> {
    match &source.folder {
        Some(folder) => of_folder(folder).map_err(|e| e.to_string()),
        None => Ok(own()),
    }
}

/// Loaded code is never unloaded: the board, which lies in the job's memory, refers to it for as long as that.
fn kept<T>(built: Result<T, CosimError>) -> Result<&'static T, String> {
    let built = built.map_err(|e| e.to_string())?;
    Ok(Box::leak(Box::new(built)))
}

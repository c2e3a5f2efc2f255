//! The Verilated RTL, which replaces the model of the simulated board:
//! each rank loads the same translation and updates the board's flip-flops with it.
//!
//! So the RTL needs no process, and nothing is lost when a rank dies: the flip-flops are in shared memory,
//! and the translation is a file in a cache. The first rank creates it while the others wait.
//! Only the translation needs Verilator. If neither the cached file nor Verilator exists,
//! the component refuses and names the package to install.

use crate::choice::RtlSource;
use hdl::cache::Cache;
use hdl::cosim::{ChannelDesign, ChannelRtl, CosimError, Design, Rtl};
use mpi_base::privilege;
use std::path::Path;

/// Loads the RTL of version 1 for `nodes` nodes.
pub fn load(source: &RtlSource, nodes: usize) -> Result<&'static Rtl, String> {
    refuse_raised()?;
    let design = chosen(source, Design::toggle_barrier, Design::of_folder)?;
    kept(Rtl::build(design, nodes, &cache(source)?))
}

/// Loads the RTL of version 2 for `nodes` nodes.
pub fn load_channels(source: &RtlSource, nodes: usize) -> Result<&'static ChannelRtl, String> {
    refuse_raised()?;
    let own = ChannelDesign::channel_barrier;
    let design = chosen(source, own, ChannelDesign::of_folder)?;
    kept(ChannelRtl::build(design, nodes, &cache(source)?))
}

/// Returns an error in a set-user-ID program: the environment selects Verilator, the compiler
/// and the folder from which their results are loaded.
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

/// Returns the built-in design, or the design in the user's folder.
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

/// Leaks the loaded code, to which the board in the job's memory refers until the process ends.
fn kept<T>(built: Result<T, CosimError>) -> Result<&'static T, String> {
    let built = built.map_err(|e| e.to_string())?;
    Ok(Box::leak(Box::new(built)))
}

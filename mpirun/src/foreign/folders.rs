//! Search path of the dynamic loader, as far as it is known without the loader's cache (ld.so(8)).

use super::{Env, SEARCH, get};
use std::path::PathBuf;

/// Returns the folders of `LD_LIBRARY_PATH`.
pub fn listed(env: &Env) -> Vec<PathBuf> {
    let list = get(env, SEARCH).unwrap_or_default();
    std::env::split_paths(list)
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect()
}

/// Returns the system's library folders, where distributions and administrators install libraries.
pub fn of_the_system() -> Vec<PathBuf> {
    let triplet = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let kinds = [triplet.as_str(), "lib64", "lib"];
    let places = ["/usr/local", "/", "/usr"].map(PathBuf::from);
    places
        .iter()
        .flat_map(|place| kinds.iter().map(|kind| place.join(kind)))
        .collect()
}

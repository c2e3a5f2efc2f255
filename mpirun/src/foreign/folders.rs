//! Folders in which the loader searches for a library, as far as they are known without its cache (ld.so(8)).

use super::{Env, SEARCH, get};
use std::path::PathBuf;

/// Those that the environment lists.
pub fn listed(env: &Env) -> Vec<PathBuf> {
    let list = get(env, SEARCH).unwrap_or_default();
    std::env::split_paths(list)
        .filter(|folder| !folder.as_os_str().is_empty())
        .collect()
}

/// Those of the system, where distributions and people install libraries.
pub fn of_the_system() -> Vec<PathBuf> {
    let triplet = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    let kinds = [triplet.as_str(), "lib64", "lib"];
    let places = ["/usr/local", "/", "/usr"].map(PathBuf::from);
    places
        .iter()
        .flat_map(|place| kinds.iter().map(|kind| place.join(kind)))
        .collect()
}

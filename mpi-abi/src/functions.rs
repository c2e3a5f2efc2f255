//! The functions of the interface, by name and by number: the list that the build script makes.

/// A function of the interface, as `mpi-info --functions` lists it.
#[derive(Clone, Copy, Debug)]
pub struct FunctionInfo {
    pub name: &'static str,
    /// The number of its chapter in the standard.
    pub chapter: u32,
    /// The title of the chapter.
    pub subject: &'static str,
    /// The version of the standard that introduced it.
    pub since: &'static str,
    /// Whether it works; otherwise it raises `MPI_ERR_UNSUPPORTED_OPERATION`.
    pub implemented: bool,
}

/// Every function of the interface.
pub fn functions() -> &'static [FunctionInfo] {
    &FUNCTIONS
}

/// What is there beyond the standard.
pub fn extensions() -> &'static [FunctionInfo] {
    &EXTENSIONS
}

/// The name of function `id`.
pub fn name(id: usize) -> &'static str {
    let functions = FUNCTIONS.iter().chain(&EXTENSIONS);
    functions.into_iter().nth(id).map_or("MPI", |f| f.name)
}

/// The id of a function, for the few that raise failures of their own accord.
pub fn id_of(name: &str) -> usize {
    FUNCTIONS
        .iter()
        .position(|f| f.name == name)
        .unwrap_or(FUNCTIONS.len())
}

include!(concat!(env!("OUT_DIR"), "/functions.rs"));

//! Options that users know from other launchers and that this one does not have yet, each with what it would do.
//!
//! They are refused by name: an option that is ignored misleads more than one that is missing.
//! A value that asks for what happens anyway is accepted.

/// A known option that is missing.
#[derive(Debug)]
pub struct NotYet {
    pub name: &'static str,
    /// How many values follow it.
    pub values: usize,
    /// Values that ask for what happens anyway.
    pub harmless: &'static [&'static str],
    pub what: &'static str,
}

const TABLE: &[NotYet] = &[
    NotYet {
        name: "arch",
        values: 1,
        harmless: &[std::env::consts::ARCH],
        what: "choosing hosts by their architecture; --host and --hostfile name them",
    },
    NotYet {
        name: "memory-alloc-kinds",
        values: 1,
        harmless: &["mpi", "system", "mpi,system", "system,mpi"],
        what: "memory of other kinds",
    },
];

pub fn find(name: &str) -> Option<&'static NotYet> {
    TABLE.iter().find(|option| option.name == name)
}

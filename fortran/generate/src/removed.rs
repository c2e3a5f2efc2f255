//! Interfaces in module `mpi` for procedures that the standard has removed and old programs call.
//!
//! The library has handwritten bodies for these procedures.

/// The interface of a removed procedure: its name, and its arguments with their declarations.
pub struct Removed {
    pub name: &'static str,
    pub arguments: &'static str,
    pub declarations: &'static [&'static str],
}

const fn removed(
    name: &'static str,
    arguments: &'static str,
    declarations: &'static [&'static str],
) -> Removed {
    Removed {
        name,
        arguments,
        declarations,
    }
}

/// All removed procedures.
pub const NAMES: &[Removed] = &[
    removed(
        "MPI_Address",
        "location, address, ierror",
        &["!choice location", "INTEGER address, ierror"],
    ),
    removed(
        "MPI_Errhandler_create",
        "handler_fn, errhandler, ierror",
        &["EXTERNAL handler_fn", "INTEGER errhandler, ierror"],
    ),
    removed(
        "MPI_Errhandler_get",
        "comm, errhandler, ierror",
        &["INTEGER comm, errhandler, ierror"],
    ),
    removed(
        "MPI_Errhandler_set",
        "comm, errhandler, ierror",
        &["INTEGER comm, errhandler, ierror"],
    ),
    removed(
        "MPI_Type_extent",
        "datatype, extent, ierror",
        &["INTEGER datatype, extent, ierror"],
    ),
    removed(
        "MPI_Type_lb",
        "datatype, displacement, ierror",
        &["INTEGER datatype, displacement, ierror"],
    ),
    removed(
        "MPI_Type_ub",
        "datatype, displacement, ierror",
        &["INTEGER datatype, displacement, ierror"],
    ),
    removed(
        "MPI_Type_hvector",
        "count, blocklength, stride, oldtype, newtype, ierror",
        &["INTEGER count, blocklength, stride, oldtype, newtype, ierror"],
    ),
    removed(
        "MPI_Type_hindexed",
        "count, array_of_blocklengths, array_of_displacements, oldtype, newtype, ierror",
        &[
            "INTEGER count, array_of_blocklengths(*), array_of_displacements(*)",
            "INTEGER oldtype, newtype, ierror",
        ],
    ),
    removed(
        "MPI_Type_struct",
        "count, array_of_blocklengths, array_of_displacements, array_of_types, newtype, ierror",
        &[
            "INTEGER count, array_of_blocklengths(*), array_of_displacements(*)",
            "INTEGER array_of_types(*), newtype, ierror",
        ],
    ),
];

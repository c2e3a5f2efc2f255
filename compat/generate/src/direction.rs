//! The direction of the translation between the standard ABI and another ABI.

/// The library that the exported functions call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// `libmpi_abi.so.1`, for programs compiled against MPICH or Open MPI.
    Standard,
    /// MPICH or Open MPI, for programs compiled against the standard ABI.
    /// That library may also call the exported functions, with arguments of its own ABI.
    Foreign,
}

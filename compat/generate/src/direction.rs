//! The direction of the translation between the standard ABI and another ABI.

/// The library that the exported functions call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// `libmpi_abi.so.1`, for programs of other libraries.
    Standard,
    /// Another library, for programs of the standard ABI.
    /// The library may call the exported functions itself, with its own arguments.
    Foreign,
}

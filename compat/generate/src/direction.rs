//! In which direction a family of functions translates.

/// Which library the entries call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Below {
    /// `libmpi_abi.so.1`, for programs of other libraries.
    Standard,
    /// Another library, for programs of the standard ABI. It may call the exported functions itself, with its own arguments.
    Foreign,
}

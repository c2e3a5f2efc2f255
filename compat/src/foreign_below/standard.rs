//! Constants of the standard ABI that the fallbacks and emulations use.

use std::ffi::c_int;

pub const MPI_COMM_WORLD: usize = 0x101;
pub const MPI_COMM_SELF: usize = 0x102;
pub const MPI_PACKED: usize = 0x207;

/// Error classes: `class::X` is `MPI_ERR_X`.
pub mod class {
    use super::c_int;

    pub const BUFFER: c_int = 1;
    pub const COUNT: c_int = 2;
    pub const TYPE: c_int = 3;
    pub const RANK: c_int = 6;
    pub const REQUEST: c_int = 7;
    pub const GROUP: c_int = 9;
    pub const ARG: c_int = 13;
    pub const UNKNOWN: c_int = 14;
    pub const OTHER: c_int = 16;
    pub const IN_STATUS: c_int = 19;
    pub const UNSUPPORTED_OPERATION: c_int = 55;
    pub const SESSION: c_int = 60;
    pub const ABI: c_int = 62;
}

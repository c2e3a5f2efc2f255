//! Types of the debugger interface, in the layout of its C header.

use std::ffi::{c_char, c_int, c_long, c_ulong, c_void};

/// An address in the debugged process (`mqs_taddr_t`).
pub type Address = c_ulong;
/// The largest integer type of the debugged process (`mqs_tword_t`).
pub type Word = c_long;

/// Result codes of the interface.
pub const OK: c_int = 0;
pub const NO_INFORMATION: c_int = 1;
pub const END_OF_LIST: c_int = 2;
/// Result codes of this library.
pub const NO_PAGE: c_int = 100;
pub const NOT_READ: c_int = 101;

/// The size of the interface's text arrays in bytes, including the NUL.
pub const TEXT: usize = 64;

/// The debugger's general callbacks.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct BasicCallbacks {
    pub malloc: unsafe extern "C" fn(usize) -> *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub dprints: unsafe extern "C" fn(*const c_char),
    pub errorstring: unsafe extern "C" fn(c_int) -> *mut c_char,
    pub put_image_info: unsafe extern "C" fn(*mut c_void, *mut c_void),
    pub get_image_info: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    pub put_process_info: unsafe extern "C" fn(*mut c_void, *mut c_void),
    pub get_process_info: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
}

/// The debugger's callbacks for a program file.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ImageCallbacks {
    pub get_type_sizes: unsafe extern "C" fn(*mut c_void, *mut c_void),
    pub find_function: unsafe extern "C" fn(*mut c_void, *mut c_char, c_int, *mut Address) -> c_int,
    pub find_symbol: unsafe extern "C" fn(*mut c_void, *mut c_char, *mut Address) -> c_int,
    pub find_type: unsafe extern "C" fn(*mut c_void, *mut c_char, c_int) -> *mut c_void,
    pub field_offset: unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int,
    pub sizeof: unsafe extern "C" fn(*mut c_void) -> c_int,
}

/// The debugger's callbacks for a process.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ProcessCallbacks {
    pub get_global_rank: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub get_image: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    pub fetch_data: unsafe extern "C" fn(*mut c_void, Address, c_int, *mut c_void) -> c_int,
    pub target_to_host:
        unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, c_int) -> c_int,
}

/// A communicator, as shown by the debugger.
#[repr(C)]
pub struct Communicator {
    pub unique_id: Address,
    pub local_rank: Word,
    pub size: Word,
    pub name: [c_char; TEXT],
}

/// An operation or an unexpected message, as shown by the debugger.
#[repr(C)]
pub struct PendingOperation {
    /// The status of the operation: 0 is pending, 1 matched, 2 complete.
    pub status: c_int,
    pub desired_local_rank: Word,
    pub desired_global_rank: Word,
    pub tag_wild: c_int,
    pub desired_tag: Word,
    pub desired_length: Word,
    pub system_buffer: c_int,
    pub buffer: Address,
    pub actual_local_rank: Word,
    pub actual_global_rank: Word,
    pub actual_tag: Word,
    pub actual_length: Word,
    pub extra_text: [[c_char; TEXT]; 5],
}

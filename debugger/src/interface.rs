//! The types of the debuggers' interface, in the layout of its C header.

use std::ffi::{c_char, c_int, c_long, c_ulong, c_void};

/// An address in the rank, and its largest integer.
pub type Address = c_ulong;
/// See [`Address`].
pub type Word = c_long;

/// The results of functions.
pub const OK: c_int = 0;
pub const NO_INFORMATION: c_int = 1;
pub const END_OF_LIST: c_int = 2;
/// Results of this library.
pub const NO_PAGE: c_int = 100;
pub const NOT_READ: c_int = 101;

/// The length of texts.
pub const TEXT: usize = 64;

/// What a debugger does for this library in general.
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

/// What a debugger knows of a program's file.
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

/// What a debugger does with a process.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ProcessCallbacks {
    pub get_global_rank: unsafe extern "C" fn(*mut c_void) -> c_int,
    pub get_image: unsafe extern "C" fn(*mut c_void) -> *mut c_void,
    pub fetch_data: unsafe extern "C" fn(*mut c_void, Address, c_int, *mut c_void) -> c_int,
    pub target_to_host:
        unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void, c_int) -> c_int,
}

/// A communicator.
#[repr(C)]
pub struct Communicator {
    pub unique_id: Address,
    pub local_rank: Word,
    pub size: Word,
    pub name: [c_char; TEXT],
}

/// An operation or an unexpected message.
#[repr(C)]
pub struct PendingOperation {
    /// 0 pending, 1 matched, 2 complete.
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

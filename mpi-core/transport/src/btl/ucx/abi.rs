//! The part of UCX's C interface that this transport uses: functions, and the offsets and bits of structures.
//!
//! Checked against the headers of UCX 1.13 and 1.21: offsets and values are the same in both, and structures have only grown at their ends.
//! Each structure begins with a mask of the fields that are set.

#![allow(unsafe_code)]

use super::super::fabric::layout::Block;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// `ucs_status_t`, an enumeration of one byte.
pub type Status = i8;
pub type Pointer = *mut c_void;

pub const OK: Status = 0;
pub const IN_PROGRESS: Status = 1;
pub const NO_RESOURCE: Status = -2;
pub const NO_MEMORY: Status = -4;
pub const UNREACHABLE: Status = -6;
pub const BUSY: Status = -15;
/// The last error; a pointer value from this one to -1 is a status.
pub const LAST: isize = -100;

/// The callback of an active message: argument, header and its length, data and their length, parameters.
pub type OnMessage = unsafe extern "C" fn(
    Pointer,
    *const c_void,
    usize,
    Pointer,
    usize,
    *const ReceiveParameters,
) -> Status;
/// The callback at the end of a send: request, status, user data.
pub type OnSent = unsafe extern "C" fn(Pointer, Status, Pointer);
/// The callback of a failed endpoint: argument, endpoint, status.
pub type OnError = unsafe extern "C" fn(Pointer, Pointer, Status);

/// `ucp_am_recv_param_t`.
#[repr(C)]
pub struct ReceiveParameters {
    pub attributes: u64,
    pub reply: Pointer,
}

/// The data stay valid until they are released, if the callback returns [`IN_PROGRESS`].
pub const MAY_KEEP: u64 = 1 << 16;
/// The data have not arrived; the receiver must fetch them.
pub const RENDEZVOUS: u64 = 1 << 17;

crate::functions! {
    /// The functions of `libucp.so.0`.
    Functions {
        ucp_get_version: fn(*mut c_uint, *mut c_uint, *mut c_uint);
        ucp_config_read: fn(*const c_char, *const c_char, *mut Pointer) -> Status;
        ucp_config_modify: fn(Pointer, *const c_char, *const c_char) -> Status;
        ucp_config_release: fn(Pointer);
        ucp_init_version: fn(c_uint, c_uint, *const c_void, Pointer, *mut Pointer) -> Status;
        ucp_cleanup: fn(Pointer);
        ucp_worker_create: fn(Pointer, *const c_void, *mut Pointer) -> Status;
        ucp_worker_destroy: fn(Pointer);
        ucp_worker_get_address: fn(Pointer, *mut Pointer, *mut usize) -> Status;
        ucp_worker_release_address: fn(Pointer, Pointer);
        ucp_worker_progress: fn(Pointer) -> c_uint;
        ucp_worker_get_efd: fn(Pointer, *mut c_int) -> Status;
        ucp_worker_arm: fn(Pointer) -> Status;
        ucp_worker_set_am_recv_handler: fn(Pointer, *const c_void) -> Status;
        ucp_worker_flush_nbx: fn(Pointer, *const c_void) -> Pointer;
        ucp_ep_create: fn(Pointer, *const c_void, *mut Pointer) -> Status;
        ucp_ep_close_nbx: fn(Pointer, *const c_void) -> Pointer;
        ucp_am_send_nbx: fn(Pointer, c_uint, *const c_void, usize, *const c_void, usize, *const c_void) -> Pointer;
        ucp_am_data_release: fn(Pointer, Pointer);
        ucp_request_check_status: fn(Pointer) -> Status;
        ucp_request_free: fn(Pointer);
    }
}

crate::functions! {
    /// The functions of `libucp.so.0` for registered memory; without one of them long messages are sent in fragments.
    MemoryFunctions {
        ucp_mem_map: fn(Pointer, *const c_void, *mut Pointer) -> Status;
        ucp_mem_unmap: fn(Pointer, Pointer) -> Status;
        ucp_rkey_pack: fn(Pointer, Pointer, *mut Pointer, *mut usize) -> Status;
        ucp_rkey_buffer_release: fn(Pointer);
        ucp_ep_rkey_unpack: fn(Pointer, *const c_void, *mut Pointer) -> Status;
        ucp_rkey_destroy: fn(Pointer);
        ucp_get_nbx: fn(Pointer, Pointer, usize, u64, Pointer, *const c_void) -> Pointer;
        ucp_put_nbx: fn(Pointer, *const c_void, usize, u64, Pointer, *const c_void) -> Pointer;
        ucp_ep_flush_nbx: fn(Pointer, *const c_void) -> Pointer;
    }
}

crate::functions! {
    /// The function of `libucs.so.0` that is used.
    Texts {
        ucs_status_string: fn(Status) -> *const c_char;
    }
}

/// The oldest interface with all of these functions: major and minor number.
pub const VERSION: (c_uint, c_uint) = (1, 11);

/// `ucp_params_t` (88 bytes): active messages and wake-up, with `reads` also remote memory access, and an estimate of the number of endpoints.
pub fn context(endpoints: u32, reads: bool) -> Block<32> {
    const FEATURES: u64 = 1;
    const ESTIMATE: u64 = 1 << 6;
    const WAKEUP: u64 = 1 << 4;
    const ACTIVE_MESSAGES: u64 = 1 << 6;
    const REMOTE_MEMORY: u64 = 1 << 1;
    let remote = if reads { REMOTE_MEMORY } else { 0 };
    Block::default()
        .with64(0, FEATURES | ESTIMATE)
        .with64(8, ACTIVE_MESSAGES | WAKEUP | remote)
        .with64(56, endpoints.into())
}

/// `ucp_worker_params_t` (208 bytes): one thread at a time, which may be another each time.
pub fn worker() -> Block<64> {
    const THREAD_MODE: u64 = 1;
    const SERIALIZED: u32 = 1;
    Block::default()
        .with64(0, THREAD_MODE)
        .with32(8, SERIALIZED)
}

/// `ucp_am_handler_param_t` (32 bytes).
pub fn handler(id: u32, callback: OnMessage, argument: *const c_void) -> Block<16> {
    const ID_CALLBACK_ARGUMENT: u64 = 1 | 1 << 2 | 1 << 3;
    Block::default()
        .with64(0, ID_CALLBACK_ARGUMENT)
        .with32(8, id)
        .with_pointer(16, callback as *const c_void)
        .with_pointer(24, argument)
}

/// `ucp_ep_params_t` (104 bytes): a peer's address, and a callback for its failure.
///
/// Without `reports` UCX need not notice failures and may use transports that cannot.
pub fn endpoint(
    address: &[u8],
    reports: bool,
    callback: OnError,
    argument: *const c_void,
) -> Block<32> {
    const ADDRESS: u64 = 1;
    const ERROR_MODE: u64 = 1 << 1;
    const ERROR_HANDLER: u64 = 1 << 2;
    const NONE: u32 = 0;
    const PEER: u32 = 1;
    Block::default()
        .with64(0, ADDRESS | ERROR_MODE | ERROR_HANDLER)
        .with_pointer(8, address.as_ptr())
        .with32(16, if reports { PEER } else { NONE })
        .with_pointer(24, callback as *const c_void)
        .with_pointer(32, argument)
}

/// `ucp_request_param_t` (96 bytes) of a send: eager, so that messages keep their order, with a callback.
pub fn send(callback: OnSent, argument: *const c_void) -> Block<16> {
    const CALLBACK: u32 = 1 << 1;
    const USER_DATA: u32 = 1 << 2;
    const FLAGS: u32 = 1 << 4;
    const EAGER: u32 = 1 << 1;
    Block::default()
        .with32(0, CALLBACK | USER_DATA | FLAGS)
        .with32(4, EAGER)
        .with_pointer(16, callback as *const c_void)
        .with_pointer(32, argument)
}

/// `ucp_mem_map_params_t` (56 bytes): an address and a length.
pub fn memory(address: u64, len: u64) -> Block<16> {
    const ADDRESS_LENGTH: u64 = 1 | 1 << 1;
    Block::default()
        .with64(0, ADDRESS_LENGTH)
        .with64(8, address)
        .with64(16, len)
}

/// `ucp_request_param_t` of an operation on registered memory, with a callback.
pub fn operation(callback: OnSent, argument: *const c_void) -> Block<16> {
    const CALLBACK: u32 = 1 << 1;
    const USER_DATA: u32 = 1 << 2;
    Block::default()
        .with32(0, CALLBACK | USER_DATA)
        .with_pointer(16, callback as *const c_void)
        .with_pointer(32, argument)
}

/// `ucp_request_param_t` of the end of an endpoint.
pub fn close(at_once: bool) -> Block<16> {
    const FLAGS: u32 = 1 << 4;
    const FORCE: u32 = 1;
    Block::default()
        .with32(0, FLAGS)
        .with32(4, if at_once { FORCE } else { 0 })
}

/// `ucp_request_param_t` without any field.
pub fn plain() -> Block<16> {
    Block::default()
}

/// Returns the status that a pointer encodes, if it is one: null is success, the last hundred addresses are errors.
pub fn status_of(pointer: Pointer) -> Option<Status> {
    match pointer.addr() as isize {
        0 => Some(OK),
        status if (LAST..0).contains(&status) => Some(status as Status),
        _ => None,
    }
}

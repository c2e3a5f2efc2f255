//! The part of UCX's C interface that this transport uses: functions, and the offsets and flags of structures.
//!
//! The headers of UCX 1.13 and 1.21 were compared: offsets and values are equal, and new fields are only at the ends of structures.
//! Each structure begins with a mask of the fields that are in use.

#![allow(unsafe_code)]

use super::super::fabric::layout::Block;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// The C type `ucs_status_t`, an enumeration of one byte.
pub type Status = i8;
pub type Pointer = *mut c_void;

pub const OK: Status = 0;
pub const IN_PROGRESS: Status = 1;
pub const NO_RESOURCE: Status = -2;
pub const NO_MEMORY: Status = -4;
pub const UNREACHABLE: Status = -6;
pub const BUSY: Status = -15;
/// The lowest error code. A pointer whose value is from this code to -1 is a status.
pub const LAST: isize = -100;

/// The type of the callback for an active message. Arguments: user argument, header and its length, data and their length, parameters.
pub type OnMessage = unsafe extern "C" fn(
    Pointer,
    *const c_void,
    usize,
    Pointer,
    usize,
    *const ReceiveParameters,
) -> Status;
/// The type of the callback at the end of a send. Arguments: request, status, user data.
pub type OnSent = unsafe extern "C" fn(Pointer, Status, Pointer);
/// The type of the callback at the end of a receive of data that were not here. Arguments: request, status, length, user data.
pub type OnReceived = unsafe extern "C" fn(Pointer, Status, usize, Pointer);
/// The type of the callback for a failed endpoint. Arguments: user argument, endpoint, status.
pub type OnError = unsafe extern "C" fn(Pointer, Pointer, Status);

/// The C structure `ucp_am_recv_param_t`.
#[repr(C)]
pub struct ReceiveParameters {
    pub attributes: u64,
    pub reply: Pointer,
}

/// Flag: if the callback returns [`IN_PROGRESS`], the data remain valid until they are released.
pub const MAY_KEEP: u64 = 1 << 16;
/// Flag: the data have not arrived, and the receiver must fetch them.
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
    /// The functions of `libucp.so.0` for registered memory. If one is missing, long messages are sent in fragments.
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
    /// The function of `libucp.so.0` for delivery in place. If it is missing, long messages are sent in fragments.
    InPlaceFunctions {
        ucp_am_recv_data_nbx: fn(Pointer, Pointer, Pointer, usize, *const c_void) -> Pointer;
    }
}

crate::functions! {
    /// The function of `libucs.so.0` that returns error texts.
    Texts {
        ucs_status_string: fn(Status) -> *const c_char;
    }
}

/// The oldest version of the interface that has all of these functions: major and minor number.
pub const VERSION: (c_uint, c_uint) = (1, 11);

/// Returns the structure `ucp_params_t` (88 bytes): the features active messages and wake-up, also remote memory access if `reads` is true, and the estimated number of endpoints.
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

/// Returns the structure `ucp_worker_params_t` (208 bytes): any thread may use the worker, but only one at a time.
pub fn worker() -> Block<64> {
    const THREAD_MODE: u64 = 1;
    const SERIALIZED: u32 = 1;
    Block::default()
        .with64(0, THREAD_MODE)
        .with32(8, SERIALIZED)
}

/// Returns the structure `ucp_am_handler_param_t` (32 bytes): the message's ID, the callback and its argument.
pub fn handler(id: u32, callback: OnMessage, argument: *const c_void) -> Block<16> {
    const ID_CALLBACK_ARGUMENT: u64 = 1 | 1 << 2 | 1 << 3;
    Block::default()
        .with64(0, ID_CALLBACK_ARGUMENT)
        .with32(8, id)
        .with_pointer(16, callback as *const c_void)
        .with_pointer(24, argument)
}

/// Returns the structure `ucp_ep_params_t` (104 bytes): a peer's address, and a callback for the peer's failure.
///
/// If `reports` is false, UCX need not detect failures, and may use transports that cannot detect them.
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

/// Returns the structure `ucp_request_param_t` (96 bytes) for a send: eager, so that messages keep their order, and with a callback.
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

/// Returns the structure `ucp_request_param_t` for a send whose data remain in place until the receiver fetches them, with a callback.
pub fn offer(callback: OnSent, argument: *const c_void) -> Block<16> {
    const RENDEZVOUS: u32 = 1 << 2;
    send(callback, argument).with32(4, RENDEZVOUS)
}

/// Returns the structure `ucp_request_param_t` for a receive of such data, with a callback.
pub fn receive(callback: OnReceived, argument: *const c_void) -> Block<16> {
    const CALLBACK: u32 = 1 << 1;
    const USER_DATA: u32 = 1 << 2;
    Block::default()
        .with32(0, CALLBACK | USER_DATA)
        .with_pointer(16, callback as *const c_void)
        .with_pointer(32, argument)
}

/// Returns the structure `ucp_mem_map_params_t` (56 bytes): an address and a length.
pub fn memory(address: u64, len: u64) -> Block<16> {
    const ADDRESS_LENGTH: u64 = 1 | 1 << 1;
    Block::default()
        .with64(0, ADDRESS_LENGTH)
        .with64(8, address)
        .with64(16, len)
}

/// Returns the structure `ucp_request_param_t` for an operation on registered memory, with a callback.
pub fn operation(callback: OnSent, argument: *const c_void) -> Block<16> {
    const CALLBACK: u32 = 1 << 1;
    const USER_DATA: u32 = 1 << 2;
    Block::default()
        .with32(0, CALLBACK | USER_DATA)
        .with_pointer(16, callback as *const c_void)
        .with_pointer(32, argument)
}

/// Returns the structure `ucp_request_param_t` for closing an endpoint.
pub fn close(at_once: bool) -> Block<16> {
    const FLAGS: u32 = 1 << 4;
    const FORCE: u32 = 1;
    Block::default()
        .with32(0, FLAGS)
        .with32(4, if at_once { FORCE } else { 0 })
}

/// Returns the structure `ucp_request_param_t` without any field set.
pub fn plain() -> Block<16> {
    Block::default()
}

/// Returns the status that a pointer encodes (null is success, -100 to -1 are error codes); `None` for a valid pointer.
pub fn status_of(pointer: Pointer) -> Option<Status> {
    match pointer.addr() as isize {
        0 => Some(OK),
        status if (LAST..0).contains(&status) => Some(status as Status),
        _ => None,
    }
}

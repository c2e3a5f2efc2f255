//! The part of libfabric's C interface that this transport uses: functions, offsets of fields, flags, and calls through the function tables of objects.
//!
//! The headers of libfabric 1.17 and 2.6 were compared: offsets and values are equal, and new fields are only at the ends of structures.
//! A libfabric object contains pointers to function tables. Each table begins with its size in bytes.

#![allow(unsafe_code)]

use super::super::fabric::layout::Block;
use std::ffi::{c_char, c_int, c_void};

pub type Pointer = *mut c_void;

crate::functions! {
    /// The exported functions of `libfabric.so.1`; all others are in function tables.
    Functions {
        fi_getinfo: fn(u32, *const c_char, *const c_char, u64, Pointer, *mut Pointer) -> c_int;
        fi_freeinfo: fn(Pointer);
        fi_dupinfo: fn(Pointer) -> Pointer;
        fi_fabric: fn(Pointer, *mut Pointer, Pointer) -> c_int;
        fi_version: fn() -> u32;
        fi_strerror: fn(c_int) -> *const c_char;
    }
}

/// The requested version of libfabric's interface, 1.9. It has all functions that this transport uses.
pub const VERSION: u32 = 1 << 16 | 9;

pub const EAGAIN: isize = -11;
pub const ENOMEM: isize = -12;
pub const ENODATA: c_int = -61;
/// Error code: the completion queue has an error entry.
pub const EAVAIL: isize = -259;
pub const ENOSYS: c_int = -38;

pub const MSG: u64 = 1 << 1;
/// Capability: operations on registered memory.
pub const RMA: u64 = 1 << 2;
pub const READ_ACCESS: u64 = 1 << 8;
pub const WRITE_ACCESS: u64 = 1 << 9;
pub const REMOTE_READ: u64 = 1 << 12;
pub const REMOTE_WRITE: u64 = 1 << 13;
/// Flag of a write: report a completion.
pub const COMPLETION: u64 = 1 << 24;
/// Flag of a write: the completion means that the data are in the peer's memory.
pub const DELIVERY_COMPLETE: u64 = 1 << 28;
pub const RECV: u64 = 1 << 10;
pub const SEND: u64 = 1 << 11;
/// Mode bits: the caller provides 32 (`CONTEXT`) or 64 (`CONTEXT2`) bytes of memory for each operation.
pub const CONTEXT: u64 = 1 << 59;
pub const CONTEXT2: u64 = 1 << 52;
pub const ORDER_SEND_AFTER_SEND: u64 = 1 << 8;
pub const UNSPECIFIED: u64 = u64::MAX;
/// Registration mode: local buffers must be registered.
pub const MR_LOCAL: u32 = 4;
pub const MR_VIRTUAL_ADDRESSES: u32 = 0x10;
pub const MR_PROVIDER_KEYS: u32 = 0x40;
pub const MR_OF_ENDPOINT: u32 = 0x200;
/// The registration modes that this transport supports: LOCAL, VIRT_ADDR, ALLOCATED, PROV_KEY, ENDPOINT.
pub const MR_MODES: u32 = 4 | 0x10 | 0x20 | 0x40 | 0x200;
pub const RELIABLE_DATAGRAM: u32 = 3;
pub const THREADS_OF_DOMAIN: u32 = 3;
pub const PROGRESS_MANUAL: u32 = 2;
pub const WAIT_NONE: u32 = 0;
pub const WAIT_FD: u32 = 3;
pub const GETWAIT: c_int = 5;
pub const ENABLE: c_int = 6;

/// Offsets of fields in `fi_info` and the structures to which it points.
pub mod info {
    pub const NEXT: usize = 0;
    pub const CAPS: usize = 8;
    pub const MODE: usize = 16;
    pub const TX: usize = 72;
    pub const RX: usize = 80;
    pub const EP: usize = 88;
    pub const DOMAIN: usize = 96;
    pub const FABRIC: usize = 104;
    /// Offsets in `tx_attr` and `rx_attr`.
    pub const MSG_ORDER: usize = 24;
    pub const INJECT_SIZE: usize = 40;
    /// Offset in `ep_attr`.
    pub const TYPE: usize = 0;
    /// Offsets in `domain_attr`.
    pub const THREADING: usize = 16;
    pub const CONTROL_PROGRESS: usize = 20;
    pub const DATA_PROGRESS: usize = 24;
    pub const MR_MODE: usize = 36;
    /// Offset in `fabric_attr`.
    pub const PROVIDER: usize = 16;
}

/// The C structure `fi_cq_data_entry`: one completion.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Completion {
    pub context: Pointer,
    pub flags: u64,
    pub len: usize,
    pub bytes: Pointer,
    pub data: u64,
}

/// The C structure `iovec`.
#[repr(C)]
pub struct LocalPart {
    pub start: Pointer,
    pub len: usize,
}

/// The C structure `fi_rma_iov`.
#[repr(C)]
pub struct RemotePart {
    pub address: u64,
    pub len: usize,
    pub key: u64,
}

/// The C structure `fi_msg_rma`.
#[repr(C)]
pub struct WriteMessage {
    pub local: *const LocalPart,
    pub marks: *const Pointer,
    pub local_count: usize,
    pub to: u64,
    pub remote: *const RemotePart,
    pub remote_count: usize,
    pub context: Pointer,
    pub data: u64,
}

/// The C structure `fi_cq_err_entry`; the block is longer than any version of the structure.
pub type ErrorEntry = Block<16>;

/// Returns the attributes of a completion queue (`fi_cq_attr`): the format of [`Completion`], and the wait object `wait`.
pub fn queue(wait: u32) -> Block<8> {
    const DATA: u32 = 3;
    Block::default().with32(16, DATA).with32(20, wait)
}

/// Returns the attributes of an address vector (`fi_av_attr`) of the type table for `count` addresses.
pub fn addresses(count: usize) -> Block<8> {
    const TABLE: u32 = 2;
    Block::default().with32(0, TABLE).with64(8, count as u64)
}

/// An object of the library. The type of the object determines the offsets of its function tables.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Object(pub Pointer);

/// A function in a function table: the offset of the table's pointer in the object, and the offset of the function in the table.
#[derive(Clone, Copy)]
pub struct Entry(pub usize, pub usize);

pub const CLOSE: Entry = Entry(16, 8);
pub const BIND: Entry = Entry(16, 16);
pub const CONTROL: Entry = Entry(16, 24);
pub const DOMAIN: Entry = Entry(24, 8);
pub const TRYWAIT: Entry = Entry(24, 40);
pub const AV_OPEN: Entry = Entry(24, 8);
pub const CQ_OPEN: Entry = Entry(24, 16);
pub const ENDPOINT: Entry = Entry(24, 24);
pub const REGISTER: Entry = Entry(32, 8);
pub const GETNAME: Entry = Entry(32, 16);
pub const RECEIVE: Entry = Entry(40, 8);
pub const SENDS: Entry = Entry(40, 32);
pub const READ_MEMORY: Entry = Entry(48, 8);
pub const WRITE_MEMORY: Entry = Entry(48, 48);
pub const INJECT: Entry = Entry(40, 56);
pub const INSERT: Entry = Entry(24, 8);
pub const READ: Entry = Entry(24, 8);
pub const READ_ERROR: Entry = Entry(24, 24);

pub type Close = unsafe extern "C" fn(Pointer) -> c_int;
pub type Bind = unsafe extern "C" fn(Pointer, Pointer, u64) -> c_int;
pub type Control = unsafe extern "C" fn(Pointer, c_int, Pointer) -> c_int;
pub type OpenDomain = unsafe extern "C" fn(Pointer, Pointer, *mut Pointer, Pointer) -> c_int;
pub type TryWait = unsafe extern "C" fn(Pointer, *const Pointer, c_int) -> c_int;
pub type Open = unsafe extern "C" fn(Pointer, *const c_void, *mut Pointer, Pointer) -> c_int;
pub type Register = unsafe extern "C" fn(
    Pointer,
    *const c_void,
    usize,
    u64,
    u64,
    u64,
    u64,
    *mut Pointer,
    Pointer,
) -> c_int;
pub type GetName = unsafe extern "C" fn(Pointer, Pointer, *mut usize) -> c_int;
pub type Receive = unsafe extern "C" fn(Pointer, Pointer, usize, Pointer, u64, Pointer) -> isize;
pub type Send = unsafe extern "C" fn(Pointer, *const c_void, usize, Pointer, u64, Pointer) -> isize;
pub type ReadMemory =
    unsafe extern "C" fn(Pointer, Pointer, usize, Pointer, u64, u64, u64, Pointer) -> isize;
pub type WriteMemory = unsafe extern "C" fn(Pointer, *const WriteMessage, u64) -> isize;
pub type Inject = unsafe extern "C" fn(Pointer, *const c_void, usize, u64) -> isize;
pub type Insert =
    unsafe extern "C" fn(Pointer, *const c_void, usize, *mut u64, u64, Pointer) -> c_int;
pub type Read = unsafe extern "C" fn(Pointer, Pointer, usize) -> isize;
pub type ReadError = unsafe extern "C" fn(Pointer, Pointer, u64) -> isize;

impl Object {
    /// Returns a function of the object; `None` if the loaded version of the library has no such function.
    ///
    /// # Safety
    /// The object must have the type to which `entry` belongs and must not be closed, and `F` must be the type of the function.
    pub unsafe fn function<F: Copy>(self, Entry(table, entry): Entry) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<Pointer>()) };
        // SAFETY: an open object begins with the fields of its type, which contain the pointer to the table; a table begins with its size.
        unsafe {
            let table = self.0.byte_add(table).cast::<*const u8>().read();
            if table.is_null() || table.cast::<usize>().read() < entry + size_of::<Pointer>() {
                return None;
            }
            let function = table.byte_add(entry).cast::<Pointer>();
            match function.read().is_null() {
                true => None,
                false => Some(function.cast::<F>().read()),
            }
        }
    }
}

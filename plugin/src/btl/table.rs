//! The C tables of transports, generated from `portcullis/transport.h`.

use crate::coll::table::Why;
use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

// generated from mpi-core/include/portcullis/transport.h: tables
/// `PORTCULLIS_TRANSPORT_VERSION` of the header.
pub const TRANSPORT_VERSION: u32 = 1;

/// `PORTCULLIS_TRANSPORT_MINOR` of the header.
pub const TRANSPORT_MINOR: u32 = 1;

/// `PORTCULLIS_TRANSPORT_LAYOUT` of the header.
pub const TRANSPORT_LAYOUT: u32 = 0x8ca8_2722;

/// the message was copied
pub const SENT: c_int = 0;
/// the transport refers to the message until it calls sent
pub const SENDING: c_int = 1;
/// not now, and nothing was taken: the library offers it again after a poll
pub const NO_SPACE: c_int = 2;

/// `PORTCULLIS_MAY_READ` of the header.
pub const MAY_READ: c_int = 0;
/// `PORTCULLIS_MAY_READ_AND_WRITE` of the header.
pub const MAY_READ_AND_WRITE: c_int = 1;

/// the peer's memory to this process's
pub const READ_MEMORY: c_int = 0;
/// this process's memory to the peer's; its end does not show that the data are there
pub const WRITE_MEMORY: c_int = 1;
/// ends when the data of all writes to the peer that have ended are in its memory
pub const FLUSH_MEMORY: c_int = 2;

/// An access to the memory of a peer; without key and memory if it is a flush.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// of this structure
    pub size: usize,
    /// `kind` of the header.
    pub kind: c_int,
    /// `reserved` of the header.
    pub reserved: c_int,
    /// as the peer's transport wrote it in expose; it comes from another process
    pub key: *const c_void,
    /// `key_bytes` of the header.
    pub key_bytes: usize,
    /// from the begin of the exposed memory
    pub offset: u64,
    /// used by this access alone until it has ended
    pub local: *mut c_void,
    /// `bytes` of the header.
    pub bytes: usize,
}

/// A job as one transport sees it: valid from open until free.
#[repr(C)]
#[derive(Debug)]
pub struct Job {
    _private: [u8; 0],
}

/// Where a poll reports what has happened: valid until progress returns.
#[repr(C)]
#[derive(Debug)]
pub struct Events {
    _private: [u8; 0],
}

/// The services of the library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// of this table
    pub size: usize,
    /// PORTCULLIS_TRANSPORT_VERSION
    pub abi_version: u32,
    /// `reserved` of the header.
    pub reserved: u32,
    /// name and version of the library
    pub library: *const c_char,
    /// `rank` of the header.
    pub rank: Option<unsafe extern "C" fn(*mut Job) -> u32>,
    /// `ranks` of the header.
    pub ranks: Option<unsafe extern "C" fn(*mut Job) -> u32>,
    /// The value of one of the transport's own parameters, in the user's words; NULL if it has none of that name.
    pub param: Option<unsafe extern "C" fn(*mut Job, name: *const c_char) -> *const c_char>,
    /// PORTCULLIS_INFO or PORTCULLIS_WARNING
    pub log: Option<unsafe extern "C" fn(*mut Job, level: c_int, line: *const c_char)>,
    /// `now_ns` of the header.
    pub now_ns: Option<unsafe extern "C" fn() -> u64>,
    /// In a poll: a message has arrived, as its sender sent it; the memory is free again when this returns.
    pub arrived: Option<unsafe extern "C" fn(*mut Events, message: *const c_void, bytes: usize)>,
    /// In a poll: the transport no longer refers to a message; why is NULL if it was sent.
    pub sent: Option<unsafe extern "C" fn(*mut Events, message: u64, why: *const c_char)>,
    /// In a poll: a peer cannot be reached any more; once per connection, after its messages.
    pub failed: Option<unsafe extern "C" fn(*mut Events, peer: u32, why: *const c_char)>,
    /// In a poll: an access has ended. Since version 1.1.
    pub ended: Option<unsafe extern "C" fn(*mut Events, access: u64, succeeded: c_int)>,
}

/// A parameter; users call it btl_\<transport>_\<name>. The library adds eager_limit, max_send_size and others by itself.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// `name` of the header.
    pub name: *const c_char,
    /// `default_value` of the header.
    pub default_value: *const c_char,
    /// `help` of the header.
    pub help: *const c_char,
    /// as in portcullis_param
    pub kind: *const c_char,
}

/// A transport. There is one call at a time, though not always from the same thread.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Transport {
    /// of this table
    pub size: usize,
    /// PORTCULLIS_TRANSPORT_VERSION
    pub abi_version: u32,
    /// of several transports that reach a peer the highest is used: sm has 1024, tcp 100
    pub exclusivity: u32,
    /// `name` of the header.
    pub name: *const c_char,
    /// `version` of the header.
    pub version: *const c_char,
    /// `params` of the header.
    pub params: *const Param,
    /// at most 256
    pub param_count: usize,
    /// the default of btl_\<transport>_eager_limit
    pub eager: usize,
    /// the default of btl_\<transport>_max_send_size; messages also have a head of 32 bytes
    pub longest: usize,
    /// polled rarely, then, while other transports deliver messages
    pub poll_is_syscall: c_int,
    /// `reserved` of the header.
    pub reserved: c_int,
    /// Opens it, once per process and job; *self is what the other functions get. FAILED with a reason: this process does not use it.
    pub open: Option<unsafe extern "C-unwind" fn(*const Host, *mut Job, this: *mut *mut c_void, *mut Why) -> c_int>,
    /// Writes the address that peers need; returns its length, which is at most 4000 and the same in each call.
    pub address: Option<unsafe extern "C-unwind" fn(this: *mut c_void, to: *mut c_void, capacity: usize) -> usize>,
    /// Prepares to send to a peer that has published this address.
    pub connect: Option<unsafe extern "C-unwind" fn(this: *mut c_void, peer: u32, address: *const c_void, bytes: usize, *mut Why) -> c_int>,
    /// Ends the connection to a peer; at_once drops what was not sent. What the transport refers to is reported by sent, later.
    pub close: Option<unsafe extern "C-unwind" fn(this: *mut c_void, peer: u32, at_once: c_int)>,
    /// Sends a message; message is its number for sent.
    pub send: Option<unsafe extern "C-unwind" fn(this: *mut c_void, peer: u32, data: *const c_void, bytes: usize, message: u64, *mut Why) -> c_int>,
    /// Polls, and reports what has happened.
    pub progress: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Events)>,
    /// 1 if everything that was sent has arrived or was given up, else 0.
    pub is_quiet: Option<unsafe extern "C-unwind" fn(this: *mut c_void) -> c_int>,
    /// A descriptor that becomes readable at the next event, or -1 if the library must poll again before it sleeps.
    /// *longest_ns is the longest sleep, 0 for any. NULL: the library never sleeps while it waits for a message.
    pub wait_on: Option<unsafe extern "C-unwind" fn(this: *mut c_void, longest_ns: *mut u64) -> c_int>,
    /// The last call.
    pub free: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    /// Memory that peers read and write without this process: all three functions or none. Since version 1.1.
    /// The library uses them for long messages, which the receiver reads in one copy, and for windows.
    /// expose writes the key with which peers access this memory, of at most capacity bytes, and a number for withdraw;
    /// it returns the length of the key, or 0 if it is not possible. The memory stays until withdraw.
    pub expose: Option<unsafe extern "C-unwind" fn(this: *mut c_void, memory: *mut c_void, bytes: usize, rights: c_int, number: *mut u64, key: *mut c_void, capacity: usize) -> usize>,
    /// `withdraw` of the header.
    pub withdraw: Option<unsafe extern "C-unwind" fn(this: *mut c_void, number: u64)>,
    /// Starts an access: SENT if it has ended, SENDING if ended will report its end, NO_SPACE, or FAILED: the library sends messages then.
    pub access: Option<unsafe extern "C-unwind" fn(this: *mut c_void, peer: u32, *const Access, number: u64) -> c_int>,
}

/// A structure by its name in the header: its size, and its members with their offsets.
pub type Layout = (&'static str, usize, &'static [(&'static str, usize)]);

/// The layout of each structure.
pub const LAYOUTS: &[Layout] = &[
    ("portcullis_access", size_of::<Access>(), &[
        ("size", offset_of!(Access, size)),
        ("kind", offset_of!(Access, kind)),
        ("reserved", offset_of!(Access, reserved)),
        ("key", offset_of!(Access, key)),
        ("key_bytes", offset_of!(Access, key_bytes)),
        ("offset", offset_of!(Access, offset)),
        ("local", offset_of!(Access, local)),
        ("bytes", offset_of!(Access, bytes)),
    ]),
    ("portcullis_transport_host", size_of::<Host>(), &[
        ("size", offset_of!(Host, size)),
        ("abi_version", offset_of!(Host, abi_version)),
        ("reserved", offset_of!(Host, reserved)),
        ("library", offset_of!(Host, library)),
        ("rank", offset_of!(Host, rank)),
        ("ranks", offset_of!(Host, ranks)),
        ("param", offset_of!(Host, param)),
        ("log", offset_of!(Host, log)),
        ("now_ns", offset_of!(Host, now_ns)),
        ("arrived", offset_of!(Host, arrived)),
        ("sent", offset_of!(Host, sent)),
        ("failed", offset_of!(Host, failed)),
        ("ended", offset_of!(Host, ended)),
    ]),
    ("portcullis_transport_param", size_of::<Param>(), &[
        ("name", offset_of!(Param, name)),
        ("default_value", offset_of!(Param, default_value)),
        ("help", offset_of!(Param, help)),
        ("type", offset_of!(Param, kind)),
    ]),
    ("portcullis_transport_table", size_of::<Transport>(), &[
        ("size", offset_of!(Transport, size)),
        ("abi_version", offset_of!(Transport, abi_version)),
        ("exclusivity", offset_of!(Transport, exclusivity)),
        ("name", offset_of!(Transport, name)),
        ("version", offset_of!(Transport, version)),
        ("params", offset_of!(Transport, params)),
        ("param_count", offset_of!(Transport, param_count)),
        ("eager", offset_of!(Transport, eager)),
        ("longest", offset_of!(Transport, longest)),
        ("poll_is_syscall", offset_of!(Transport, poll_is_syscall)),
        ("reserved", offset_of!(Transport, reserved)),
        ("open", offset_of!(Transport, open)),
        ("address", offset_of!(Transport, address)),
        ("connect", offset_of!(Transport, connect)),
        ("close", offset_of!(Transport, close)),
        ("send", offset_of!(Transport, send)),
        ("progress", offset_of!(Transport, progress)),
        ("is_quiet", offset_of!(Transport, is_quiet)),
        ("wait_on", offset_of!(Transport, wait_on)),
        ("free", offset_of!(Transport, free)),
        ("expose", offset_of!(Transport, expose)),
        ("withdraw", offset_of!(Transport, withdraw)),
        ("access", offset_of!(Transport, access)),
    ]),
];

/// Each constant by its name in the header.
pub const CONSTANTS: &[(&str, i64)] = &[
    ("PORTCULLIS_TRANSPORT_VERSION", TRANSPORT_VERSION as i64),
    ("PORTCULLIS_TRANSPORT_MINOR", TRANSPORT_MINOR as i64),
    ("PORTCULLIS_TRANSPORT_LAYOUT", TRANSPORT_LAYOUT as i64),
    ("PORTCULLIS_SENT", SENT as i64),
    ("PORTCULLIS_SENDING", SENDING as i64),
    ("PORTCULLIS_NO_SPACE", NO_SPACE as i64),
    ("PORTCULLIS_MAY_READ", MAY_READ as i64),
    ("PORTCULLIS_MAY_READ_AND_WRITE", MAY_READ_AND_WRITE as i64),
    ("PORTCULLIS_READ_MEMORY", READ_MEMORY as i64),
    ("PORTCULLIS_WRITE_MEMORY", WRITE_MEMORY as i64),
    ("PORTCULLIS_FLUSH_MEMORY", FLUSH_MEMORY as i64),
];
// end of the generated text

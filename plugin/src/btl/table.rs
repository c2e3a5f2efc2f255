//! The C tables of transports, generated from `portcullis/transport.h`.

use crate::coll::table::Why;
use std::ffi::{c_char, c_int, c_void};
use std::mem::offset_of;

// generated from mpi-core/include/portcullis/transport.h: tables
/// The version of the interface; the library loads only transports for its own version.
pub const TRANSPORT_VERSION: u32 = 1;

/// The minor version, which increases if slots are added to a table.
pub const TRANSPORT_MINOR: u32 = 1;

/// A hash over the layout of all tables below; it detects a header that was changed by hand.
pub const TRANSPORT_LAYOUT: u32 = 0x8ca8_2722;

/// The transport has copied the message.
pub const SENT: c_int = 0;
/// The transport reads the message until it calls sent.
pub const SENDING: c_int = 1;
/// No space now, and no byte was copied: the library retries after a poll.
pub const NO_SPACE: c_int = 2;

/// Peers may read the memory.
pub const MAY_READ: c_int = 0;
/// Peers may read and write the memory.
pub const MAY_READ_AND_WRITE: c_int = 1;

/// Copies the peer's memory to this process's memory.
pub const READ_MEMORY: c_int = 0;
/// Copies this process's memory to the peer's. The end of the access does not mean that the data have arrived.
pub const WRITE_MEMORY: c_int = 1;
/// Ends after the data of all ended writes to the peer have reached its memory.
pub const FLUSH_MEMORY: c_int = 2;

/// An access to the memory of a peer. A flush has no key and no local memory.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The size of this structure in bytes.
    pub size: usize,
    /// PORTCULLIS_READ_MEMORY or another constant of the same enum.
    pub kind: c_int,
    /// Reserved for later versions.
    pub reserved: c_int,
    /// The key from the peer's expose. It comes from another process, so check it.
    pub key: *const c_void,
    /// The length of the key in bytes.
    pub key_bytes: usize,
    /// The offset in the exposed memory, in bytes.
    pub offset: u64,
    /// The memory of this process; no other code uses it until the access has ended.
    pub local: *mut c_void,
    /// The number of bytes to copy.
    pub bytes: usize,
}

/// The library's handle of a job for one transport; valid from open until free.
#[repr(C)]
#[derive(Debug)]
pub struct Job {
    _private: [u8; 0],
}

/// The handle through which a poll reports events; valid until progress returns.
#[repr(C)]
#[derive(Debug)]
pub struct Events {
    _private: [u8; 0],
}

/// The services of the library for a transport.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Host {
    /// The size of this table in bytes.
    pub size: usize,
    /// The value of PORTCULLIS_TRANSPORT_VERSION.
    pub abi_version: u32,
    /// Reserved for later versions.
    pub reserved: u32,
    /// The name and version of the library.
    pub library: *const c_char,
    /// Returns the rank of this process in the job.
    pub rank: Option<unsafe extern "C" fn(*mut Job) -> u32>,
    /// Returns the number of ranks of the job.
    pub ranks: Option<unsafe extern "C" fn(*mut Job) -> u32>,
    /// Returns the value of a parameter of the transport as text; NULL for an unknown name.
    pub param: Option<unsafe extern "C" fn(*mut Job, name: *const c_char) -> *const c_char>,
    /// Prints a line; level is PORTCULLIS_INFO or PORTCULLIS_WARNING.
    pub log: Option<unsafe extern "C" fn(*mut Job, level: c_int, line: *const c_char)>,
    /// Returns the time of a monotonic clock, in ns.
    pub now_ns: Option<unsafe extern "C" fn() -> u64>,
    /// In a poll: reports a complete message. The library does not use the memory after the return.
    pub arrived: Option<unsafe extern "C" fn(*mut Events, message: *const c_void, bytes: usize)>,
    /// In a poll: reports that the transport has released a message; why is NULL if it was sent.
    pub sent: Option<unsafe extern "C" fn(*mut Events, message: u64, why: *const c_char)>,
    /// In a poll: reports an unreachable peer, once per connection, after all of its messages.
    pub failed: Option<unsafe extern "C" fn(*mut Events, peer: u32, why: *const c_char)>,
    /// In a poll: reports that an access has ended. Since version 1.1.
    pub ended: Option<unsafe extern "C" fn(*mut Events, access: u64, succeeded: c_int)>,
}

/// A parameter; users call it btl_\<transport>_\<name>. The library adds eager_limit and others.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// The name without the prefix btl_\<transport>_.
    pub name: *const c_char,
    /// The default value as text.
    pub default_value: *const c_char,
    /// The description for users.
    pub help: *const c_char,
    /// The type of the value, as in portcullis_param.
    pub kind: *const c_char,
}

/// A transport. The library makes one call at a time, not always from the same thread.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Transport {
    /// The size of this table in bytes.
    pub size: usize,
    /// The value of PORTCULLIS_TRANSPORT_VERSION.
    pub abi_version: u32,
    /// The priority: for each peer the library uses the highest; sm has 1024, tcp 100.
    pub exclusivity: u32,
    /// The transport name, as in the manifest.
    pub name: *const c_char,
    /// The version, for example "1.2.0".
    pub version: *const c_char,
    /// The parameters of the transport.
    pub params: *const Param,
    /// The number of parameters, at most 256.
    pub param_count: usize,
    /// The default in bytes of btl_\<transport>_eager_limit.
    pub eager: usize,
    /// The default in bytes of btl_\<transport>_max_send_size; messages also have a 32-byte header.
    pub longest: usize,
    /// 1 if a poll costs a system call; the library then polls rarely while other transports deliver messages.
    pub poll_is_syscall: c_int,
    /// Reserved for later versions.
    pub reserved: c_int,
    /// Opens the transport, once per process and job, and sets *self for the other functions.
    /// FAILED with a reason means that this process cannot use the transport.
    pub open: Option<unsafe extern "C-unwind" fn(*const Host, *mut Job, this: *mut *mut c_void, *mut Why) -> c_int>,
    /// Writes the address for peers. Returns its length, at most 4000 and equal in all calls.
    pub address: Option<unsafe extern "C-unwind" fn(this: *mut c_void, to: *mut c_void, capacity: usize) -> usize>,
    /// Prepares to send to the peer with this address.
    pub connect: Option<unsafe extern "C-unwind" fn(this: *mut c_void, peer: u32, address: *const c_void, bytes: usize, *mut Why) -> c_int>,
    /// Closes the connection to a peer; at_once discards unsent data.
    /// Later the transport calls sent for each message that it still holds.
    pub close: Option<unsafe extern "C-unwind" fn(this: *mut c_void, peer: u32, at_once: c_int)>,
    /// Sends data to a peer; message is the number to pass to sent.
    pub send: Option<unsafe extern "C-unwind" fn(this: *mut c_void, peer: u32, data: *const c_void, bytes: usize, message: u64, *mut Why) -> c_int>,
    /// Polls once and reports all events.
    pub progress: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Events)>,
    /// Returns 1 if every sent message has arrived or was abandoned, else 0.
    pub is_quiet: Option<unsafe extern "C-unwind" fn(this: *mut c_void) -> c_int>,
    /// Returns a descriptor that becomes readable at the next event; -1 means: poll without a sleep.
    /// *longest_ns is the maximum sleep, 0: no limit. If this slot is NULL, waits never sleep.
    pub wait_on: Option<unsafe extern "C-unwind" fn(this: *mut c_void, longest_ns: *mut u64) -> c_int>,
    /// Frees the transport; no other function of the transport is called afterwards.
    pub free: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    /// Exposes memory that peers access without this process, for long messages and for windows.
    /// expose, withdraw and access are all set, or all NULL. Since version 1.1.
    /// Writes the key for accesses of peers, at most capacity bytes, and a number for withdraw.
    /// Returns the length of the key, or 0 on failure. The memory stays allocated until withdraw.
    pub expose: Option<unsafe extern "C-unwind" fn(this: *mut c_void, memory: *mut c_void, bytes: usize, rights: c_int, number: *mut u64, key: *mut c_void, capacity: usize) -> usize>,
    /// See `expose`.
    pub withdraw: Option<unsafe extern "C-unwind" fn(this: *mut c_void, number: u64)>,
    /// Starts an access. Returns SENT if it has ended, SENDING if the transport will call ended,
    /// NO_SPACE, or FAILED; the library then sends messages instead.
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

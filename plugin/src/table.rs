//! The C tables of transports: those of `portcullis/transport.h`, field by field.
//!
//! The header documents the rules; a test compiles it and compares the layout of every table with these.
//! Every slot is an `Option` or a nullable pointer, so zeroed memory is a valid table without functions, and a table can grow at its end.
#![allow(unsafe_code)]

use crate::manifest::Interface;
use std::ffi::{c_char, c_int, c_void};

/// Incremented only for changes that cannot be made by appending to a table.
pub const VERSION: u32 = 1;

/// The version of this build, with the layout hash of each minor version. A line of a released version is never changed.
pub const INTERFACE: Interface = Interface {
    major: VERSION,
    layouts: &[(0, 0x0543_61d0)],
};

/// The only symbol that a plugin exports, of type [`Entry`].
pub const SYMBOL: &str = "portcullis_transport";

/// The type of the symbol: a function that is called once and returns a table that stays valid for the rest of the process.
pub type Entry = unsafe extern "C-unwind" fn() -> *const Transport;

/// Return code: the function failed, or the peer cannot be reached any more.
pub const FAILED: c_int = -1;
/// Return code: done, or true.
pub const DONE: c_int = 0;
/// Return code of `send`: the transport refers to the message until it reports that it was sent.
pub const PENDING: c_int = 1;
/// Return code of `send`: there is no space now, and nothing was taken.
pub const AGAIN: c_int = 2;

/// Buffer for the reason of a failure.
#[repr(C)]
pub struct Why {
    /// A text that ends with a NUL.
    pub text: [c_char; 512],
}

/// `portcullis_job`: opaque to the plugin.
#[repr(C)]
pub struct Job {
    _private: [u8; 0],
}

/// `portcullis_events`: opaque to the plugin.
#[repr(C)]
pub struct Events {
    _private: [u8; 0],
}

/// `portcullis_transport_host`: the services of the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Host {
    /// The size of this table.
    pub size: usize,
    /// [`VERSION`].
    pub abi_version: u32,
    /// Zero.
    pub reserved: u32,
    /// Name and version of the library.
    pub library: *const c_char,
    /// This process's rank in the job.
    pub rank: Option<unsafe extern "C" fn(*mut Job) -> u32>,
    /// The number of processes of the job.
    pub ranks: Option<unsafe extern "C" fn(*mut Job) -> u32>,
    /// The value of one of the transport's parameters.
    pub param: Option<unsafe extern "C" fn(*mut Job, name: *const c_char) -> *const c_char>,
    /// One line for the user.
    pub log: Option<unsafe extern "C" fn(*mut Job, level: c_int, line: *const c_char)>,
    /// A clock.
    pub now_ns: Option<unsafe extern "C" fn() -> u64>,
    /// A message has arrived.
    pub arrived: Option<unsafe extern "C" fn(*mut Events, message: *const c_void, bytes: usize)>,
    /// The transport no longer refers to a message.
    pub sent: Option<unsafe extern "C" fn(*mut Events, message: u64, why: *const c_char)>,
    /// A peer cannot be reached any more.
    pub failed: Option<unsafe extern "C" fn(*mut Events, peer: u32, why: *const c_char)>,
}

/// `portcullis_transport_param`: a parameter.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Param {
    /// Users write `btl_<transport>_<name>`.
    pub name: *const c_char,
    /// In the user's words.
    pub default_value: *const c_char,
    /// For `mpi-info`.
    pub help: *const c_char,
    /// Its type's name; null is `string`.
    pub kind: *const c_char,
}

/// `portcullis_transport_table`: a transport.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Transport {
    /// The size of this table.
    pub size: usize,
    /// [`VERSION`].
    pub abi_version: u32,
    /// Of several transports that reach a peer the highest is used.
    pub exclusivity: u32,
    /// As in the file's name.
    pub name: *const c_char,
    /// As in the manifest.
    pub version: *const c_char,
    /// The parameters.
    pub params: *const Param,
    /// Their number.
    pub param_count: usize,
    /// The default of the longest message without a rendezvous.
    pub eager: usize,
    /// The default of the longest message.
    pub longest: usize,
    /// True if a poll is a system call.
    pub poll_is_syscall: c_int,
    /// Zero.
    pub reserved: c_int,
    /// Opens it and returns its state.
    pub open: Option<
        unsafe extern "C-unwind" fn(
            *const Host,
            *mut Job,
            this: *mut *mut c_void,
            *mut Why,
        ) -> c_int,
    >,
    /// Writes the address; returns its length.
    pub address: Option<
        unsafe extern "C-unwind" fn(this: *mut c_void, to: *mut c_void, capacity: usize) -> usize,
    >,
    /// Connects to a peer.
    pub connect: Option<
        unsafe extern "C-unwind" fn(
            this: *mut c_void,
            peer: u32,
            address: *const c_void,
            bytes: usize,
            *mut Why,
        ) -> c_int,
    >,
    /// Ends a connection.
    pub close: Option<unsafe extern "C-unwind" fn(this: *mut c_void, peer: u32, at_once: c_int)>,
    /// Sends a message.
    pub send: Option<
        unsafe extern "C-unwind" fn(
            this: *mut c_void,
            peer: u32,
            data: *const c_void,
            bytes: usize,
            message: u64,
            *mut Why,
        ) -> c_int,
    >,
    /// Polls.
    pub progress: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Events)>,
    /// True if nothing is left to be handed over.
    pub is_quiet: Option<unsafe extern "C-unwind" fn(this: *mut c_void) -> c_int>,
    /// A descriptor, and the longest sleep.
    pub wait_on:
        Option<unsafe extern "C-unwind" fn(this: *mut c_void, longest_ns: *mut u64) -> c_int>,
    /// The last call.
    pub free: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
}

// SAFETY: the pointers in a `Host` are to functions and to constants, which no code writes.
unsafe impl Sync for Host {}
// SAFETY: the pointers in a `Param` are to constant texts, which no code writes.
unsafe impl Sync for Param {}
// SAFETY: the pointers in a `Transport` are to functions and to constants, which no code writes.
unsafe impl Sync for Transport {}

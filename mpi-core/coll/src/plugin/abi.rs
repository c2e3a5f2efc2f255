//! The plugin ABI in Rust: the tables of `include/portcullis/plugin.h`, field by field.
//!
//! The header documents the rules; a test compiles it and compares the layout of every table with these.
//! Every slot is an `Option` or a nullable pointer, so zeroed memory is a valid table without functions.
//! That allows a table to grow at its end.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

/// Incremented only for changes that cannot be made by appending to a table.
pub const ABI_VERSION: u32 = 1;

/// The only symbol that a plugin exports, of type [`Entry`].
pub const SYMBOL: &str = "portcullis_component";

/// The type of the symbol: a function that is called once and returns a table that stays valid for the rest of the process.
pub type Entry = unsafe extern "C" fn() -> *const ComponentTable;

/// Return code: the function failed.
pub const FAILED: c_int = -1;
/// Return code: done, or true.
pub const DONE: c_int = 0;
/// Return code: in progress; the host tests again after some progress.
pub const PENDING: c_int = 1;
/// Return code: the component passes this call to the next lower one; all members of a communicator return the same.
pub const NEXT: c_int = 2;

/// Log level: informational.
pub const INFO: c_int = 0;
/// Log level: shown to the user whether or not explanations are enabled.
pub const WARNING: c_int = 1;

/// Buffer for the reason of a failure.
#[repr(C)]
pub struct Why {
    pub text: [c_char; 512],
}

/// `portcullis_comm`: opaque to the plugin.
#[repr(C)]
pub struct Comm {
    _private: [u8; 0],
}

/// `portcullis_call`: opaque to the plugin.
#[repr(C)]
pub struct Call {
    _private: [u8; 0],
}

/// A wait's predicate: returns 0 for not yet. May be called very often, from the waiting thread only.
pub type Ready = unsafe extern "C" fn(argument: *mut c_void) -> c_int;

/// `portcullis_host`: the services of the library.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Host {
    pub size: usize,
    pub abi_version: u32,
    pub reserved: u32,
    pub library: *const c_char,
    pub comm_rank: Option<unsafe extern "C" fn(*mut Comm) -> u32>,
    pub comm_size: Option<unsafe extern "C" fn(*mut Comm) -> u32>,
    pub comm_name: Option<unsafe extern "C" fn(*mut Comm) -> *const c_char>,
    pub comm_is_world: Option<unsafe extern "C" fn(*mut Comm) -> c_int>,
    pub comm_node_ranks:
        Option<unsafe extern "C" fn(*mut Comm, ranks: *mut u32, capacity: u32) -> u32>,
    pub send: Option<
        unsafe extern "C" fn(
            *mut Comm,
            dest: u32,
            data: *const c_void,
            bytes: usize,
            *mut Why,
        ) -> c_int,
    >,
    pub recv: Option<
        unsafe extern "C" fn(
            *mut Comm,
            source: u32,
            data: *mut c_void,
            bytes: usize,
            *mut Why,
        ) -> c_int,
    >,
    pub fence: Option<unsafe extern "C" fn(*mut Comm, *mut Why) -> c_int>,
    pub start_send: Option<
        unsafe extern "C" fn(
            *mut Comm,
            dest: u32,
            data: *const c_void,
            bytes: usize,
            message: *mut u64,
            *mut Why,
        ) -> c_int,
    >,
    pub start_recv: Option<
        unsafe extern "C" fn(
            *mut Comm,
            source: u32,
            bytes: usize,
            message: *mut u64,
            *mut Why,
        ) -> c_int,
    >,
    pub test_message: Option<
        unsafe extern "C" fn(
            *mut Comm,
            message: u64,
            data: *mut c_void,
            bytes: usize,
            *mut Why,
        ) -> c_int,
    >,
    pub progress: Option<unsafe extern "C" fn(*mut Comm) -> c_int>,
    pub wait: Option<
        unsafe extern "C" fn(
            *mut Comm,
            Option<Ready>,
            argument: *mut c_void,
            limit_ns: u64,
            *mut Why,
        ) -> c_int,
    >,
    pub ring: Option<unsafe extern "C" fn(*mut Comm, rank: u32)>,
    pub shared_memory: Option<
        unsafe extern "C" fn(
            *mut Comm,
            bytes: usize,
            align: usize,
            memory: *mut *mut c_void,
            *mut Why,
        ) -> c_int,
    >,
    pub param: Option<unsafe extern "C" fn(*mut Comm, name: *const c_char) -> *const c_char>,
    pub log: Option<unsafe extern "C" fn(*mut Comm, level: c_int, line: *const c_char)>,
    pub now_ns: Option<unsafe extern "C" fn() -> u64>,
    pub call_next: Option<unsafe extern "C" fn(*mut Call, *mut Why) -> c_int>,
    pub component_data: Option<unsafe extern "C" fn(*mut Comm) -> *mut *mut c_void>,
    pub barrier_wire:
        Option<unsafe extern "C" fn(*mut Comm, wire: u32, entered: u64, released: u64)>,
    pub failed_ranks:
        Option<unsafe extern "C" fn(*mut Comm, ranks: *mut u32, capacity: u32) -> u32>,
}

/// `portcullis_module`: a component's functions for one communicator.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ModuleTable {
    pub size: usize,
    pub enable: Option<unsafe extern "C" fn(this: *mut c_void, *mut Why) -> c_int>,
    pub barrier: Option<unsafe extern "C" fn(this: *mut c_void, *mut Call, *mut Why) -> c_int>,
    pub barrier_start:
        Option<unsafe extern "C" fn(this: *mut c_void, ticket: *mut u64, *mut Why) -> c_int>,
    pub barrier_test:
        Option<unsafe extern "C" fn(this: *mut c_void, ticket: u64, *mut Why) -> c_int>,
    pub disable: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub free: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub attend: Option<unsafe extern "C" fn(this: *mut c_void)>,
    pub eureka_begin: Option<unsafe extern "C" fn(this: *mut c_void, *mut Why) -> c_int>,
    pub eureka_raise:
        Option<unsafe extern "C" fn(this: *mut c_void, first: *mut c_int, *mut Why) -> c_int>,
    pub eureka_test: Option<unsafe extern "C" fn(this: *mut c_void, *mut Why) -> c_int>,
    pub eureka_end: Option<unsafe extern "C" fn(this: *mut c_void, *mut Why) -> c_int>,
}

/// `portcullis_param`: a parameter of a plugin.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Param {
    pub name: *const c_char,
    pub default_value: *const c_char,
    pub help: *const c_char,
    pub kind: *const c_char,
}

/// `portcullis_component_table`: the description of a plugin.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ComponentTable {
    pub size: usize,
    pub abi_version: u32,
    pub priority: i32,
    pub framework: *const c_char,
    pub name: *const c_char,
    pub version: *const c_char,
    pub params: *const Param,
    pub param_count: usize,
    pub query: Option<
        unsafe extern "C" fn(
            *const Host,
            *mut Comm,
            this: *mut *mut c_void,
            *mut Why,
        ) -> *const ModuleTable,
    >,
    pub asked_by: *const c_char,
}

// SAFETY: the pointers in a `Host` are to functions and to constants, which no code writes.
unsafe impl Sync for Host {}
// SAFETY: the pointers in a `Param` are to constant texts, which no code writes.
unsafe impl Sync for Param {}
// SAFETY: the pointers in a `ComponentTable` are to functions and to constants, which no code writes.
unsafe impl Sync for ComponentTable {}

/// A table that may have been compiled against an older or a newer header.
///
/// # Safety
/// The type must be `repr(C)`, begin with its size as a `usize`, and be valid when all of it is zero.
pub unsafe trait Table: Copy {}

// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: a zeroed `Option` of a function is `None`.
unsafe impl Table for Host {}
// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: a zeroed `Option` of a function is `None`.
unsafe impl Table for ModuleTable {}
// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: a zeroed `Option` of a function is `None`.
unsafe impl Table for ComponentTable {}

/// Copies a table, up to the smaller of its size and ours; missing slots read as absent.
///
/// # Safety
/// `table` must be readable for the number of bytes that its first field gives.
pub unsafe fn read<T: Table>(table: *const T) -> T {
    // SAFETY: every table begins with its size (contract of [`Table`]), and the caller guarantees that it is readable.
    let known = unsafe { table.cast::<usize>().read() }.min(size_of::<T>());
    let mut copy = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both are at least `known` bytes long; a zeroed `T`, and any prefix of a table over it, is a valid `T` (contract of [`Table`]).
    unsafe {
        std::ptr::copy_nonoverlapping(table.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), known);
        copy.assume_init()
    }
}

impl Why {
    /// An empty reason.
    pub fn new() -> Why {
        Why { text: [0; 512] }
    }

    /// The text, or a default if the plugin gave no reason.
    pub fn sentence(&self) -> String {
        let end = self.text.iter().position(|c| *c == 0);
        let bytes = self.text.map(|c| c as u8);
        match String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).trim() {
            "" => "it gives no reason".to_string(),
            text => text.to_string(),
        }
    }

    /// Stores a text, truncated at a character boundary if it is too long.
    pub fn set(&mut self, text: &str) {
        let most = text.len().min(self.text.len() - 1);
        let end = (0..=most)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        self.text.fill(0);
        for (to, from) in self.text.iter_mut().zip(&text.as_bytes()[..end]) {
            *to = *from as c_char;
        }
    }
}

impl Default for Why {
    fn default() -> Why {
        Why::new()
    }
}

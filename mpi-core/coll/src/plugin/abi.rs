//! The plugin ABI as Rust sees it: the same tables as `include/portcullis/plugin.h`, field by field.
//!
//! The header is where the rules are written; a test compiles it and compares the layout of every table with these.
//! Every slot is an `Option` or a pointer that may be null, so zeroed memory is a valid table without abilities,
//! which is what lets a table grow at its end.
#![allow(unsafe_code)]

use std::ffi::{c_char, c_int, c_void};

/// Raised only by what cannot be said by growing a table.
pub const ABI_VERSION: u32 = 1;

/// The one symbol a plugin exports, of type [`Entry`].
pub const SYMBOL: &str = "portcullis_component";

/// What the symbol is: it is called once, and its table has to stay.
pub type Entry = unsafe extern "C" fn() -> *const ComponentTable;

/// How a function ended.
pub const FAILED: c_int = -1;
/// It has been done, or what was asked is so.
pub const DONE: c_int = 0;
/// It is under way: ask again after some progress.
pub const PENDING: c_int = 1;
/// The component does not do it this time, the next one down shall; all members of a communicator answer so together.
pub const NEXT: c_int = 2;

/// How serious a line of log is.
pub const INFO: c_int = 0;
/// For the user, whether explanations are asked for or not.
pub const WARNING: c_int = 1;

/// Where a function that fails writes its reason.
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

/// Whether what a wait is for has come: 0 for not yet. It may be called very often, from the waiting thread alone.
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

/// `portcullis_module`: what a component does for one communicator.
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

/// `portcullis_component_table`: what a plugin is.
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

// SAFETY: the pointers in a table point to constants that no code writes.
unsafe impl Sync for Host {}
// SAFETY: as above.
unsafe impl Sync for Param {}
// SAFETY: as above.
unsafe impl Sync for ComponentTable {}

/// A table that its author may have compiled against an older or a newer header.
///
/// # Safety
/// The type must be `repr(C)`, begin with its size as a `usize`, and be valid when all of it is zero.
pub unsafe trait Table: Copy {}

// SAFETY: as asked; a zeroed `Option` of a function is `None`.
unsafe impl Table for Host {}
// SAFETY: as asked; a zeroed `Option` of a function is `None`.
unsafe impl Table for ModuleTable {}
// SAFETY: as asked; a zeroed `Option` of a function is `None`.
unsafe impl Table for ComponentTable {}

/// Copies as much of a table as its author knew of; slots beyond read as absent.
///
/// # Safety
/// `table` must be readable for as many bytes as the size it begins with says.
pub unsafe fn read<T: Table>(table: *const T) -> T {
    // SAFETY: every table begins with its size, and the caller vouches for so many bytes.
    let known = unsafe { table.cast::<usize>().read() }.min(size_of::<T>());
    let mut copy = std::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: both are at least `known` bytes long, and zeroed is a valid `T`, as is any prefix of a table over it.
    unsafe {
        std::ptr::copy_nonoverlapping(table.cast::<u8>(), copy.as_mut_ptr().cast::<u8>(), known);
        copy.assume_init()
    }
}

impl Why {
    /// No reason yet.
    pub fn new() -> Why {
        Why { text: [0; 512] }
    }

    /// The text, or what stands for a reason that was not given.
    pub fn sentence(&self) -> String {
        let end = self.text.iter().position(|c| *c == 0);
        let bytes = self.text.map(|c| c as u8);
        match String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).trim() {
            "" => "it gives no reason".to_string(),
            text => text.to_string(),
        }
    }

    /// Puts a text in, cut at a character if it is too long.
    pub fn set(&mut self, text: &str) {
        let room = text.len().min(self.text.len() - 1);
        let end = (0..=room)
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

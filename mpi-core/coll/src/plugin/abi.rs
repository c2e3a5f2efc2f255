//! The plugin ABI in Rust: the tables of `include/portcullis/plugin.h`, field by field.
//!
//! The header documents the rules; a test compiles it and compares the layout of every table with these.
//! Every slot is an `Option` or a nullable pointer, so zeroed memory is a valid table without functions.
//! That allows a table to grow at its end.
#![allow(unsafe_code)]

use mpi_base::plugin_file::manifest::Interface;
use std::ffi::{c_char, c_int, c_void};

/// Incremented only for changes that cannot be made by appending to a table.
pub const ABI_VERSION: u32 = 2;

/// The version that this library speaks, with the layout hash of each minor version: a table that grows gets a new line here and in the header.
///
/// A line of a released version is never changed; a test computes the last hash from the tables.
pub const INTERFACE: Interface = Interface {
    major: ABI_VERSION,
    layouts: &[(0, 0x53d3_8df1)],
};

/// The only symbol that a plugin exports, of type [`Entry`].
pub const SYMBOL: &str = "portcullis_component";

/// The type of the symbol: a function that is called once and returns a table that stays valid for the rest of the process.
pub type Entry = unsafe extern "C-unwind" fn() -> *const ComponentTable;

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

/// `portcullis_type`: a datatype, opaque to the plugin.
#[repr(C)]
pub struct Type {
    _private: [u8; 0],
}

/// `portcullis_op`: an operator, opaque to the plugin.
#[repr(C)]
pub struct Op {
    _private: [u8; 0],
}

/// `portcullis_dense_op`: an operator on one predefined type, opaque to the plugin.
#[repr(C)]
pub struct DenseOp {
    _private: [u8; 0],
}

/// `portcullis_buffer`: elements in memory. It stands in arrays, so it never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    pub address: *mut c_void,
    pub count: i64,
    pub datatype: *const Type,
}

/// `portcullis_type_info`: what a plugin may know of a datatype; all lengths in bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct TypeInfo {
    pub size: usize,
    pub bytes: i64,
    pub lb: i64,
    pub extent: i64,
    pub true_lb: i64,
    pub true_extent: i64,
    pub handle: usize,
}

/// `portcullis_op_info`: what a plugin may know of an operator.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct OpInfo {
    pub size: usize,
    pub handle: usize,
    pub commutes: c_int,
}

/// `portcullis_topology`: where this process runs.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Topology {
    pub size: usize,
    pub host: *const c_char,
    pub cores: u32,
    pub ranks_here: u32,
}

/// The root of an operation without one.
pub const NO_RANK: u32 = u32::MAX;

/// `portcullis_args`: the arguments of one call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Args {
    pub size: usize,
    pub operation: u32,
    pub root: u32,
    pub op: *const Op,
    pub send: *const Buffer,
    pub recv: *const Buffer,
    pub send_count: u32,
    pub recv_count: u32,
    pub counts: *const i64,
    pub sources: *const u32,
    pub destinations: *const u32,
    pub bytes: u64,
    pub plan: *mut *mut c_void,
    pub source_count: u32,
    pub destination_count: u32,
    pub arrivals: *const u32,
    pub arrival_count: u32,
}

/// Flag of an operation: only calls with a predefined operator.
pub const PREDEFINED: u32 = 1;
/// Flag of an operation: only calls with a commutative operator.
pub const COMMUTATIVE: u32 = 2;

/// Carries out a call, blocking.
pub type Run =
    unsafe extern "C-unwind" fn(this: *mut c_void, *const Args, *mut Call, *mut Why) -> c_int;
/// Starts a call.
pub type Start = unsafe extern "C-unwind" fn(
    this: *mut c_void,
    *const Args,
    *mut Call,
    ticket: *mut u64,
    *mut Why,
) -> c_int;
/// Tests a started call.
pub type Test = unsafe extern "C-unwind" fn(this: *mut c_void, ticket: u64, *mut Why) -> c_int;
/// Forgets what a persistent call has kept.
pub type Forget = unsafe extern "C-unwind" fn(this: *mut c_void, plan: *mut c_void);
/// Carries out a call on contiguous data of a predefined type, blocking.
pub type Dense = unsafe extern "C-unwind" fn(
    this: *mut c_void,
    send: *const c_void,
    recv: *mut c_void,
    bytes: usize,
    root: u32,
    *const DenseOp,
) -> c_int;

/// `portcullis_operation`: a module's functions for one operation.
///
/// It stands in an array whose stride is in the module's table, so it may grow.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Operation {
    pub operation: u32,
    pub flags: u32,
    pub limit: u64,
    pub run: Option<Run>,
    pub start: Option<Start>,
    pub test: Option<Test>,
    pub forget: Option<Forget>,
    pub dense: Option<Dense>,
}

/// A wait's predicate: returns 0 for not yet. May be called very often, from the waiting thread only.
pub type Ready = unsafe extern "C-unwind" fn(argument: *mut c_void) -> c_int;

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
    pub fail: Option<unsafe extern "C" fn(*mut Comm, reason: *const c_char) -> c_int>,
    pub topology: Option<unsafe extern "C" fn(*mut Comm, *mut Topology)>,
    pub named_type: Option<unsafe extern "C" fn(*mut Comm, handle: usize) -> *const Type>,
    pub type_info: Option<unsafe extern "C" fn(*const Type, *mut TypeInfo)>,
    pub op_info: Option<unsafe extern "C" fn(*const Op, *mut OpInfo)>,
    pub pack: Option<
        unsafe extern "C" fn(*const Buffer, at: i64, to: *mut c_void, bytes: usize) -> usize,
    >,
    pub unpack: Option<
        unsafe extern "C" fn(*const Buffer, at: i64, from: *const c_void, bytes: usize) -> usize,
    >,
    pub copy: Option<unsafe extern "C" fn(from: *const Buffer, to: *const Buffer) -> i64>,
    pub reduce: Option<
        unsafe extern "C" fn(
            *const Op,
            input: *const Buffer,
            inout: *const Buffer,
            *mut Why,
        ) -> c_int,
    >,
    pub combine: Option<
        unsafe extern "C" fn(
            *const DenseOp,
            input: *const c_void,
            inout: *mut c_void,
            bytes: usize,
        ),
    >,
    pub temporary: Option<
        unsafe extern "C" fn(*mut Call, *const Type, count: i64, *mut Buffer, *mut Why) -> c_int,
    >,
    pub call_send: Option<
        unsafe extern "C" fn(
            *mut Call,
            dest: u32,
            *const Buffer,
            message: *mut u64,
            *mut Why,
        ) -> c_int,
    >,
    pub call_recv: Option<
        unsafe extern "C" fn(
            *mut Call,
            source: u32,
            *const Buffer,
            message: *mut u64,
            *mut Why,
        ) -> c_int,
    >,
    pub call_test: Option<unsafe extern "C" fn(*mut Call, message: u64, *mut Why) -> c_int>,
    pub call_wait: Option<
        unsafe extern "C" fn(*mut Call, messages: *const u64, count: usize, *mut Why) -> c_int,
    >,
}

/// `portcullis_module`: a component's functions for one communicator.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ModuleTable {
    pub size: usize,
    pub enable: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    pub barrier:
        Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Call, *mut Why) -> c_int>,
    pub barrier_start:
        Option<unsafe extern "C-unwind" fn(this: *mut c_void, ticket: *mut u64, *mut Why) -> c_int>,
    pub barrier_test:
        Option<unsafe extern "C-unwind" fn(this: *mut c_void, ticket: u64, *mut Why) -> c_int>,
    pub disable: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    pub free: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    pub attend: Option<unsafe extern "C-unwind" fn(this: *mut c_void)>,
    pub eureka_begin: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    pub eureka_raise: Option<
        unsafe extern "C-unwind" fn(this: *mut c_void, first: *mut c_int, *mut Why) -> c_int,
    >,
    pub eureka_test: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    pub eureka_end: Option<unsafe extern "C-unwind" fn(this: *mut c_void, *mut Why) -> c_int>,
    pub operations: *const Operation,
    pub operation_count: u32,
    pub operation_size: u32,
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
        unsafe extern "C-unwind" fn(
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
// SAFETY: the pointers in a `ModuleTable` are to functions and to constants, which no code writes.
unsafe impl Sync for ModuleTable {}
// SAFETY: the pointers in an `Operation` are to functions.
unsafe impl Sync for Operation {}
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
// SAFETY: `repr(C)`, `size` comes first, and all fields are numbers.
unsafe impl Table for TypeInfo {}
// SAFETY: `repr(C)`, `size` comes first, and all fields are numbers.
unsafe impl Table for OpInfo {}
// SAFETY: `repr(C)`, `size` comes first, and zero is valid in every field: a null pointer, and numbers.
unsafe impl Table for Topology {}

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

/// Fills in a table that the other side has allocated, up to the smaller of its size and ours, and keeps its size.
///
/// # Safety
/// `to` is null, or writable for the number of bytes that its first field gives.
pub unsafe fn fill_in<T: Table>(to: *mut T, from: &T) {
    if to.is_null() {
        return;
    }
    // SAFETY: not null, and every table begins with its size (contract of [`Table`]).
    let size = unsafe { to.cast::<usize>().read() };
    let known = size.min(size_of::<T>());
    // SAFETY: both are at least `known` bytes long, and the caller guarantees that `to` is writable.
    unsafe {
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(from).cast::<u8>(), to.cast(), known);
        to.cast::<usize>().write(size);
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

//! Open MPI 4.1's structures, in the layout of a release build (`opal/mca/mca.h`, `ompi/mca/coll/coll.h`).

use std::ffi::{c_char, c_int, c_void};

/// `opal_class_t`.
#[repr(C)]
pub struct Class {
    name: *const c_char,
    parent: *mut Class,
    construct: *mut c_void,
    destruct: *mut c_void,
    initialized: c_int,
    depth: c_int,
    constructors: *mut c_void,
    destructors: *mut c_void,
    /// Size in bytes of an object of this class.
    pub size: usize,
}

/// `ompi_communicator_t`; this crate does not access its fields.
#[repr(C)]
pub struct Communicator {
    _private: [u8; 0],
}

/// Size in bytes of `mca_coll_base_module_2_3_0_t`.
pub const MODULE_SIZE: usize = 584;

/// Number of function pointers between `enable` and the barrier:
/// allgather, allgatherv, allreduce, alltoall, alltoallv, alltoallw.
const BEFORE: usize = 6;

/// `mca_coll_base_module_2_3_0_t`: an object's header, then function pointers;
/// null means "not served by this component".
#[repr(C)]
pub struct Module {
    pub class: *mut Class,
    pub references: c_int,
    pub enable: Option<unsafe extern "C" fn(*mut Module, *mut Communicator) -> c_int>,
    before: [*mut c_void; BEFORE],
    pub barrier: Option<unsafe extern "C" fn(*mut Communicator, *mut Module) -> c_int>,
    after: [u8; MODULE_SIZE - (4 + BEFORE) * 8],
}

const _: () = assert!(size_of::<Module>() == MODULE_SIZE);
const _: () = assert!(std::mem::offset_of!(Module, barrier) == 72);

/// `mca_coll_base_component_2_0_0_t`: `mca_base_component_2_1_0_t`, its data,
/// and two function pointers of the framework.
#[repr(C)]
pub struct Component {
    pub mca: [c_int; 3],
    pub project: [u8; 16],
    pub project_version: [c_int; 3],
    pub framework: [u8; 32],
    pub framework_version: [c_int; 3],
    pub name: [u8; 64],
    pub version: [c_int; 3],
    pub open: Option<unsafe extern "C" fn() -> c_int>,
    pub close: Option<unsafe extern "C" fn() -> c_int>,
    pub query: Option<unsafe extern "C" fn() -> c_int>,
    pub register: Option<unsafe extern "C" fn() -> c_int>,
    pub flags: i32,
    pub reserved: [u8; 28],
    pub metadata: u32,
    pub reserved_too: [u8; 32],
    pub init_query: Option<unsafe extern "C" fn(bool, bool) -> c_int>,
    pub comm_query: Option<unsafe extern "C" fn(*mut Communicator, *mut c_int) -> *mut Module>,
}

const _: () = assert!(size_of::<Component>() == 280);
const _: () = assert!(std::mem::offset_of!(Component, init_query) == 264);

/// Returns a name as an array of bytes, padded with zeros.
pub const fn text<const N: usize>(name: &str) -> [u8; N] {
    let (mut all, name) = ([0; N], name.as_bytes());
    let mut i = 0;
    while i < name.len() && i + 1 < N {
        all[i] = name[i];
        i += 1;
    }
    all
}

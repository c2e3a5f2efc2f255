//! The component that Open MPI loads, and its module of `MPI_COMM_WORLD`.
#![allow(unsafe_code)]

use crate::layout::{Class, Communicator, Component, MODULE_SIZE, Module, text};
use coll_hwbarr_foreign::barrier::{self, Passed};
use coll_hwbarr_foreign::library::{Library, library};
use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

/// The result codes `OMPI_SUCCESS`, `OMPI_ERROR` and `OMPI_ERR_NOT_AVAILABLE`.
const SUCCESS: c_int = 0;
const ERROR: c_int = -1;
const NOT_AVAILABLE: c_int = -16;

/// The symbol with which Open MPI finds the component.
// SAFETY: Open MPI requires this name for the component hwbarr of the framework coll, and no other symbol has it.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals)]
pub static mca_coll_hwbarr_component: Writable = Writable(UnsafeCell::new(Component {
    mca: [2, 1, 0],
    project: text("ompi"),
    project_version: [4, 1, 0],
    framework: text("coll"),
    framework_version: [2, 0, 0],
    name: text("hwbarr"),
    version: [0, 1, 0],
    open: None,
    close: None,
    query: None,
    register: None,
    flags: 0,
    reserved: [0; 28],
    // Open MPI's flag "checkpoint enabled": the component has no state that a checkpoint must save.
    metadata: 2,
    reserved_too: [0; 32],
    init_query: Some(init_query),
    comm_query: Some(comm_query),
}));

/// A static that Open MPI may write to, as it writes to its own components.
#[repr(transparent)]
pub struct Writable(UnsafeCell<Component>);

// SAFETY: this crate does not read the static; Open MPI accesses it from one thread, in `MPI_Init`.
unsafe impl Sync for Writable {}

/// Returns success if a port is configured and the MPI library has the structures of `layout`.
unsafe extern "C" fn init_query(_: bool, _: bool) -> c_int {
    if !barrier::is_wanted() {
        return NOT_AVAILABLE;
    }
    match suited() {
        Ok(_) => SUCCESS,
        Err(reason) => {
            printable::eprintln!("portcullis: hwbarr: {reason}; barriers stay in software");
            NOT_AVAILABLE
        }
    }
}

fn suited() -> Result<(&'static Library, *mut Class), String> {
    let library = library()?;
    let version = library.version();
    if !version.starts_with("Open MPI v4.1.") {
        return Err(format!(
            "this component is for Open MPI 4.1, and the library of this process says \"{}\"",
            version.split(',').next().unwrap_or_default()
        ));
    }
    let class = library
        .symbol(c"mca_coll_base_module_t_class")?
        .cast::<Class>();
    // SAFETY: `class` points to the library's constant description of its class of modules.
    let size = unsafe { (*class).size };
    if size != MODULE_SIZE {
        return Err(format!(
            "modules of this build of Open MPI have {size} bytes, and {MODULE_SIZE} are expected of 4.1 (a debug build?)"
        ));
    }
    Ok((library, class))
}

/// Returns a module for `MPI_COMM_WORLD`, otherwise null. The result is the same at every member,
/// because all members have the same parameters.
unsafe extern "C" fn comm_query(comm: *mut Communicator, priority: *mut c_int) -> *mut Module {
    match suited() {
        Ok((library, class)) if comm.addr() == library.constants.comm_world => {
            // SAFETY: Open MPI passes a writable priority, and `init_query` has checked the library's class.
            unsafe {
                priority.write(barrier::priority());
                module(library, class)
            }
        }
        _ => {
            // SAFETY: Open MPI passes a writable priority.
            unsafe { priority.write(-1) };
            null_mut()
        }
    }
}

/// Creates a module like Open MPI's `OBJ_NEW`; Open MPI frees it when its reference count is 0.
///
/// # Safety
/// `class` is the class of modules in the library.
unsafe fn module(library: &Library, class: *mut Class) -> *mut Module {
    let Ok(initialize) = library.symbol(c"opal_class_initialize") else {
        return null_mut();
    };
    // SAFETY: Open MPI declares this signature.
    // It must run before the first object of a class is created; later calls have no effect.
    unsafe {
        let initialize: unsafe extern "C" fn(*mut Class) =
            std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut Class)>(initialize);
        initialize(class);
    }
    // SAFETY: the size is nonzero, and zeroed memory is a module without functions.
    let module = unsafe { libc::calloc(1, MODULE_SIZE) }.cast::<Module>();
    // SAFETY: the pointer is null, or points to a module of the right size to which no other
    // pointer exists.
    if let Some(module) = unsafe { module.as_mut() } {
        module.class = class;
        module.references = 1;
        module.enable = Some(enable);
        module.barrier = Some(barrier);
    }
    module
}

/// Does nothing: the first barrier sets up the hardware.
unsafe extern "C" fn enable(_: *mut Module, _: *mut Communicator) -> c_int {
    SUCCESS
}

unsafe extern "C" fn barrier(_: *mut Communicator, _: *mut Module) -> c_int {
    let passed = library().map_err(str::to_owned).and_then(barrier::pass);
    let software = match passed {
        Ok(Passed::Here) => return SUCCESS,
        Ok(Passed::Software) => barrier::software(),
        Err(reason) => Some(Err(reason)),
    };
    match software {
        Some(Ok(())) => SUCCESS,
        Some(Err(reason)) => {
            printable::eprintln!("portcullis: hwbarr: {reason}");
            ERROR
        }
        None => ERROR,
    }
}

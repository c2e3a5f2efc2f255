//! The C tables of a component, created at compile time, and their functions.
//!
//! Lifetime of a module: `query` boxes it, each call gets its pointer, `free` drops it.
#![allow(unsafe_code)]

use super::abi::{
    self, Args, ComponentTable, DONE, Host, ModuleTable, NEXT, Operation, PENDING, Why,
};
use super::caught::{answer, panic_text};
use super::{Begun, Call, Comm, Guest, InProgress, Module, Served, Started};
use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

/// The C table of a component, created at compile time.
#[derive(Clone, Copy)]
pub struct BuiltIn(&'static ComponentTable);

impl BuiltIn {
    /// Creates the table of a component at compile time, to be stored in a `static`.
    pub const fn of<G: Guest>() -> BuiltIn {
        BuiltIn(Tables::<G>::COMPONENT)
    }

    /// Returns the address of the table, which a plugin's exported function returns.
    pub const fn as_ptr(&self) -> *const ComponentTable {
        self.0
    }
}

struct Tables<G>(PhantomData<G>);

impl<G: Guest> Tables<G> {
    const COMPONENT: &'static ComponentTable = &ComponentTable {
        size: size_of::<ComponentTable>(),
        abi_version: abi::ABI_VERSION,
        priority: G::PRIORITY,
        framework: c"coll".as_ptr(),
        name: G::NAME.as_ptr(),
        version: G::VERSION.as_ptr(),
        params: G::PARAMS.as_ptr(),
        param_count: G::PARAMS.len(),
        query: Some(query::<G>),
        asked_by: match G::ASKED_BY {
            Some(param) => param.as_ptr(),
            None => std::ptr::null(),
        },
    };

    const MODULE: &'static ModuleTable = &ModuleTable {
        size: size_of::<ModuleTable>(),
        enable: Some(enable::<G::Module>),
        barrier: match <G::Module>::BARRIER {
            true => Some(barrier::<G::Module>),
            false => None,
        },
        barrier_start: match <G::Module>::BARRIER {
            true => Some(barrier_start::<G::Module>),
            false => None,
        },
        barrier_test: match <G::Module>::BARRIER {
            true => Some(barrier_test::<G::Module>),
            false => None,
        },
        disable: Some(disable::<G::Module>),
        free: Some(free::<G::Module>),
        attend: Some(attend::<G::Module>),
        eureka_begin: Some(eureka_begin::<G::Module>),
        eureka_raise: Some(eureka_raise::<G::Module>),
        eureka_test: Some(eureka_test::<G::Module>),
        eureka_end: Some(eureka_end::<G::Module>),
        operations: <G::Module>::OPERATIONS.as_ptr(),
        operation_count: <G::Module>::OPERATIONS.len() as u32,
        operation_size: size_of::<Operation>() as u32,
    };
}

/// Creates the entry of an operation, such as [`abi::BCAST`], for [`Module::run`].
pub const fn operation<M: Module>(operation: u32) -> Operation {
    Operation {
        operation,
        flags: 0,
        limit: 0,
        run: Some(run::<M>),
        start: None,
        test: None,
        forget: None,
        dense: None,
    }
}

/// Creates the entry of an operation for [`Module::begin`]; blocking calls use `begin` too.
pub const fn nonblocking<M: Module>(operation: u32) -> Operation {
    Operation {
        operation,
        flags: 0,
        limit: 0,
        run: None,
        start: Some(start::<M>),
        test: Some(test),
        forget: None,
        dense: None,
    }
}

/// A module and its communicator handle; the C function `free` invalidates the handle.
struct Instance<M> {
    module: M,
    comm: Comm,
}

unsafe extern "C-unwind" fn query<G: Guest>(
    host: *const Host,
    comm: *mut abi::Comm,
    this: *mut *mut c_void,
    why: *mut Why,
) -> *const ModuleTable {
    let ask = || {
        // SAFETY: the library passes its table, which starts with its size.
        let host = unsafe { abi::read(host) };
        if host.abi_version != abi::ABI_VERSION {
            return Err(format!(
                "it speaks version {} of the plugin ABI and the library version {}",
                abi::ABI_VERSION,
                host.abi_version
            ));
        }
        let comm = Comm::new(host, comm);
        let module = match catch_unwind(AssertUnwindSafe(|| G::query(comm.clone()))) {
            Ok(Ok(module)) => module,
            Ok(Err(reason)) => {
                comm.close();
                return Err(reason);
            }
            Err(panic) => {
                comm.close();
                return Err(panic_text(&*panic));
            }
        };
        let instance = Box::into_raw(Box::new(Instance { module, comm }));
        // SAFETY: the library passes a writable `this`.
        unsafe { this.write(instance.cast()) };
        Ok(DONE)
    };
    // SAFETY: the library passes a writable `why`.
    match unsafe { answer(why, ask) } {
        DONE => Tables::<G>::MODULE,
        _ => std::ptr::null(),
    }
}

/// Returns the module of the pointer that the library passes as `this`.
///
/// # Safety
/// `this` came from `query` of the same component, and `free` has not been called with it.
unsafe fn module<'a, M: Module>(this: *mut c_void) -> &'a M {
    // SAFETY: `query` created the pointer from a box of this type; it was not freed (contract).
    unsafe { &(*this.cast::<Instance<M>>()).module }
}

unsafe extern "C-unwind" fn enable<M: Module>(this: *mut c_void, why: *mut Why) -> c_int {
    // SAFETY: `this` came from `query` and was not freed; the library passes a writable `why`.
    unsafe { answer(why, || module::<M>(this).enable().map(|()| DONE)) }
}

unsafe extern "C-unwind" fn run<M: Module>(
    this: *mut c_void,
    args: *const Args,
    call: *mut abi::Call,
    why: *mut Why,
) -> c_int {
    let run = || {
        // SAFETY: `query` created the pointer from a box of this type;
        // the library has not called `free`.
        let Instance { module, comm } = unsafe { &*this.cast::<Instance<M>>() };
        // SAFETY: the library passes arguments that are valid until this function returns.
        let call = unsafe { Call::of(comm.host(), comm.size(), args, call) };
        module.run(&call).map(code)
    };
    // SAFETY: the library passes a writable `why`.
    unsafe { answer(why, run) }
}

/// An operation in progress. The library stores the address of this box as the ticket.
type Kept = Box<dyn InProgress>;

unsafe extern "C-unwind" fn start<M: Module>(
    this: *mut c_void,
    args: *const Args,
    call: *mut abi::Call,
    ticket: *mut u64,
    why: *mut Why,
) -> c_int {
    let start = || {
        // SAFETY: `query` created the pointer from a box; `free` is called after the last test.
        let Instance { module, comm } = unsafe { &*this.cast::<Instance<M>>() };
        // SAFETY: the arguments are valid until the call ends, and the operation ends before.
        let call = unsafe { Call::of(comm.host(), comm.size(), args, call) };
        match module.begin(call)? {
            Begun::Next => Ok(NEXT),
            Begun::Here(begun) => {
                let kept: Box<Kept> = Box::new(begun);
                // SAFETY: the library passes a writable `ticket`.
                unsafe { ticket.write(Box::into_raw(kept).expose_provenance() as u64) };
                Ok(PENDING)
            }
        }
    };
    // SAFETY: the library passes a writable `why`.
    unsafe { answer(why, start) }
}

unsafe extern "C-unwind" fn test(_: *mut c_void, ticket: u64, why: *mut Why) -> c_int {
    let kept = std::ptr::with_exposed_provenance_mut::<Kept>(ticket as usize);
    // SAFETY: `start` created the ticket from a box, which lives until a test returns a code other
    // than PENDING. The library passes a writable `why`.
    let code = unsafe {
        answer(why, || {
            let tested = (*kept).test()?;
            Ok(if tested.is_ready() { DONE } else { PENDING })
        })
    };
    if code != PENDING {
        // SAFETY: `start` created the ticket from a box. After this code the library does not
        // pass the ticket again.
        let kept = unsafe { Box::from_raw(kept) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(kept)));
    }
    code
}

unsafe extern "C-unwind" fn barrier<M: Module>(
    this: *mut c_void,
    _: *mut abi::Call,
    why: *mut Why,
) -> c_int {
    // SAFETY: `this` came from `query` and was not freed; the library passes a writable `why`.
    unsafe { answer(why, || module::<M>(this).barrier().map(code)) }
}

unsafe extern "C-unwind" fn barrier_start<M: Module>(
    this: *mut c_void,
    ticket: *mut u64,
    why: *mut Why,
) -> c_int {
    let start = || {
        // SAFETY: `this` came from `query`, and the library has not called `free`.
        Ok(match unsafe { module::<M>(this) }.start()? {
            Started::Next => NEXT,
            Started::Ticket(number) => {
                // SAFETY: the library passes a writable `ticket`.
                unsafe { ticket.write(number) };
                PENDING
            }
        })
    };
    // SAFETY: the library passes a writable `why`.
    unsafe { answer(why, start) }
}

unsafe extern "C-unwind" fn barrier_test<M: Module>(
    this: *mut c_void,
    ticket: u64,
    why: *mut Why,
) -> c_int {
    let test = || {
        // SAFETY: `this` came from `query`, and the library has not called `free`.
        Ok(match unsafe { module::<M>(this) }.test(ticket)? {
            Poll::Pending => PENDING,
            Poll::Ready(served) => code(served),
        })
    };
    // SAFETY: the library passes a writable `why`.
    unsafe { answer(why, test) }
}

unsafe extern "C-unwind" fn attend<M: Module>(this: *mut c_void) {
    // SAFETY: `this` came from `query`, and the library has not called `free`.
    let module = unsafe { module::<M>(this) };
    // This function cannot return an error. A lasting failure is reported by a later call.
    let _ = catch_unwind(AssertUnwindSafe(|| module.attend()));
}

unsafe extern "C-unwind" fn eureka_begin<M: Module>(this: *mut c_void, why: *mut Why) -> c_int {
    // SAFETY: `this` came from `query` and was not freed; the library passes a writable `why`.
    unsafe { answer(why, || module::<M>(this).eureka_begin().map(code)) }
}

unsafe extern "C-unwind" fn eureka_raise<M: Module>(
    this: *mut c_void,
    first: *mut c_int,
    why: *mut Why,
) -> c_int {
    let raise = || {
        // SAFETY: `this` came from `query`, and the library has not called `free`.
        let is_first = unsafe { module::<M>(this) }.eureka_raise()?;
        // SAFETY: the library passes a writable `first`.
        unsafe { first.write(is_first.into()) };
        Ok(DONE)
    };
    // SAFETY: the library passes a writable `why`.
    unsafe { answer(why, raise) }
}

unsafe extern "C-unwind" fn eureka_test<M: Module>(this: *mut c_void, why: *mut Why) -> c_int {
    let test = || {
        // SAFETY: `this` came from `query`, and the library has not called `free`.
        let is_found = unsafe { module::<M>(this) }.eureka_test()?;
        Ok(if is_found { DONE } else { PENDING })
    };
    // SAFETY: the library passes a writable `why`.
    unsafe { answer(why, test) }
}

unsafe extern "C-unwind" fn eureka_end<M: Module>(this: *mut c_void, why: *mut Why) -> c_int {
    // SAFETY: `this` came from `query` and was not freed; the library passes a writable `why`.
    unsafe { answer(why, || module::<M>(this).eureka_end().map(|()| DONE)) }
}

unsafe extern "C-unwind" fn disable<M: Module>(this: *mut c_void) {
    // SAFETY: `this` came from `query`, and the library has not called `free`.
    let module = unsafe { module::<M>(this) };
    // This function cannot return an error, so a panic is dropped.
    let _ = catch_unwind(AssertUnwindSafe(|| module.disable()));
}

unsafe extern "C-unwind" fn free<M: Module>(this: *mut c_void) {
    // SAFETY: `query` created the pointer from a box of this type; `free` is the last call for it.
    let Instance { module, comm } = *unsafe { Box::from_raw(this.cast::<Instance<M>>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(module)));
    comm.close();
}

fn code(served: Served) -> c_int {
    match served {
        Served::Here => DONE,
        Served::Next => NEXT,
    }
}

//! The host table: the services for plugins as C functions, implemented by any type with the trait [`Services`].
//!
//! Each function converts its C arguments, calls [`Services`], and converts the result.
//! If a service panics, it fails with an error text, so the panic does not unwind into C code.
//!
//! Two types implement the services: `ModuleComm` of this library,
//! and one in `coll-hwbarr-foreign`, for
//! processes of other MPI libraries.
#![allow(unsafe_code)]

use super::abi::{self, Call, Comm, DONE, FAILED, Host, PENDING, Why};
pub(super) use portcullis_plugin::coll::caught::{answer, calm};
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::time::Duration;

/// The services that a plugin's module has for one communicator; a `portcullis_comm` pointer points to a value of this type.
///
/// `plugin.h` describes each service. The errors are sentences for the user.
pub trait Services {
    /// Name and version of this MPI library, for the host table's field `library`.
    const LIBRARY: &'static CStr;

    fn rank(&self) -> u32;
    fn size(&self) -> u32;
    fn name(&self) -> &CStr;
    fn is_world(&self) -> bool;
    /// Returns the ranks of the members on this node, ascending.
    fn node_ranks(&self) -> impl ExactSizeIterator<Item = u32>;
    /// Returns the ranks of the members that this process knows to be dead.
    fn failed_ranks(&self) -> Vec<u32>;

    fn send(&self, dest: u32, data: &[u8]) -> Result<(), String>;
    fn recv(&self, source: u32, data: &mut [u8]) -> Result<(), String>;
    fn fence(&self) -> Result<(), String>;
    /// Starts to send a message; returns the message's number, with which it is tested ([`Services::test_message`]).
    fn start_send(&self, dest: u32, data: &[u8]) -> Result<u64, String>;
    fn start_recv(&self, source: u32, bytes: usize) -> Result<u64, String>;
    /// Returns true if a message is complete, and then copies a received message to `data`.
    fn test_message(&self, message: u64, data: &mut [u8]) -> Result<bool, String>;

    /// Makes progress on messages; returns true if any work was done.
    fn progress(&self) -> bool;
    /// Waits until `ready` returns true or `limit` has passed; returns true in the first case.
    fn wait(
        &self,
        limit: Option<Duration>,
        ready: &mut dyn FnMut() -> bool,
    ) -> Result<bool, String>;
    /// Wakes a member on this node if the member sleeps in [`Services::wait`].
    fn ring(&self, rank: u32);
    fn shared_memory(&self, bytes: usize, align: usize) -> Result<*mut c_void, String>;

    fn param(&self, name: &CStr) -> Option<&CStr>;
    fn log(&self, level: c_int, line: &CStr);
    /// Returns the pointer that all modules of the component in this process share.
    fn component_data(&self) -> &Cell<*mut c_void>;
    /// Stores the error text of a plugin function that has no `why` argument.
    fn fail(&self, reason: &CStr);
    /// Reports, for statistics, how many barriers this process has entered on a wire and how many were released.
    fn barrier_wire(&self, wire: u32, entered: u64, released: u64);

    /// Passes a collective call to the next lower component.
    ///
    /// # Safety
    /// `call` is the pointer that the host passed to the plugin's running function.
    unsafe fn call_next(call: *mut Call) -> Result<(), String>;
}

/// Returns the host table for a type `S` of services; the pointer to a communicator is the address of an `S`.
pub const fn table<S: Services>() -> Host {
    Host {
        size: size_of::<Host>(),
        abi_version: abi::ABI_VERSION,
        reserved: 0,
        library: S::LIBRARY.as_ptr(),
        comm_rank: Some(comm_rank::<S>),
        comm_size: Some(comm_size::<S>),
        comm_name: Some(comm_name::<S>),
        comm_is_world: Some(comm_is_world::<S>),
        comm_node_ranks: Some(comm_node_ranks::<S>),
        send: Some(send::<S>),
        recv: Some(recv::<S>),
        fence: Some(fence::<S>),
        start_send: Some(start_send::<S>),
        start_recv: Some(start_recv::<S>),
        test_message: Some(test_message::<S>),
        progress: Some(progress::<S>),
        wait: Some(wait::<S>),
        ring: Some(ring::<S>),
        shared_memory: Some(shared_memory::<S>),
        param: Some(param::<S>),
        log: Some(log::<S>),
        now_ns: Some(now_ns),
        call_next: Some(call_next::<S>),
        component_data: Some(component_data::<S>),
        barrier_wire: Some(barrier_wire::<S>),
        failed_ranks: Some(failed_ranks::<S>),
        fail: Some(fail::<S>),
        // The other services are null in this table. Only this library's own table has them,
        // because other hosts have no datatypes and calls to offer.
        topology: None,
        named_type: None,
        type_info: None,
        op_info: None,
        pack: None,
        unpack: None,
        copy: None,
        reduce: None,
        combine: None,
        temporary: None,
        call_send: None,
        call_recv: None,
        call_test: None,
        call_wait: None,
    }
}

/// Returns the services to which a pointer from a plugin points.
///
/// # Safety
/// `comm` is the pointer that the host passed to `query`, and the module has not been freed; `plugin.h` requires this.
unsafe fn services<'a, S: Services>(comm: *mut Comm) -> &'a S {
    // SAFETY: the host derived the pointer from an `S` that lives until after the module's `free`, and the caller guarantees that the module is not freed.
    unsafe { &*comm.cast::<S>() }
}

unsafe extern "C" fn comm_rank<S: Services>(comm: *mut Comm) -> u32 {
    // SAFETY: the plugin keeps the contract of `services`, see `plugin.h`.
    unsafe { services::<S>(comm) }.rank()
}

unsafe extern "C" fn comm_size<S: Services>(comm: *mut Comm) -> u32 {
    // SAFETY: the plugin keeps the contract of `services`, see `plugin.h`.
    unsafe { services::<S>(comm) }.size()
}

unsafe extern "C" fn comm_name<S: Services>(comm: *mut Comm) -> *const c_char {
    // SAFETY: the plugin keeps the contract of `services`, see `plugin.h`.
    unsafe { services::<S>(comm) }.name().as_ptr()
}

unsafe extern "C" fn comm_is_world<S: Services>(comm: *mut Comm) -> c_int {
    // SAFETY: the plugin keeps the contract of `services`, see `plugin.h`.
    unsafe { services::<S>(comm) }.is_world().into()
}

unsafe extern "C" fn comm_node_ranks<S: Services>(
    comm: *mut Comm,
    ranks: *mut u32,
    capacity: u32,
) -> u32 {
    // SAFETY: the plugin keeps the contract of `services`, and `ranks` is null or writable for `capacity` ranks, see `plugin.h`.
    unsafe { list(services::<S>(comm).node_ranks(), ranks, capacity) }
}

unsafe extern "C" fn failed_ranks<S: Services>(
    comm: *mut Comm,
    ranks: *mut u32,
    capacity: u32,
) -> u32 {
    // SAFETY: the plugin keeps the contract of `services`, and `ranks` is null or writable for `capacity` ranks, see `plugin.h`.
    unsafe {
        list(
            services::<S>(comm).failed_ranks().into_iter(),
            ranks,
            capacity,
        )
    }
}

/// Writes the first `capacity` ranks to a plugin's array; returns the number of all ranks.
///
/// # Safety
/// `to` is null or writable for `capacity` ranks.
unsafe fn list(ranks: impl ExactSizeIterator<Item = u32>, to: *mut u32, capacity: u32) -> u32 {
    let count = ranks.len() as u32;
    if !to.is_null() {
        for (i, rank) in ranks.take(capacity as usize).enumerate() {
            // SAFETY: `i < capacity`, and the caller guarantees that `to` is writable for `capacity` ranks.
            unsafe { to.add(i).write(rank) };
        }
    }
    count
}

unsafe extern "C" fn send<S: Services>(
    comm: *mut Comm,
    dest: u32,
    data: *const c_void,
    bytes: usize,
    why: *mut Why,
) -> c_int {
    // SAFETY: the plugin keeps the contract of `services`, and `data` is readable for `bytes`.
    let (services, data) = unsafe { (services::<S>(comm), bytes_at(data, bytes)) };
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe { answer(why, || services.send(dest, data).map(|()| DONE)) }
}

unsafe extern "C" fn recv<S: Services>(
    comm: *mut Comm,
    source: u32,
    data: *mut c_void,
    bytes: usize,
    why: *mut Why,
) -> c_int {
    // SAFETY: the plugin keeps the contract of `services`; `data` is writable for `bytes` and not used by other code during the call.
    let (services, data) = unsafe { (services::<S>(comm), bytes_at_mut(data, bytes)) };
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe { answer(why, || services.recv(source, data).map(|()| DONE)) }
}

unsafe extern "C" fn fence<S: Services>(comm: *mut Comm, why: *mut Why) -> c_int {
    // SAFETY: the plugin keeps the contract of `services`, and `why` is null or writable.
    unsafe { answer(why, || services::<S>(comm).fence().map(|()| DONE)) }
}

unsafe extern "C" fn start_send<S: Services>(
    comm: *mut Comm,
    dest: u32,
    data: *const c_void,
    bytes: usize,
    message: *mut u64,
    why: *mut Why,
) -> c_int {
    // SAFETY: the plugin keeps the contract of `services`, and `data` is readable for `bytes`.
    let (services, data) = unsafe { (services::<S>(comm), bytes_at(data, bytes)) };
    // SAFETY: the plugin passes `why` and `message`, each null or writable.
    unsafe {
        answer(why, || {
            name_message(message, services.start_send(dest, data)?)
        })
    }
}

unsafe extern "C" fn start_recv<S: Services>(
    comm: *mut Comm,
    source: u32,
    bytes: usize,
    message: *mut u64,
    why: *mut Why,
) -> c_int {
    // SAFETY: the plugin keeps the contract of `services`; `why` and `message` are null or writable.
    unsafe {
        answer(why, || {
            name_message(message, services::<S>(comm).start_recv(source, bytes)?)
        })
    }
}

/// # Safety
/// `place` is null or writable.
unsafe fn name_message(place: *mut u64, message: u64) -> Result<c_int, String> {
    // SAFETY: the caller guarantees that `place` is null or writable.
    match unsafe { place.as_mut() } {
        Some(place) => *place = message,
        None => return Err("a message was started without a place for its number".into()),
    }
    Ok(DONE)
}

unsafe extern "C" fn test_message<S: Services>(
    comm: *mut Comm,
    message: u64,
    data: *mut c_void,
    bytes: usize,
    why: *mut Why,
) -> c_int {
    // SAFETY: the plugin keeps the contract of `services`; `data` is writable for `bytes` and not used by other code during the call.
    let (services, data) = unsafe { (services::<S>(comm), bytes_at_mut(data, bytes)) };
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe {
        answer(why, || {
            Ok(if services.test_message(message, data)? {
                DONE
            } else {
                PENDING
            })
        })
    }
}

unsafe extern "C" fn progress<S: Services>(comm: *mut Comm) -> c_int {
    // SAFETY: the plugin keeps the contract of `services`, see `plugin.h`.
    let services = unsafe { services::<S>(comm) };
    calm(0, || services.progress().into())
}

unsafe extern "C" fn wait<S: Services>(
    comm: *mut Comm,
    ready: Option<abi::Ready>,
    argument: *mut c_void,
    limit_ns: u64,
    why: *mut Why,
) -> c_int {
    let wait = || {
        let ready = ready.ok_or("the service wait was called without a function to ask")?;
        let limit = (limit_ns != 0).then(|| Duration::from_nanos(limit_ns));
        // SAFETY: the plugin keeps the contract of `services`, and `ready` accepts `argument`: the plugin passes both.
        let came = unsafe { services::<S>(comm).wait(limit, &mut || ready(argument) != 0) }?;
        Ok(if came { DONE } else { PENDING })
    };
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe { answer(why, wait) }
}

unsafe extern "C" fn ring<S: Services>(comm: *mut Comm, rank: u32) {
    // SAFETY: the plugin keeps the contract of `services`, see `plugin.h`.
    let services = unsafe { services::<S>(comm) };
    calm((), || services.ring(rank));
}

unsafe extern "C" fn shared_memory<S: Services>(
    comm: *mut Comm,
    bytes: usize,
    align: usize,
    memory: *mut *mut c_void,
    why: *mut Why,
) -> c_int {
    let take = || {
        // SAFETY: `memory` is null or writable, see `plugin.h`.
        let memory = unsafe { memory.as_mut() }
            .ok_or("the service shared_memory was called without a place for the address")?;
        // SAFETY: the plugin keeps the contract of `services`, see `plugin.h`.
        *memory = unsafe { services::<S>(comm) }.shared_memory(bytes, align)?;
        Ok(DONE)
    };
    // SAFETY: `why` is null or writable, see `plugin.h`.
    unsafe { answer(why, take) }
}

unsafe extern "C" fn param<S: Services>(comm: *mut Comm, name: *const c_char) -> *const c_char {
    if name.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the plugin keeps the contract of `services`; `name` is not null, and the plugin passes a NUL-terminated string.
    let (services, name) = unsafe { (services::<S>(comm), CStr::from_ptr(name)) };
    calm(std::ptr::null(), || {
        services.param(name).map_or(std::ptr::null(), CStr::as_ptr)
    })
}

unsafe extern "C" fn log<S: Services>(comm: *mut Comm, level: c_int, line: *const c_char) {
    if line.is_null() {
        return;
    }
    // SAFETY: the plugin keeps the contract of `services`; `line` is not null, and the plugin passes a NUL-terminated string.
    let (services, line) = unsafe { (services::<S>(comm), CStr::from_ptr(line)) };
    calm((), || services.log(level, line));
}

unsafe extern "C" fn fail<S: Services>(comm: *mut Comm, reason: *const c_char) -> c_int {
    if !reason.is_null() {
        // SAFETY: the plugin keeps the contract of `services`; `reason` is not null, and the plugin passes a NUL-terminated string.
        let (services, reason) = unsafe { (services::<S>(comm), CStr::from_ptr(reason)) };
        calm((), || services.fail(reason));
    }
    FAILED
}

unsafe extern "C" fn now_ns() -> u64 {
    mpi_base::clock::now_ns()
}

unsafe extern "C" fn call_next<S: Services>(call: *mut Call, why: *mut Why) -> c_int {
    // SAFETY: the plugin passes the `call` of its running function, and `why`, null or writable.
    unsafe { answer(why, || S::call_next(call).map(|()| DONE)) }
}

unsafe extern "C" fn component_data<S: Services>(comm: *mut Comm) -> *mut *mut c_void {
    // SAFETY: the plugin keeps the contract of `services`, see `plugin.h`.
    unsafe { services::<S>(comm) }.component_data().as_ptr()
}

unsafe extern "C" fn barrier_wire<S: Services>(
    comm: *mut Comm,
    wire: u32,
    entered: u64,
    released: u64,
) {
    // SAFETY: the plugin keeps the contract of `services`, see `plugin.h`.
    let services = unsafe { services::<S>(comm) };
    calm((), || services.barrier_wire(wire, entered, released));
}

/// # Safety
/// `data` is readable for `bytes`, or `data` is null, or `bytes` is 0.
pub(super) unsafe fn bytes_at<'a>(data: *const c_void, bytes: usize) -> &'a [u8] {
    if data.is_null() || bytes == 0 {
        return &[];
    }
    // SAFETY: `data` is not null, and the caller guarantees that `bytes` bytes are readable.
    unsafe { std::slice::from_raw_parts(data.cast(), bytes) }
}

/// # Safety
/// `data` is writable for `bytes` and not used by other code, or `data` is null, or `bytes` is 0.
pub(super) unsafe fn bytes_at_mut<'a>(data: *mut c_void, bytes: usize) -> &'a mut [u8] {
    if data.is_null() || bytes == 0 {
        return &mut [];
    }
    // SAFETY: `data` is not null, and the caller guarantees that `bytes` bytes are writable and used by no other code.
    unsafe { std::slice::from_raw_parts_mut(data.cast(), bytes) }
}

//! The table of services that the component gets: C functions over a [`ForeignComm`].
#![allow(unsafe_code)]

use crate::seat::ForeignComm;
use mpi_core::plugin::abi::{self, Call, Comm, DONE, FAILED, Host, PENDING, Ready, WARNING, Why};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::null;
use std::time::Duration;

pub static HOST: Host = Host {
    size: size_of::<Host>(),
    abi_version: abi::ABI_VERSION,
    reserved: 0,
    library: c"another MPI library".as_ptr(),
    comm_rank: Some(comm_rank),
    comm_size: Some(comm_size),
    comm_name: Some(comm_name),
    comm_is_world: Some(comm_is_world),
    comm_node_ranks: Some(comm_node_ranks),
    send: Some(send),
    recv: Some(recv),
    fence: Some(fence),
    start_send: Some(start_send),
    start_recv: Some(start_recv),
    test_message: Some(test_message),
    progress: Some(progress),
    wait: Some(wait),
    ring: Some(ring),
    shared_memory: Some(shared_memory),
    param: Some(param),
    log: Some(log),
    now_ns: Some(now_ns),
    call_next: Some(call_next),
    component_data: Some(component_data),
    barrier_wire: Some(barrier_wire),
    failed_ranks: Some(failed_ranks),
};

/// Returns the seat behind the pointer that the component passes.
///
/// # Safety
/// `comm` is the pointer that `query` received, and its module has not been freed.
unsafe fn seat<'a>(comm: *mut Comm) -> &'a ForeignComm {
    // SAFETY: by the caller, `comm` is the pointer to the seat that `query` received, and the seat outlives the module.
    unsafe { &*comm.cast::<ForeignComm>() }
}

/// Returns the code of an outcome and stores its reason.
///
/// # Safety
/// `why` is writable.
unsafe fn answer(why: *mut Why, outcome: Result<c_int, String>) -> c_int {
    match outcome {
        Ok(code) => code,
        Err(reason) => {
            // SAFETY: by the caller, `why` is writable or null.
            if let Some(why) = unsafe { why.as_mut() } {
                why.set(&reason);
            }
            FAILED
        }
    }
}

/// # Safety
/// `data` is readable for `bytes` bytes.
unsafe fn bytes<'a>(data: *const c_void, bytes: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: by the caller, `data` is readable for `bytes` bytes.
    unsafe { std::slice::from_raw_parts(data.cast(), bytes) }
}

/// # Safety
/// `data` is writable for `bytes` bytes, or null.
unsafe fn bytes_mut<'a>(data: *mut c_void, bytes: usize) -> &'a mut [u8] {
    if data.is_null() {
        return &mut [];
    }
    // SAFETY: by the caller, `data` is writable for `bytes` bytes; it is not null here.
    unsafe { std::slice::from_raw_parts_mut(data.cast(), bytes) }
}

unsafe extern "C" fn comm_rank(comm: *mut Comm) -> u32 {
    // SAFETY: by the plugin ABI the component passes the `comm` of a living module, as `seat` requires.
    unsafe { seat(comm) }.rank()
}

unsafe extern "C" fn comm_size(comm: *mut Comm) -> u32 {
    // SAFETY: by the plugin ABI the component passes the `comm` of a living module, as `seat` requires.
    unsafe { seat(comm) }.size()
}

unsafe extern "C" fn comm_name(_: *mut Comm) -> *const c_char {
    c"MPI_COMM_WORLD".as_ptr()
}

unsafe extern "C" fn comm_is_world(_: *mut Comm) -> c_int {
    1
}

unsafe extern "C" fn comm_node_ranks(comm: *mut Comm, ranks: *mut u32, capacity: u32) -> u32 {
    // SAFETY: by the plugin ABI the component passes the `comm` of a living module, as `seat` requires.
    let here = unsafe { seat(comm) }.neighbours();
    for (i, rank) in here.iter().enumerate().take(capacity as usize) {
        // SAFETY: by the plugin ABI `ranks` is writable for `capacity` elements, and `i` is less.
        unsafe { ranks.add(i).write(*rank) };
    }
    here.len() as u32
}

unsafe extern "C" fn send(
    comm: *mut Comm,
    dest: u32,
    data: *const c_void,
    length: usize,
    why: *mut Why,
) -> c_int {
    // SAFETY: by the plugin ABI `comm` is of a living module, `data` is as long as passed, and `why` is writable.
    unsafe {
        answer(
            why,
            seat(comm).send(dest, bytes(data, length)).map(|()| DONE),
        )
    }
}

unsafe extern "C" fn recv(
    comm: *mut Comm,
    source: u32,
    data: *mut c_void,
    length: usize,
    why: *mut Why,
) -> c_int {
    // SAFETY: by the plugin ABI `comm` is of a living module, `data` is as long as passed, and `why` is writable.
    unsafe {
        answer(
            why,
            seat(comm)
                .recv(source, bytes_mut(data, length))
                .map(|()| DONE),
        )
    }
}

unsafe extern "C" fn fence(comm: *mut Comm, why: *mut Why) -> c_int {
    // SAFETY: by the plugin ABI `comm` is of a living module, and `why` is writable.
    unsafe { answer(why, seat(comm).fence().map(|()| DONE)) }
}

unsafe extern "C" fn start_send(
    comm: *mut Comm,
    dest: u32,
    data: *const c_void,
    length: usize,
    message: *mut u64,
    why: *mut Why,
) -> c_int {
    // SAFETY: by the plugin ABI `comm` is of a living module, `data` is as long as passed, and the number and `why` are writable.
    unsafe {
        let started = seat(comm).messages.send(dest, bytes(data, length));
        answer(
            why,
            started.map(|number| {
                message.write(number);
                DONE
            }),
        )
    }
}

unsafe extern "C" fn start_recv(
    comm: *mut Comm,
    source: u32,
    length: usize,
    message: *mut u64,
    _: *mut Why,
) -> c_int {
    // SAFETY: by the plugin ABI `comm` is of a living module, and `message` is writable.
    unsafe { message.write(seat(comm).messages.receive(source, length)) };
    DONE
}

unsafe extern "C" fn test_message(
    comm: *mut Comm,
    message: u64,
    data: *mut c_void,
    length: usize,
    why: *mut Why,
) -> c_int {
    // SAFETY: by the plugin ABI `comm` is of a living module, `data` is as long as passed, and `why` is writable.
    unsafe {
        let tested = seat(comm).messages.test(message, bytes_mut(data, length));
        answer(
            why,
            tested.map(|through| if through { DONE } else { PENDING }),
        )
    }
}

unsafe extern "C" fn progress(comm: *mut Comm) -> c_int {
    // SAFETY: by the plugin ABI the component passes the `comm` of a living module, as `seat` requires.
    unsafe { seat(comm) }.progress();
    0
}

unsafe extern "C" fn wait(
    comm: *mut Comm,
    ready: Option<Ready>,
    argument: *mut c_void,
    limit_ns: u64,
    why: *mut Why,
) -> c_int {
    let Some(ready) = ready else {
        // SAFETY: by the plugin ABI `why` is writable.
        return unsafe { answer(why, Err("there is nothing to wait for".into())) };
    };
    let limit = (limit_ns > 0).then(|| Duration::from_nanos(limit_ns));
    // SAFETY: the component's function with its own argument, called only in this thread and during this call.
    let mut ready = || unsafe { ready(argument) != 0 };
    // SAFETY: by the plugin ABI the component passes the `comm` of a living module, as `seat` requires.
    if unsafe { seat(comm) }.wait(limit, &mut ready) {
        DONE
    } else {
        PENDING
    }
}

/// Does nothing: a waiting rank here polls or yields and never sleeps.
unsafe extern "C" fn ring(_: *mut Comm, _: u32) {}

unsafe extern "C" fn shared_memory(
    comm: *mut Comm,
    length: usize,
    align: usize,
    memory: *mut *mut c_void,
    why: *mut Why,
) -> c_int {
    // SAFETY: by the plugin ABI `comm` is of a living module, and the out pointers are writable.
    unsafe {
        let made = seat(comm).shared_memory(length, align);
        answer(
            why,
            made.map(|at| {
                memory.write(at);
                DONE
            }),
        )
    }
}

unsafe extern "C" fn param(comm: *mut Comm, name: *const c_char) -> *const c_char {
    // SAFETY: by the plugin ABI `comm` is of a living module, and `name` is zero-terminated.
    let found = unsafe { seat(comm).param(CStr::from_ptr(name)) };
    found.map_or(null(), CStr::as_ptr)
}

unsafe extern "C" fn log(comm: *mut Comm, level: c_int, line: *const c_char) {
    // SAFETY: by the plugin ABI `comm` is of a living module, and `line` is zero-terminated.
    let (seat, line) = unsafe { (seat(comm), CStr::from_ptr(line)) };
    if level == WARNING || seat.is_verbose() {
        printable::eprintln!("portcullis: hwbarr: {}", line.to_string_lossy());
    }
}

unsafe extern "C" fn now_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `now` is a live local, and every Linux has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Fails: no next component exists here. The caller of the module calls the library's own barrier instead.
unsafe extern "C" fn call_next(_: *mut Call, why: *mut Why) -> c_int {
    // SAFETY: by the plugin ABI `why` is writable.
    unsafe { answer(why, Err("no other component is known here".into())) }
}

unsafe extern "C" fn component_data(comm: *mut Comm) -> *mut *mut c_void {
    // SAFETY: by the plugin ABI the component passes the `comm` of a living module, as `seat` requires.
    unsafe { seat(comm) }.common.as_ptr()
}

/// Returns no rank: the library below ends the job when a rank dies.
unsafe extern "C" fn failed_ranks(_: *mut Comm, _: *mut u32, _: u32) -> u32 {
    0
}

/// Passes the counts to reports and traces, if they are enabled.
unsafe extern "C" fn barrier_wire(_: *mut Comm, wire: u32, entered: u64, released: u64) {
    crate::wire::changes(wire, entered, released);
}

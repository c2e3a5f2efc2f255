//! The library's functions that a transport's plugin can call: rank, parameters, log, clock.
#![allow(unsafe_code)]

use super::events;
use crate::btl::ProcId;
use portcullis_plugin::btl::abi::{Host, Job, TRANSPORT_VERSION};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The object to which the plugin's `portcullis_job` pointer points.
pub struct JobFacts {
    pub me: ProcId,
    pub size: u32,
    pub transport: &'static str,
    /// The values of the transport's parameters, by parameter name.
    pub values: BTreeMap<CString, CString>,
}

/// The lowest level of log lines that are printed; lower levels are ignored.
const WARNING: c_int = 1;

const LIBRARY: &CStr = match CStr::from_bytes_with_nul(
    concat!("Portcullis ", env!("CARGO_PKG_VERSION"), "\0").as_bytes(),
) {
    Ok(text) => text,
    Err(_) => c"Portcullis",
};

/// The table of functions that a plugin can call.
pub static HOST: Host = Host {
    size: size_of::<Host>(),
    abi_version: TRANSPORT_VERSION,
    reserved: 0,
    library: LIBRARY.as_ptr(),
    rank: Some(rank),
    ranks: Some(ranks),
    param: Some(param),
    log: Some(log),
    now_ns: Some(now_ns),
    arrived: Some(events::arrived),
    sent: Some(events::sent),
    failed: Some(events::failed),
    ended: Some(events::ended),
};

/// # Safety
/// `job` must be the pointer that the library passed to `open`, and the transport must not have been freed (a rule of `transport.h`).
unsafe fn facts<'a>(job: *mut Job) -> &'a JobFacts {
    // SAFETY: the library created the pointer from a boxed `JobFacts` that lives until after `free`, and the caller observes the contract.
    unsafe { &*job.cast::<JobFacts>() }
}

unsafe extern "C" fn rank(job: *mut Job) -> u32 {
    // SAFETY: the plugin observes the contract of `facts`.
    unsafe { facts(job) }.me
}

unsafe extern "C" fn ranks(job: *mut Job) -> u32 {
    // SAFETY: the plugin observes the contract of `facts`.
    unsafe { facts(job) }.size
}

unsafe extern "C" fn param(job: *mut Job, name: *const c_char) -> *const c_char {
    if name.is_null() {
        return std::ptr::null();
    }
    // SAFETY: the plugin observes the contract of `facts`; `name` is not null, and the plugin passes a NUL-terminated text.
    let (facts, name) = unsafe { (facts(job), CStr::from_ptr(name)) };
    let value = facts.values.get(name);
    value.map_or(std::ptr::null(), |value| value.as_ptr())
}

unsafe extern "C" fn log(job: *mut Job, level: c_int, line: *const c_char) {
    if line.is_null() || level < WARNING {
        return;
    }
    // SAFETY: the plugin observes the contract of `facts`; `line` is not null, and the plugin passes a NUL-terminated text.
    let (facts, line) = unsafe { (facts(job), CStr::from_ptr(line)) };
    let print = || {
        printable::eprintln!(
            "rank {}: btl {}: warning: {}",
            facts.me,
            facts.transport,
            line.to_string_lossy()
        );
    };
    let _ = catch_unwind(AssertUnwindSafe(print));
}

unsafe extern "C" fn now_ns() -> u64 {
    mpi_base::clock::now_ns()
}

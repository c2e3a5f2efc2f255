//! Staging of buffers in device memory: the operation uses a copy in host memory.
//!
//! `api/args/memory.rs` makes all engine buffers, and queries this module for device addresses.
//! For device memory, the engine gets a host buffer with the same layout.
//! So no algorithm of the engine handles device memory.
//! Data are copied to the host buffer before the operation.
//! Results are copied back before the call returns or when the request completes.
//!
//! | file | subject |
//! |---|---|
//! | `libraries` | the accelerator libraries that the program has loaded |
//! | `staged` | a buffer in device memory and its copy in host memory |
//! | `pool` | pinned host memory |
//! | `calls` | the staged buffers of the active calls of a thread |
//!
//! Without an accelerator library, each call reads one variable of the loader ([`loader_word`]).
//! Each buffer then costs the test of a flag.
//! With an accelerator library, each buffer costs a query of a fraction of a microsecond.
#![allow(unsafe_code)]

mod calls;
mod libraries;
mod pool;
mod staged;

pub use calls::{Views, enter, leave, received, take};
pub use libraries::{KINDS, SELECTION, is_in_use, kinds, loader_word, names};
pub use pool::{MAX_PINNED, PIPELINE_MIN};
pub use staged::{Access, DeviceError};

use libraries::Located;
use mpi_base::param::{ParamError, Params};
use mpi_core::datatype::Datatype;
use mpi_core::pml::{CHECK_BUFFERING, CHECK_TYPES};

/// Searches the process for the selected libraries, now and after each later `dlopen`.
/// Returns true if calls must check the address or the datatype of their buffers.
/// Either an accelerator library is loaded, or the types of messages are compared.
pub fn start(params: &Params) -> Result<bool, ParamError> {
    pool::set_limit(params.get(&MAX_PINNED)?);
    pool::set_pipeline_min(params.get(&PIPELINE_MIN)?);
    let found = libraries::start(params)?;
    let compared = params.get(&CHECK_TYPES)? || params.get(&CHECK_BUFFERING)?;
    if compared {
        libraries::compare_types();
    }
    Ok(found || compared)
}

/// Returns the device memory at an address.
/// A call that began before a library was found cannot hold staged buffers; it gets `None`.
fn locate(at: *const u8) -> Option<Located> {
    match calls::is_open() {
        true => libraries::locate(at),
        false => None,
    }
}

/// Returns true if an address is in device memory.
#[cold]
#[inline(never)]
pub fn holds(at: *const u8) -> bool {
    locate(at).is_some()
}

/// Returns true if a buffer must not be treated as plain bytes.
/// The buffer is in device memory, or the types of messages are compared.
#[cold]
#[inline(never)]
pub fn takes_general_path(at: *const u8) -> bool {
    libraries::are_types_compared() || holds(at)
}

/// Returns the host copy of a buffer in device memory, or `None` for a buffer in host memory.
#[cold]
#[inline(never)]
pub fn stage(
    at: *mut u8,
    count: i64,
    datatype: &Datatype,
    access: Access,
) -> Result<Option<*mut u8>, DeviceError> {
    let span = datatype.span(count);
    if span.is_empty() {
        return Ok(None);
    }
    let lowest = at.wrapping_offset(span.start as isize);
    let Some(located) = locate(lowest) else {
        return Ok(None);
    };
    let staged = staged::Staged::new(located, at, (count, datatype), access)?;
    let address = staged.address();
    calls::keep(staged);
    Ok(Some(address))
}

/// Returns the error text for a window in device memory, or `None` for host memory.
#[cold]
#[inline(never)]
pub fn refused_window(at: *const u8) -> Option<String> {
    let located = locate(at)?;
    Some(format!(
        "the memory at {at:p} is {located}, which other processes cannot reach: make the window of host memory, and pass device memory as origin of MPI_Put and MPI_Get"
    ))
}

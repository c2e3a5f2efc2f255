//! Buffers in device memory: recognised where a buffer argument is used, and replaced by host memory for the operation (staging).
//!
//! One place makes the engine's buffers of C's arguments (`api/args/memory.rs`), and it asks here whether an address is on a device.
//! If so the engine gets a buffer of the host with the same layout, so no algorithm knows of devices:
//! the data are copied to it before the operation, and from it before the call returns or the request completes.
//!
//! | file | subject |
//! |---|---|
//! | `libraries` | the libraries of accelerators that the program has loaded |
//! | `staged` | a buffer in device memory and its host memory |
//! | `pool` | pinned host memory |
//! | `calls` | the buffers that the running calls of a thread have staged |
//!
//! Cost: until the program has loaded such a library, the word that every call reads at its start is one of the loader ([`loader_word`]),
//! and each buffer costs the test of a flag.
//! From then on each buffer is asked about, which its library answers in a fraction of a microsecond.
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
/// Returns true if each call must find out where its buffers are, because such a library is loaded, or which datatype they have, because the types of messages
/// are compared.
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

/// Returns the device memory at an address; none in a call that began before a library was found, and so keeps no staged buffers.
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

/// Returns true if a buffer may not be treated as plain bytes: it is in device memory, or the types of messages are compared.
#[cold]
#[inline(never)]
pub fn takes_general_path(at: *const u8) -> bool {
    libraries::are_types_compared() || holds(at)
}

/// Returns the address of the host copy that the running call uses in place of a buffer in device memory; `None` for a buffer in host memory.
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

/// Returns the sentence that refuses memory of a device for a window; `None` for other memory.
#[cold]
#[inline(never)]
pub fn refused_window(at: *const u8) -> Option<String> {
    let located = locate(at)?;
    Some(format!(
        "the memory at {at:p} is {located}, which other processes cannot reach: make the window of host memory, and pass device memory as origin of MPI_Put and MPI_Get"
    ))
}

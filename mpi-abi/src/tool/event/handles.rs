//! Operations of tools on registrations: create, free, set callbacks.

use super::super::pvar::Object;
use super::queue::queue;
use super::raised::begin;
use super::registration::{Callback, FreeCallback, Registration, is_safety};
use crate::abi::*;
use crate::error::Failure;
use std::ffi::c_void;

/// Creates a registration for the event at an index, bound to an object if the event requires it.
pub fn allocate(event: usize, object: Object) -> Result<MPI_T_event_registration, Failure> {
    let comm = match object {
        Object::Comm(_) => Some(object.comm()?.context().number()),
        _ => None,
    };
    let number = queue().add(Registration::new(event, comm));
    Ok(MPI_T_event_registration(number))
}

/// Sets or removes the callback of a safety level. Enables the events from now on.
pub fn register(
    handle: MPI_T_event_registration,
    safety: MPI_T_cb_safety,
    function: Option<MPI_T_event_cb_function>,
    user_data: *mut c_void,
) -> Result<(), Failure> {
    is_safety(safety)?;
    let callback = function.map(|function| Callback::new(function, user_data));
    queue().get(handle)?.set_callback(safety, callback);
    if callback.is_some() {
        begin();
    }
    Ok(())
}

/// Sets or removes the handler for dropped events.
pub fn set_dropped_handler(
    handle: MPI_T_event_registration,
    function: Option<MPI_T_event_dropped_cb_function>,
) -> Result<(), Failure> {
    queue().get(handle)?.set_dropped_handler(function);
    Ok(())
}

/// Frees a registration. Calls `function` after all its callbacks have returned.
pub fn free(
    handle: MPI_T_event_registration,
    function: Option<MPI_T_event_free_cb_function>,
    user_data: *mut c_void,
) -> Result<(), Failure> {
    let at_end = FreeCallback::new(handle, function, user_data);
    let now = queue().remove(handle, at_end)?;
    if let Some(now) = now {
        now.call(MPI_T_CB_REQUIRE_MPI_RESTRICTED);
    }
    Ok(())
}

/// Returns an error unless a handle is a registration with a callback of this safety level.
pub fn has_callback(
    handle: MPI_T_event_registration,
    safety: MPI_T_cb_safety,
) -> Result<(), Failure> {
    is_safety(safety)?;
    match queue().get(handle)?.has_callback(safety) {
        true => Ok(()),
        false => Err(Failure::new(
            MPI_T_ERR_INVALID_HANDLE,
            format!(
                "the registration {:#x} has no callback for the safety level {safety}",
                handle.0
            ),
        )),
    }
}

/// Returns an error unless a handle is a registration.
pub fn exists(handle: MPI_T_event_registration) -> Result<(), Failure> {
    queue().get(handle).map(|_| ())
}

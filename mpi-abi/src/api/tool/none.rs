//! Enumerations, events and sources of events (sections 15.3.5 and 15.3.8): none exist.
//!
//! So no handle of one is ever issued, and every handle argument is wrong.

use super::{look_up, result};
use crate::abi::*;
use crate::error::{Failure, Outcome};
use crate::tool::{at, known};
use std::ffi::{c_char, c_int, c_void};

/// Stores their number, zero.
///
/// # Safety
/// An output argument of the caller.
unsafe fn number(num: *mut c_int, name: &str) -> Outcome {
    known()?;
    // SAFETY: `num` is valid by the `# Safety` contract of this function.
    unsafe { result(num, 0, name) }
}

/// Fails for any index.
fn none(index: c_int, what: &str) -> Outcome {
    known()?;
    at::<()>(&[], index, what).copied()
}

/// Fails for any name.
///
/// # Safety
/// A string and an output argument of the caller.
unsafe fn nameless(name: *const c_char, what: &str, index: *mut c_int) -> Outcome {
    known()?;
    // SAFETY: `name` and `index` are valid by the `# Safety` contract of this function.
    unsafe { look_up(name, std::iter::empty(), what, index) }
}

pub unsafe fn MPI_T_event_get_num(num_events: *mut c_int) -> Outcome {
    // SAFETY: `num_events` is valid as the C binding of MPI_T_event_get_num requires of its caller.
    unsafe { number(num_events, "num_events") }
}

pub unsafe fn MPI_T_event_get_info(
    event_index: c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
    _verbosity: *mut c_int,
    _array_of_datatypes: *mut MPI_Datatype,
    _array_of_displacements: *mut MPI_Aint,
    _num_elements: *mut c_int,
    _enumtype: *mut MPI_T_enum,
    _info: *mut MPI_Info,
    _desc: *mut c_char,
    _desc_len: *mut c_int,
    _bind: *mut c_int,
) -> Outcome {
    none(event_index, "events")
}

pub unsafe fn MPI_T_event_get_index(name: *const c_char, event_index: *mut c_int) -> Outcome {
    // SAFETY: `name` and `event_index` are valid as the C binding of MPI_T_event_get_index requires of its caller.
    unsafe { nameless(name, "event", event_index) }
}

pub unsafe fn MPI_T_source_get_num(num_sources: *mut c_int) -> Outcome {
    // SAFETY: `num_sources` is valid as the C binding of MPI_T_source_get_num requires of its caller.
    unsafe { number(num_sources, "num_sources") }
}

pub unsafe fn MPI_T_source_get_info(
    source_index: c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
    _desc: *mut c_char,
    _desc_len: *mut c_int,
    _ordering: *mut MPI_T_source_order,
    _ticks_per_second: *mut MPI_Count,
    _max_ticks: *mut MPI_Count,
    _info: *mut MPI_Info,
) -> Outcome {
    none(source_index, "sources of events")
}

pub unsafe fn MPI_T_source_get_timestamp(
    source_index: c_int,
    _timestamp: *mut MPI_Count,
) -> Outcome {
    none(source_index, "sources of events")
}

/// The failure for a handle, since none was issued.
fn no_such_handle(handle: usize, what: &str) -> Outcome {
    known()?;
    let sentence = format!("{handle:#x} is no {what}, of which there are none");
    Err(Failure::new(MPI_T_ERR_INVALID_HANDLE, sentence))
}

pub unsafe fn MPI_T_event_handle_alloc(
    event_index: c_int,
    _obj_handle: *mut c_void,
    _info: MPI_Info,
    _registration: *mut MPI_T_event_registration,
) -> Outcome {
    none(event_index, "events")
}

pub unsafe fn MPI_T_event_handle_free(
    registration: MPI_T_event_registration,
    _user_data: *mut c_void,
    _free_cb_function: MPI_T_event_free_cb_function,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub unsafe fn MPI_T_event_handle_get_info(
    registration: MPI_T_event_registration,
    _info_used: *mut MPI_Info,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub unsafe fn MPI_T_event_handle_set_info(
    registration: MPI_T_event_registration,
    _info: MPI_Info,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub unsafe fn MPI_T_event_register_callback(
    registration: MPI_T_event_registration,
    _cb_safety: MPI_T_cb_safety,
    _info: MPI_Info,
    _user_data: *mut c_void,
    _event_cb_function: MPI_T_event_cb_function,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub unsafe fn MPI_T_event_callback_get_info(
    registration: MPI_T_event_registration,
    _cb_safety: MPI_T_cb_safety,
    _info_used: *mut MPI_Info,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub unsafe fn MPI_T_event_callback_set_info(
    registration: MPI_T_event_registration,
    _cb_safety: MPI_T_cb_safety,
    _info: MPI_Info,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub unsafe fn MPI_T_event_set_dropped_handler(
    registration: MPI_T_event_registration,
    _dropped_cb_function: MPI_T_event_dropped_cb_function,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub unsafe fn MPI_T_event_read(
    instance: MPI_T_event_instance,
    _element_index: c_int,
    _buffer: *mut c_void,
) -> Outcome {
    no_such_handle(instance.0, "instance of an event")
}

pub unsafe fn MPI_T_event_copy(instance: MPI_T_event_instance, _buffer: *mut c_void) -> Outcome {
    no_such_handle(instance.0, "instance of an event")
}

pub unsafe fn MPI_T_event_get_timestamp(
    instance: MPI_T_event_instance,
    _event_timestamp: *mut MPI_Count,
) -> Outcome {
    no_such_handle(instance.0, "instance of an event")
}

pub unsafe fn MPI_T_event_get_source(
    instance: MPI_T_event_instance,
    _source_index: *mut c_int,
) -> Outcome {
    no_such_handle(instance.0, "instance of an event")
}

pub unsafe fn MPI_T_enum_get_info(
    enumtype: MPI_T_enum,
    _num: *mut c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
) -> Outcome {
    no_such_handle(enumtype.0, "enumeration")
}

pub unsafe fn MPI_T_enum_get_item(
    enumtype: MPI_T_enum,
    _indx: c_int,
    _value: *mut c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
) -> Outcome {
    no_such_handle(enumtype.0, "enumeration")
}

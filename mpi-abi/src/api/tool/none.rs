//! Enumerations, events and sources of events (sections 15.3.5 and 15.3.8): none exist.
//!
//! So no handle of one is ever issued, and every handle argument is wrong.

use super::{look_up, result};
use crate::abi::*;
use crate::api::args::{Out, SizedText, Text, UncountedOut};
use crate::error::{Failure, Outcome};
use crate::tool::{at, known};
use std::ffi::{c_int, c_void};

/// Stores their number, zero.
fn number(num: Out<c_int>, name: &str) -> Outcome {
    known()?;
    result(num, 0, name)
}

/// Fails for any index.
fn none(index: c_int, what: &str) -> Outcome {
    known()?;
    at::<()>(&[], index, what).copied()
}

/// Fails for any name.
fn nameless(name: Text, what: &str, index: Out<c_int>) -> Outcome {
    known()?;
    look_up(name, std::iter::empty(), what, index)
}

pub fn MPI_T_event_get_num(num_events: Out<c_int>) -> Outcome {
    number(num_events, "num_events")
}

pub fn MPI_T_event_get_info(
    event_index: c_int,
    _name: SizedText,
    _verbosity: Out<c_int>,
    _array_of_datatypes: UncountedOut<MPI_Datatype>,
    _array_of_displacements: UncountedOut<MPI_Aint>,
    _num_elements: Out<c_int>,
    _enumtype: Out<MPI_T_enum>,
    _info: Out<MPI_Info>,
    _desc: SizedText,
    _bind: Out<c_int>,
) -> Outcome {
    none(event_index, "events")
}

pub fn MPI_T_event_get_index(name: Text, event_index: Out<c_int>) -> Outcome {
    nameless(name, "event", event_index)
}

pub fn MPI_T_source_get_num(num_sources: Out<c_int>) -> Outcome {
    number(num_sources, "num_sources")
}

pub fn MPI_T_source_get_info(
    source_index: c_int,
    _name: SizedText,
    _desc: SizedText,
    _ordering: Out<MPI_T_source_order>,
    _ticks_per_second: Out<MPI_Count>,
    _max_ticks: Out<MPI_Count>,
    _info: Out<MPI_Info>,
) -> Outcome {
    none(source_index, "sources of events")
}

pub fn MPI_T_source_get_timestamp(source_index: c_int, _timestamp: Out<MPI_Count>) -> Outcome {
    none(source_index, "sources of events")
}

/// The failure for a handle, since none was issued.
fn no_such_handle(handle: usize, what: &str) -> Outcome {
    known()?;
    let sentence = format!("{handle:#x} is no {what}, of which there are none");
    Err(Failure::new(MPI_T_ERR_INVALID_HANDLE, sentence))
}

pub fn MPI_T_event_handle_alloc(
    event_index: c_int,
    _obj_handle: *mut c_void,
    _info: MPI_Info,
    _registration: Out<MPI_T_event_registration>,
) -> Outcome {
    none(event_index, "events")
}

pub fn MPI_T_event_handle_free(
    registration: MPI_T_event_registration,
    _user_data: *mut c_void,
    _free_cb_function: MPI_T_event_free_cb_function,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub fn MPI_T_event_handle_get_info(
    registration: MPI_T_event_registration,
    _info_used: Out<MPI_Info>,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub fn MPI_T_event_handle_set_info(
    registration: MPI_T_event_registration,
    _info: MPI_Info,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub fn MPI_T_event_register_callback(
    registration: MPI_T_event_registration,
    _cb_safety: MPI_T_cb_safety,
    _info: MPI_Info,
    _user_data: *mut c_void,
    _event_cb_function: MPI_T_event_cb_function,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub fn MPI_T_event_callback_get_info(
    registration: MPI_T_event_registration,
    _cb_safety: MPI_T_cb_safety,
    _info_used: Out<MPI_Info>,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub fn MPI_T_event_callback_set_info(
    registration: MPI_T_event_registration,
    _cb_safety: MPI_T_cb_safety,
    _info: MPI_Info,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub fn MPI_T_event_set_dropped_handler(
    registration: MPI_T_event_registration,
    _dropped_cb_function: MPI_T_event_dropped_cb_function,
) -> Outcome {
    no_such_handle(registration.0, "registration of an event")
}

pub fn MPI_T_event_read(
    instance: MPI_T_event_instance,
    _element_index: c_int,
    _buffer: *mut c_void,
) -> Outcome {
    no_such_handle(instance.0, "instance of an event")
}

pub fn MPI_T_event_copy(instance: MPI_T_event_instance, _buffer: *mut c_void) -> Outcome {
    no_such_handle(instance.0, "instance of an event")
}

pub fn MPI_T_event_get_timestamp(
    instance: MPI_T_event_instance,
    _event_timestamp: Out<MPI_Count>,
) -> Outcome {
    no_such_handle(instance.0, "instance of an event")
}

pub fn MPI_T_event_get_source(
    instance: MPI_T_event_instance,
    _source_index: Out<c_int>,
) -> Outcome {
    no_such_handle(instance.0, "instance of an event")
}

pub fn MPI_T_enum_get_info(enumtype: MPI_T_enum, _num: Out<c_int>, _name: SizedText) -> Outcome {
    no_such_handle(enumtype.0, "enumeration")
}

pub fn MPI_T_enum_get_item(
    enumtype: MPI_T_enum,
    _indx: c_int,
    _value: Out<c_int>,
    _name: SizedText,
) -> Outcome {
    no_such_handle(enumtype.0, "enumeration")
}

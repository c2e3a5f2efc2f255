//! Performance variables, events and sources of events (sections 15.3.7 and 15.3.8), of which there are none.

use super::{look_up, result};
use crate::abi::*;
use crate::error::Outcome;
use crate::tool::{at, known};
use std::ffi::{c_char, c_int};

/// How many there are.
///
/// # Safety
/// An output argument of the caller.
unsafe fn number(num: *mut c_int, name: &str) -> Outcome {
    known()?;
    // SAFETY: passed on.
    unsafe { result(num, 0, name) }
}

/// No index is that of one.
fn none(index: c_int, what: &str) -> Outcome {
    known()?;
    at::<()>(&[], index, what).copied()
}

/// No name is that of one.
///
/// # Safety
/// A string and an output argument of the caller.
unsafe fn nameless(name: *const c_char, what: &str, index: *mut c_int) -> Outcome {
    known()?;
    // SAFETY: passed on.
    unsafe { look_up(name, std::iter::empty(), what, index) }
}

pub unsafe fn MPI_T_pvar_get_num(num_pvar: *mut c_int) -> Outcome {
    // SAFETY: passed on.
    unsafe { number(num_pvar, "num_pvar") }
}

pub unsafe fn MPI_T_pvar_get_info(
    pvar_index: c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
    _verbosity: *mut c_int,
    _var_class: *mut c_int,
    _datatype: *mut MPI_Datatype,
    _enumtype: *mut MPI_T_enum,
    _desc: *mut c_char,
    _desc_len: *mut c_int,
    _bind: *mut c_int,
    _readonly: *mut c_int,
    _continuous: *mut c_int,
    _atomic: *mut c_int,
) -> Outcome {
    none(pvar_index, "performance variables")
}

pub unsafe fn MPI_T_pvar_get_index(
    name: *const c_char,
    _var_class: c_int,
    pvar_index: *mut c_int,
) -> Outcome {
    // SAFETY: passed on.
    unsafe { nameless(name, "performance variable", pvar_index) }
}

pub unsafe fn MPI_T_event_get_num(num_events: *mut c_int) -> Outcome {
    // SAFETY: passed on.
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
    // SAFETY: passed on.
    unsafe { nameless(name, "event", event_index) }
}

pub unsafe fn MPI_T_source_get_num(num_sources: *mut c_int) -> Outcome {
    // SAFETY: passed on.
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

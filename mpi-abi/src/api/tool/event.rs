//! Event types and the event source of the tool interface (section 15.3.8).

use super::{int, look_up, null, result, text, wanted};
use crate::abi::*;
use crate::api::args::{InOut, Out, SizedOut, SizedText, Text, Untyped};
use crate::error::{Failure, Outcome};
use crate::info::{self, Hints};
use crate::tool::event::{self, EVENTS, Event, SOURCE, Source};
use crate::tool::{at, known};
use mpi_base::clock::now_ns;
use std::ffi::{c_int, c_void};

/// Returns the event type at an index.
fn event_at(index: c_int) -> Result<&'static Event, Failure> {
    known()?;
    at(EVENTS, index, "events")
}

/// Returns the source at an index. The library has one source.
fn source_at(index: c_int) -> Result<&'static Source, Failure> {
    known()?;
    let sources = [&SOURCE];
    at(&sources, index, "sources of events").copied()
}

/// Stores an empty info object: the library supports no hints for events.
fn no_hints(to: Out<MPI_Info>) -> Outcome {
    if !to.is_null() {
        let made = info::create(Hints::new());
        wanted(to, made.map_err(|f| f.with_code(MPI_T_ERR_MEMORY))?);
    }
    Ok(())
}

pub fn MPI_T_event_get_num(num_events: Out<c_int>) -> Outcome {
    known()?;
    result(num_events, int(EVENTS.len()), "num_events")
}

pub fn MPI_T_event_get_info(
    event_index: c_int,
    name: SizedText,
    verbosity: Out<c_int>,
    array_of_datatypes: SizedOut<MPI_Datatype>,
    array_of_displacements: SizedOut<MPI_Aint>,
    num_elements: InOut<c_int>,
    enumtype: Out<MPI_T_enum>,
    info: Out<MPI_Info>,
    desc: SizedText,
    bind: Out<c_int>,
) -> Outcome {
    let event = event_at(event_index)?;
    let all = event.elements.len();
    array_of_datatypes.fill(std::iter::repeat_n(MPI_COUNT, all));
    array_of_displacements.fill((0..all).map(|at| (at * size_of::<MPI_Count>()) as MPI_Aint));
    wanted(num_elements.out(), int(all));
    text(name, event.name);
    let elements = event.elements.join(", ");
    text(desc, &format!("{} (elements: {elements})", event.help));
    wanted(verbosity, MPI_T_VERBOSITY_TUNER_BASIC);
    wanted(enumtype, MPI_T_ENUM_NULL);
    wanted(bind, event.bound.constant());
    no_hints(info)
}

pub fn MPI_T_event_get_index(name: Text, event_index: Out<c_int>) -> Outcome {
    known()?;
    let names = EVENTS.iter().map(|event| event.name);
    look_up(name, names, "event", event_index)
}

pub fn MPI_T_source_get_num(num_sources: Out<c_int>) -> Outcome {
    known()?;
    result(num_sources, 1, "num_sources")
}

pub fn MPI_T_source_get_info(
    source_index: c_int,
    name: SizedText,
    desc: SizedText,
    ordering: Out<MPI_T_source_order>,
    ticks_per_second: Out<MPI_Count>,
    max_ticks: Out<MPI_Count>,
    info: Out<MPI_Info>,
) -> Outcome {
    let source = source_at(source_index)?;
    text(name, source.name);
    text(desc, source.help);
    wanted(ordering, MPI_T_SOURCE_ORDERED);
    wanted(ticks_per_second, source.ticks_per_second);
    wanted(max_ticks, MPI_Count::MAX);
    no_hints(info)
}

/// Converts a time in nanoseconds to ticks of the source.
fn ticks(time_ns: u64) -> MPI_Count {
    MPI_Count::try_from(time_ns).unwrap_or(MPI_Count::MAX)
}

pub fn MPI_T_source_get_timestamp(source_index: c_int, timestamp: Out<MPI_Count>) -> Outcome {
    source_at(source_index)?;
    result(timestamp, ticks(now_ns()), "timestamp")
}

pub fn MPI_T_event_handle_alloc(
    event_index: c_int,
    obj_handle: Untyped,
    _info: MPI_Info,
    event_registration: Out<MPI_T_event_registration>,
) -> Outcome {
    let event = event_at(event_index)?;
    if event_registration.is_null() {
        return Err(null("event_registration"));
    }
    let object = event.bound.object(obj_handle.handle())?;
    let made = event::allocate(event_index as usize, object)?;
    result(event_registration, made, "event_registration")
}

pub fn MPI_T_event_handle_free(
    event_registration: MPI_T_event_registration,
    user_data: *mut c_void,
    free_cb_function: Option<MPI_T_event_free_cb_function>,
) -> Outcome {
    known()?;
    event::free(event_registration, free_cb_function, user_data)
}

pub fn MPI_T_event_handle_get_info(
    event_registration: MPI_T_event_registration,
    info_used: Out<MPI_Info>,
) -> Outcome {
    known()?;
    event::exists(event_registration)?;
    no_hints(info_used)
}

pub fn MPI_T_event_handle_set_info(
    event_registration: MPI_T_event_registration,
    _info: MPI_Info,
) -> Outcome {
    known()?;
    event::exists(event_registration)
}

pub fn MPI_T_event_register_callback(
    event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety,
    _info: MPI_Info,
    user_data: *mut c_void,
    event_cb_function: Option<MPI_T_event_cb_function>,
) -> Outcome {
    known()?;
    event::register(event_registration, cb_safety, event_cb_function, user_data)
}

pub fn MPI_T_event_callback_get_info(
    event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety,
    info_used: Out<MPI_Info>,
) -> Outcome {
    known()?;
    event::has_callback(event_registration, cb_safety)?;
    no_hints(info_used)
}

pub fn MPI_T_event_callback_set_info(
    event_registration: MPI_T_event_registration,
    cb_safety: MPI_T_cb_safety,
    _info: MPI_Info,
) -> Outcome {
    known()?;
    event::has_callback(event_registration, cb_safety)
}

pub fn MPI_T_event_set_dropped_handler(
    event_registration: MPI_T_event_registration,
    dropped_cb_function: Option<MPI_T_event_dropped_cb_function>,
) -> Outcome {
    known()?;
    event::set_dropped_handler(event_registration, dropped_cb_function)
}

/// Stores elements of an event, which are of type `MPI_COUNT`.
fn store(buffer: Untyped, elements: &[i64]) -> Outcome {
    match buffer.put_words(elements.iter().map(|element| element.cast_unsigned())) {
        true => Ok(()),
        false => Err(null("buffer")),
    }
}

pub fn MPI_T_event_read(
    event_instance: MPI_T_event_instance,
    element_index: c_int,
    buffer: Untyped,
) -> Outcome {
    known()?;
    let instance = event::instance(event_instance)?;
    let value = at(event::copy_of(&instance), element_index, "elements")?;
    store(buffer, &[*value])
}

pub fn MPI_T_event_copy(event_instance: MPI_T_event_instance, buffer: Untyped) -> Outcome {
    known()?;
    let instance = event::instance(event_instance)?;
    store(buffer, event::copy_of(&instance))
}

pub fn MPI_T_event_get_timestamp(
    event_instance: MPI_T_event_instance,
    event_timestamp: Out<MPI_Count>,
) -> Outcome {
    known()?;
    let instance = event::instance(event_instance)?;
    result(event_timestamp, ticks(instance.time_ns), "event_timestamp")
}

pub fn MPI_T_event_get_source(
    event_instance: MPI_T_event_instance,
    source_index: Out<c_int>,
) -> Outcome {
    known()?;
    event::instance(event_instance)?;
    result(source_index, 0, "source_index")
}

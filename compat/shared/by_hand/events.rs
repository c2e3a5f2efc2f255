//! Tests of tool events: the backend calls the program's callbacks.
//!
//! The callbacks receive callback safety levels as constants of the program's ABI.

use super::*;

/// The program's event callback. The first argument is the event instance.
unsafe extern "C-unwind" fn on_event(
    instance: usize,
    registration: usize,
    safety: c_int,
    data: *mut c_void,
) {
    note_where();
    note!(instance, registration, safety, data.addr());
}

unsafe extern "C-unwind" fn on_free(registration: usize, safety: c_int, data: *mut c_void) {
    note_where();
    note!(registration, safety, data.addr());
}

/// Two callbacks for dropped events, distinguished by `NUMBER`.
unsafe extern "C-unwind" fn on_dropped<const NUMBER: u8>(
    count: i64,
    registration: usize,
    source: c_int,
    safety: c_int,
    data: *mut c_void,
) {
    note_where();
    note!(NUMBER, count, registration, source, safety, data.addr());
}

unsafe extern "C-unwind" fn take(
    registration: usize,
    safety: c_int,
    info: Below,
    data: *mut c_void,
    function: usize,
) -> c_int {
    arrived();
    note!(registration, safety, info);
    keep(0, function);
    keep(1, data.expose_provenance());
    answer()
}

unsafe extern "C-unwind" fn take_last(
    registration: usize,
    data: *mut c_void,
    function: usize,
) -> c_int {
    arrived();
    note!(registration);
    keep(0, function);
    keep(1, data.expose_provenance());
    answer()
}

unsafe extern "C-unwind" fn take_dropped(registration: usize, function: usize) -> c_int {
    arrived();
    note!(registration);
    keep(2, function);
    answer()
}

fn data() -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(kept(1))
}

fn register(function: usize, code: (c_int, c_int)) {
    let name = "MPI_T_event_register_callback";
    let (safety, info) = (word("callback_safety"), predefined(Kind::Info));
    mock!(MPI_T_event_register_callback = take);
    answer_with(code.1);
    let found = call!(MPI_T_event_register_callback(
        901,
        safety.0,
        info.0,
        scratch(1).cast(),
        function,
    ));
    answer_with(0);
    assert_eq!(found, code.0, "{name}: the code");
    arrives!(name; 901, safety.1, info.1);
}

fn free(function: usize, code: (c_int, c_int)) {
    let name = "MPI_T_event_handle_free";
    mock!(MPI_T_event_handle_free = take_last);
    answer_with(code.1);
    let found = call!(MPI_T_event_handle_free(902, scratch(2).cast(), function));
    answer_with(0);
    assert_eq!(found, code.0, "{name}: the code");
    arrives!(name; 902);
}

fn set_dropped(registration: usize, function: usize, code: (c_int, c_int)) {
    let name = "MPI_T_event_set_dropped_handler";
    mock!(MPI_T_event_set_dropped_handler = take_dropped);
    answer_with(code.1);
    let found = call!(MPI_T_event_set_dropped_handler(registration, function));
    answer_with(0);
    assert_eq!(found, code.0, "{name}: the code");
    arrives!(name; registration);
    assert_eq!(
        kept(2) == 0,
        function == 0,
        "{name}: whether there is a function"
    );
}

/// Tests that a callback for dropped events receives its registration's drops and user data.
fn dropped() {
    type OnDropped = unsafe extern "C-unwind" fn(i64, usize, c_int, c_int, *mut c_void);
    let safety = word("callback_safety");
    let (one, two): (OnDropped, OnDropped) = (on_dropped::<1>, on_dropped::<2>);
    register(on_event as *const () as usize, (0, 0));
    set_dropped(901, one as usize, (0, 0));
    set_dropped(906, two as usize, (0, 0));
    set_dropped(901, two as usize, failure());
    // SAFETY: the library gave the backend a function of the standard's type for this slot.
    let function: OnDropped = unsafe { std::mem::transmute(kept(2)) };
    let known = (data(), scratch(1).addr());
    let other = (scratch(4).cast(), scratch(4).addr());
    for (number, registration) in [(1, 901), (2, 906)] {
        for (given, found) in [known, other] {
            // SAFETY: `function` has the type `OnDropped` by the transmute above; it only records `given`.
            as_library(|| unsafe { function(1 << 33, registration, 7, safety.1, given) });
            arrives!("a function of dropped events";
                false, number, 1i64 << 33, registration, 7, safety.0, found);
        }
    }
    set_dropped(901, 0, (0, 0));
    // SAFETY: the function remains valid after the end of its registration.
    // It only records the address.
    as_library(|| unsafe { function(1, 901, 7, safety.1, data()) });
    arrives!("no function of dropped events";);
}

pub fn check() {
    let safety = word("callback_safety");
    for code in [(0, 0), failure()] {
        register(0, code);
        assert_eq!(
            (kept(0), kept(1)),
            (0, scratch(1).addr()),
            "no function of an event"
        );
        free(0, code);
        assert_eq!(
            (kept(0), kept(1)),
            (0, scratch(2).addr()),
            "no function of the end"
        );
    }
    register(on_event as *const () as usize, failure());
    register(on_event as *const () as usize, (0, 0));
    // SAFETY: the library gave the backend a function of the standard's type for event callbacks.
    let function: unsafe extern "C-unwind" fn(usize, usize, c_int, *mut c_void) =
        unsafe { std::mem::transmute(kept(0)) };
    for instance in [903, 904] {
        // SAFETY: `function` has the type of an event callback by the transmute above.
        // `data()` was given to the backend together with it.
        as_library(|| unsafe { function(instance, 901, safety.1, data()) });
        arrives!("a function of an event"; false, instance, 901, safety.0, scratch(1).addr());
    }
    free(on_free as *const () as usize, failure());
    free(on_free as *const () as usize, (0, 0));
    // SAFETY: the library gave the backend a free callback of the standard's type.
    let function: unsafe extern "C-unwind" fn(usize, c_int, *mut c_void) =
        unsafe { std::mem::transmute(kept(0)) };
    // SAFETY: `function` has the type of a free callback by the transmute above.
    // `data()` was given to the backend together with it.
    as_library(|| unsafe { function(902, safety.1, data()) });
    arrives!("a function of the end of events"; false, 902, safety.0, scratch(2).addr());
    dropped();
}

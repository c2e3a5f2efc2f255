//! Tests of generalized requests: the backend calls the program's callbacks.
//!
//! The callbacks receive a status with the program's layout and constants.

use super::*;

/// Returns the status that the program's query callback sets.
/// The ABIs differ in its constants.
fn told() -> StandardStatus {
    StandardStatus {
        source: constant("MPI_PROC_NULL").0,
        tag: word("tag").0,
        error: other_failure().0,
        ..StandardStatus::with(0x1_0000_0100, false)
    }
}

unsafe extern "C-unwind" fn query(extra_state: *mut c_void, status: *mut Status) -> c_int {
    note_where();
    let given = F::status_in(&*status);
    note!(
        extra_state.addr(),
        given.source,
        given.tag,
        given.error,
        given.bytes()
    );
    *status = F::status_out(&told());
    failure().0
}

unsafe extern "C-unwind" fn free(extra_state: *mut c_void) -> c_int {
    note_where();
    note!(extra_state.addr());
    failure().0
}

unsafe extern "C-unwind" fn cancel(extra_state: *mut c_void, complete: c_int) -> c_int {
    note_where();
    note!(extra_state.addr(), complete);
    other_failure().0
}

unsafe extern "C-unwind" fn take(
    query: usize,
    free: usize,
    cancel: usize,
    extra_state: *mut c_void,
    request: *mut Below,
) -> c_int {
    arrived();
    keep(0, query);
    keep(1, free);
    keep(2, cancel);
    keep(3, extra_state.expose_provenance());
    *request = made(51).1;
    answer()
}

/// The Fortran versions of the callbacks: the code is an argument, the flag is passed by reference.
unsafe extern "C-unwind" fn query_in_fortran(
    extra_state: *mut c_void,
    status: *mut Status,
    code: *mut c_int,
) {
    *code = query(extra_state, status);
}

unsafe extern "C-unwind" fn free_in_fortran(extra_state: *mut c_void, code: *mut c_int) {
    *code = free(extra_state);
}

unsafe extern "C-unwind" fn cancel_in_fortran(
    extra_state: *mut c_void,
    complete: *mut c_int,
    code: *mut c_int,
) {
    *code = cancel(extra_state, *complete);
}

const NAME: &str = "MPI_Grequest_start";

fn start(functions: [usize; 3], code: (c_int, c_int)) {
    mock!(MPI_Grequest_start = take);
    let [query, free, cancel] = functions;
    let mut request = null(Kind::Request).0;
    answer_with(code.1);
    let found = call!(MPI_Grequest_start(
        query,
        free,
        cancel,
        scratch(1).cast(),
        &raw mut request
    ));
    answer_with(0);
    assert!(called(), "{NAME} is not called below");
    assert_eq!(found, code.0, "{NAME}: the code");
    assert_eq!(request, made(51).0, "{NAME}: the request");
}

pub fn check() {
    start([0; 3], failure());
    assert_eq!([kept(0), kept(1), kept(2)], [0; 3], "{NAME}: no functions");
    start(
        [
            query as *const () as usize,
            free as *const () as usize,
            cancel as *const () as usize,
        ],
        (0, 0),
    );
    check_calls();
    start(
        [
            query_in_fortran as *const () as usize,
            free_in_fortran as *const () as usize,
            cancel_in_fortran as *const () as usize,
        ],
        (0, 0),
    );
    // SAFETY: the callbacks of the last request are the three above, with Fortran's types.
    unsafe { compat::handwritten::generalized::last_is_in_fortran() };
    check_calls();
}

/// Calls the three callbacks that the backend received, as the backend does.
fn check_calls() {
    let state = std::ptr::with_exposed_provenance_mut::<c_void>(kept(3));
    // SAFETY: the first callback that the backend received is the query callback, of this type.
    let call_query: unsafe extern "C-unwind" fn(*mut c_void, *mut BelowStatus) -> c_int =
        unsafe { std::mem::transmute(kept(0)) };
    // SAFETY: the second callback is the free callback, of this type.
    let call_free: unsafe extern "C-unwind" fn(*mut c_void) -> c_int =
        unsafe { std::mem::transmute(kept(1)) };
    // SAFETY: the third callback is the cancel callback, of this type.
    let call_cancel: unsafe extern "C-unwind" fn(*mut c_void, c_int) -> c_int =
        unsafe { std::mem::transmute(kept(2)) };

    let mut status = filled(0);
    // SAFETY: the state is the one that the backend received, and the status is a local variable.
    let code = as_library(|| unsafe { call_query(state, &raw mut status) });
    assert_eq!(code, failure().1, "{NAME}: the code of the query function");
    arrives!(NAME; false, scratch(1).addr(), word("rank").0, word("tag").0, failure().0, 0x1_0000_0007i64);
    let found = F::status_above(&status);
    assert_eq!(found.source, constant("MPI_PROC_NULL").1, "{NAME}: source");
    assert_eq!(found.tag, word("tag").1, "{NAME}: tag");
    assert_eq!(found.error, other_failure().1, "{NAME}: error");
    assert_eq!(found.bytes(), 0x1_0000_0100, "{NAME}: count");

    // SAFETY: the state is the one that the backend received.
    let code = as_library(|| unsafe { call_cancel(state, 1) });
    assert_eq!(
        code,
        other_failure().1,
        "{NAME}: the code of the cancel function"
    );
    arrives!(NAME; false, scratch(1).addr(), 1);
    // SAFETY: the state is the one that the backend received, and this is the last call with it.
    let code = as_library(|| unsafe { call_free(state) });
    assert_eq!(code, failure().1, "{NAME}: the code of the free function");
    arrives!(NAME; false, scratch(1).addr());
}

//! Tests of arrays of requests and statuses.
//!
//! Each request is converted for the backend, and changed requests are converted back.

use super::*;

/// Records the requests that the backend receives.
unsafe fn arrive(count: c_int, requests: *const Below) {
    arrived();
    note!(count);
    for i in 0..count as usize {
        note!(*requests.add(i));
    }
}

/// Replaces the second request by a new one, and the third by the null request.
unsafe fn change(requests: *mut Below) {
    *requests.add(1) = made(90).1;
    *requests.add(2) = null(Kind::Request).1;
}

/// Fills `count` statuses, or records -1 if the caller ignores the statuses.
unsafe fn fill(statuses: *mut BelowStatus, count: c_int) {
    if statuses.addr() == BELOW.status_ignore() {
        note!(-1);
        return;
    }
    for i in 0..count as usize {
        *statuses.add(i) = filled(i);
    }
}

/// Checks the program's requests after a call. If `changed`, the call has run [`change`].
fn assert_requests(name: &str, found: &[Handle], before: &[(Handle, Below)], changed: bool) {
    let mut expected = of_program(before);
    if changed {
        expected[1] = made(90).0;
        expected[2] = null(Kind::Request).0;
    }
    assert_eq!(found, expected, "{name}: the requests");
}

/// Checks one function. `mut requests` means that the function changes the requests.
/// The list in brackets contains the names of the function's integer results.
/// The last argument is true if the function fills one status per request, false if only one.
macro_rules! check {
    ($name:ident: $pointer:tt requests, [$($integer:ident)*], $each:literal) => {{
        unsafe extern "C-unwind" fn mock(
            count: c_int,
            requests: *$pointer Below,
            $($integer: *mut c_int,)*
            statuses: *mut BelowStatus,
        ) -> c_int {
            arrive(count, requests);
            if stringify!($pointer) == "mut" {
                change(requests as *mut Below);
            }
            $( note!($integer.addr()); )*
            fill(statuses, if $each { count } else { 1 });
            answer()
        }
        let name = stringify!($name);
        for (length, (code, code_below)) in LENGTHS.into_iter().zip([(0, 0), failure()]) {
            for wanted in [true, false] {
                let list = handles(Kind::Request, length);
                let mut requests = of_program(&list);
                let mut statuses = vec![blank(); length];
                let place = match wanted {
                    true => statuses.as_mut_ptr(),
                    false => PROGRAM.status_ignore() as *mut Status,
                };
                $( let $integer = scratch(stringify!($integer).len()) as *mut c_int; )*
                mock!($name = mock);
                answer_with(code_below);
                let found = call!($name(length as c_int, requests.as_mut_ptr(), $($integer,)* place));
                answer_with(0);
                assert_eq!(found, code, "{name}: the code");
                let mut expected = list![length];
                expected.extend(list.iter().map(|pair| pair.1 as u64));
                $( expected.push($integer.addr() as u64); )*
                if !wanted {
                    expected.extend(list![-1]);
                }
                assert_eq!(noted(), expected, "{name}: what arrives below");
                assert_requests(name, &requests, &list, stringify!($pointer) == "mut");
                let filled = if $each { length } else { 1 };
                for i in 0..if wanted { filled } else { 0 } {
                    assert_filled(name, &statuses[i], i);
                }
            }
        }
    }};
}

unsafe extern "C-unwind" fn start(count: c_int, requests: *mut Below) -> c_int {
    arrive(count, requests);
    change(requests);
    answer()
}

fn startall() {
    for length in LENGTHS {
        let list = handles(Kind::Request, length);
        let mut requests = of_program(&list);
        mock!(MPI_Startall = start);
        answer_with(failure().1);
        let code = call!(MPI_Startall(length as c_int, requests.as_mut_ptr()));
        answer_with(0);
        assert_eq!(code, failure().0, "MPI_Startall: the code");
        let mut expected = list![length];
        expected.extend(list.iter().map(|pair| pair.1 as u64));
        assert_eq!(noted(), expected, "MPI_Startall: what arrives below");
        assert_requests("MPI_Startall", &requests, &list, true);
    }
}

pub fn check() {
    check!(MPI_Waitall: mut requests, [], true);
    check!(MPI_Testall: mut requests, [flag], true);
    check!(MPI_Waitany: mut requests, [index], false);
    check!(MPI_Testany: mut requests, [index flag], false);
    check!(MPI_Waitsome: mut requests, [completed indices], true);
    check!(MPI_Testsome: mut requests, [completed indices], true);
    check!(MPI_Request_get_status_all: const requests, [flag], true);
    check!(MPI_Request_get_status_any: const requests, [index flag], false);
    check!(MPI_Request_get_status_some: const requests, [completed indices], true);
    startall();
}

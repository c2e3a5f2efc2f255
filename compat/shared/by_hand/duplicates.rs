//! Tests of nonblocking duplication. The backend stores the new handle during the call or later.

use super::*;

/// Indices at which `see` records the communicator and the info that the backend receives.
pub const COMM: usize = 0;
pub const INFO: usize = 1;

pub fn assert_started(name: &str, found: c_int, request: Handle) {
    assert!(called(), "{name} is not called below");
    assert_eq!(found, failure().0, "{name}: the code");
    assert_eq!(request, made(52).0, "{name}: the request");
    assert_eq!(
        seen(COMM),
        predefined(Kind::Comm).1 as u64,
        "{name}: the communicator"
    );
}

pub fn assert_delivered(name: &str, new: &Handle, at_once: bool) {
    let new = &raw const *new;
    if !at_once {
        // SAFETY: the last duplication is not delivered yet.
        // The caller's `new` is the variable for its result.
        unsafe { direction::deliver(made(53).1) };
    }
    // SAFETY: `new` is the address of a handle variable of the caller.
    let found = unsafe { new.read_volatile() };
    assert_eq!(found, made(53).0, "{name}: what the program finds");
}

pub fn check() {
    let comm = predefined(Kind::Comm);
    for at_once in [true, false] {
        let name = "MPI_Comm_idup";
        let (mut new, mut request) = (made(1).0, null(Kind::Request).0);
        direction::take_duplicates(at_once);
        answer_with(failure().1);
        let code = call!(MPI_Comm_idup(comm.0, &raw mut new, &raw mut request));
        answer_with(0);
        assert_started(name, code, request);
        if !direction::FOREIGN {
            assert_eq!(seen(INFO), null(Kind::Info).1 as u64, "{name}: no info");
        }
        assert_delivered(name, &new, at_once);

        let name = "MPI_Comm_idup_with_info";
        let info = predefined(Kind::Info);
        let (mut new, mut request) = (made(1).0, null(Kind::Request).0);
        direction::take_duplicates(at_once);
        answer_with(failure().1);
        let code = call!(MPI_Comm_idup_with_info(
            comm.0,
            info.0,
            &raw mut new,
            &raw mut request
        ));
        answer_with(0);
        assert_started(name, code, request);
        assert_eq!(seen(INFO), info.1 as u64, "{name}: the info");
        assert_delivered(name, &new, at_once);
    }
}

//! Tests of nonblocking shrinking (`MPIX_Comm_ishrink`).
//!
//! As in a duplication, the backend stores the new handle during the call or later.

use super::super::by_hand::duplicates::{assert_delivered, assert_started};
use super::*;

/// Installs a mock that shrinks communicators. The handle is stored during the call if `at_once`.
fn take_shrinking(at_once: bool) {
    mock!(MPIX_Comm_ishrink = idup);
    keep(2, at_once.into());
}

pub fn check() {
    for at_once in [true, false] {
        let name = "MPIX_Comm_ishrink";
        let (mut new, mut request) = (made(1).0, null(Kind::Request).0);
        take_shrinking(at_once);
        answer_with(failure().1);
        let comm = predefined(Kind::Comm).0;
        let code = call!(MPIX_Comm_ishrink(comm, &raw mut new, &raw mut request));
        answer_with(0);
        assert_started(name, code, request);
        assert_delivered(name, &new, at_once);
    }
}

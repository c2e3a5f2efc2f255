//! Generalized requests (section 13.2): operations of the program with a request handle.
//!
//! Protocol: the program marks the operation as complete.
//! The waiting thread calls the query callback for the status.
//! The free callback is called once, when the handle is released.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::error::Failure;
use crate::object::status::EMPTY;
use crate::thrown::guarded;
use std::cell::Cell;
use std::ffi::{c_int, c_void};

/// A request that the program completes itself (section 13.2).
#[derive(Debug)]
pub struct General {
    pub query: MPI_Grequest_query_function,
    pub free: MPI_Grequest_free_function,
    pub cancel: MPI_Grequest_cancel_function,
    pub extra_state: *mut c_void,
    pub complete: Cell<bool>,
}

impl General {
    pub(crate) fn query(&self) -> (MPI_Status, Option<Failure>) {
        let mut status = EMPTY;
        let (query, extra, place) = (self.query, self.extra_state, &raw mut status);
        // SAFETY: the program passed this function to MPI_Grequest_start as the query callback.
        // The status is a local variable.
        let code = guarded(MPI_SUCCESS, move || unsafe { query(extra, place) });
        let failure = (code != MPI_SUCCESS).then(|| refused("query", code));
        (status, failure)
    }

    pub(crate) fn free(&self) -> Option<Failure> {
        let (free, extra) = (self.free, self.extra_state);
        // SAFETY: the program passed this function to MPI_Grequest_start as the free callback.
        let code = guarded(MPI_SUCCESS, move || unsafe { free(extra) });
        (code != MPI_SUCCESS).then(|| refused("free", code))
    }

    pub(crate) fn cancel(&self) -> Result<(), Failure> {
        let (cancel, extra, complete) = (self.cancel, self.extra_state, self.complete.get().into());
        // SAFETY: the program passed this function to MPI_Grequest_start as the cancel callback.
        match guarded(MPI_SUCCESS, move || unsafe { cancel(extra, complete) }) {
            MPI_SUCCESS => Ok(()),
            code => Err(refused("cancel", code)),
        }
    }
}

fn refused(which: &str, code: c_int) -> Failure {
    Failure::new(
        code,
        format!("the {which} function of a generalized request returned {code}"),
    )
}

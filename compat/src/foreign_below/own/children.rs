//! An operation that is some operations below, all of which have to end.

use super::{End, Operation, empty};
use crate::below;
use crate::family::Kind;
use crate::foreign_below::Foreign;
use std::any::Any;
use std::ffi::c_int;

/// Starts the operations below of one turn.
pub type Start<F> = dyn FnMut() -> Result<Vec<<F as crate::Family>::Below>, c_int> + Send;

/// The operations below, of which one gives the status.
pub struct Children<F: Foreign> {
    requests: Vec<F::Below>,
    shown: usize,
    status: Option<F::BelowStatus>,
    code: c_int,
    again: Option<Box<Start<F>>>,
    /// Memory that the operations use.
    _kept: Option<Box<dyn Any + Send>>,
}

impl<F: Foreign> Children<F> {
    /// Operations under way; the status is that of number `shown`, or an empty one if there is no such.
    pub fn new(requests: Vec<F::Below>, shown: usize, kept: Option<Box<dyn Any + Send>>) -> Self {
        Children {
            requests,
            shown,
            status: None,
            code: 0,
            again: None,
            _kept: kept,
        }
    }

    /// An operation that starts one below in each turn.
    pub fn persistent(again: Box<Start<F>>) -> Self {
        Children {
            again: Some(again),
            ..Self::new(Vec::new(), 0, None)
        }
    }

    /// Another turn.
    pub fn restart(&mut self, requests: Vec<F::Below>) {
        (self.requests, self.status, self.code) = (requests, None, 0);
    }

    /// Asks each operation below whether it has ended.
    ///
    /// # Safety
    /// Between init and finalize.
    pub unsafe fn test(&mut self) -> Option<End<F>> {
        let null = F::null(Kind::Request);
        for (i, request) in self.requests.iter_mut().enumerate() {
            if *request == null {
                continue;
            }
            let (mut flag, mut status) = (0, F::status_below(&crate::convert::BLANK));
            // SAFETY: a request of the library below that this operation alone has.
            let code = unsafe { (below::MPI_Test::<F>())(request, &raw mut flag, &raw mut status) };
            if code != 0 {
                self.code = code;
                *request = null;
            } else if flag == 0 {
                continue;
            }
            if i == self.shown {
                self.status = Some(status);
            }
        }
        if self.requests.iter().any(|request| *request != null) {
            return None;
        }
        Some((self.status.unwrap_or_else(empty::<F>), self.code))
    }
}

impl<F: Foreign> Operation<F> for Children<F> {
    unsafe fn advance(&mut self) -> Option<End<F>> {
        // SAFETY: passed on.
        unsafe { self.test() }
    }

    fn is_persistent(&self) -> bool {
        self.again.is_some()
    }

    unsafe fn start(&mut self) -> c_int {
        let Some(again) = self.again.as_mut() else {
            return 0;
        };
        match again() {
            Ok(requests) => {
                self.restart(requests);
                0
            }
            Err(code) => code,
        }
    }

    unsafe fn cancel(&mut self) {
        for request in &mut self.requests {
            if *request != F::null(Kind::Request) {
                // SAFETY: a request of the library below that is active.
                unsafe { (below::MPI_Cancel::<F>())(request) };
            }
        }
    }
}

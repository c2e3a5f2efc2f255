//! An emulated operation made of backend operations. It completes when all have completed.

use super::{End, Operation, empty};
use crate::backend;
use crate::family::Kind;
use crate::foreign_below::Foreign;
use std::any::Any;
use std::ffi::c_int;

/// Starts the backend operations of a persistent operation, and returns their requests.
pub type Start<F> = dyn FnMut() -> Result<Vec<<F as crate::Family>::Below>, c_int> + Send;

/// The backend operations of an emulated operation. One of them provides the status.
pub struct Children<F: Foreign> {
    requests: Vec<F::Below>,
    shown: usize,
    status: Option<F::BelowStatus>,
    code: c_int,
    again: Option<Box<Start<F>>>,
    /// The name of the operation for the error text, if the operation cannot be cancelled.
    uncancellable: Option<&'static str>,
    /// The memory that the backend operations access, for example converted arrays.
    _kept: Option<Box<dyn Any + Send>>,
}

impl<F: Foreign> Children<F> {
    /// Makes an active operation from the backend's requests.
    /// The status is that of `requests[shown]`, or the empty status if there is no such request.
    pub fn new(requests: Vec<F::Below>, shown: usize, kept: Option<Box<dyn Any + Send>>) -> Self {
        Children {
            requests,
            shown,
            status: None,
            code: 0,
            again: None,
            uncancellable: None,
            _kept: kept,
        }
    }

    /// Makes a persistent operation. Each start calls `again`.
    pub fn persistent(again: Box<Start<F>>) -> Self {
        Children {
            again: Some(again),
            ..Self::new(Vec::new(), 0, None)
        }
    }

    /// Disables cancellation. The error text names the operation as `kind`.
    pub fn uncancellable(self, kind: &'static str) -> Self {
        Children {
            uncancellable: Some(kind),
            ..self
        }
    }

    /// Replaces the backend's requests, at the start of a persistent operation.
    pub fn restart(&mut self, requests: Vec<F::Below>) {
        (self.requests, self.status, self.code) = (requests, None, 0);
    }

    /// Tests all backend operations. Returns the result after all have ended.
    ///
    /// # Safety
    /// MPI is initialized and not finalized.
    pub unsafe fn test(&mut self) -> Option<End<F>> {
        let null = F::null(Kind::Request);
        for (i, request) in self.requests.iter_mut().enumerate() {
            if *request == null {
                continue;
            }
            let (mut flag, mut status) = (0, F::status_below(&crate::convert::BLANK));
            // SAFETY: the request is one of the backend, and only this operation stores it.
            let code =
                unsafe { (backend::MPI_Test::<F>())(request, &raw mut flag, &raw mut status) };
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
        // SAFETY: MPI is initialized, by contract of `advance`.
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

    unsafe fn cancel(&mut self) -> Result<(), &'static str> {
        if let Some(kind) = self.uncancellable {
            return Err(kind);
        }
        for request in &mut self.requests {
            if *request != F::null(Kind::Request) {
                // SAFETY: the request is an active request of the backend.
                unsafe { (backend::MPI_Cancel::<F>())(request) };
            }
        }
        Ok(())
    }
}

//! Failures of MPI calls: error classes, codes, texts, and error handlers.
//!
//! Each layer below this crate has its own closed error enum.
//! This module converts such an error to a [`Failure`]: an MPI error code and a message.
//! [`codes`] holds the classes and codes that programs add, and [`handler`] the error handlers.
//! [`raise`](crate::raise) finds and calls the handler of a failure.
//! This module does not use the object tables.

pub mod codes;
mod contextual;
mod convert;
pub mod handler;
mod target;
pub mod unread_errors;

pub use contextual::{Context, Contextual, Release};
pub use target::Target;

use crate::abi::*;
use crate::functions;
use std::any::Any;
use std::ffi::c_int;
use std::rc::Rc;

/// The failure of an MPI call.
///
/// Boxed, so that the result of a successful call fits in a register.
#[derive(Clone, Debug)]
pub struct Failure(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    code: c_int,
    message: String,
    target: Option<Target>,
    /// An object that must live until the failure has been raised.
    kept: Option<Rc<dyn Any>>,
}

impl Failure {
    /// Makes a failure from a class or an added code, and a message for the user.
    #[cold]
    pub fn new(code: c_int, message: impl Into<String>) -> Self {
        Failure(Box::new(Inner {
            code,
            message: message.into(),
            target: None,
            kept: None,
        }))
    }

    /// Raises the failure on `target`, instead of on the object among the call's arguments.
    ///
    /// Completion calls need this: the communicator of a request is not an argument.
    pub fn on(mut self, target: Target) -> Self {
        self.0.target = Some(target);
        self
    }

    /// Raises the failure on `target`, and keeps an object alive until the handler has been called.
    pub(crate) fn on_kept(self, target: Target, kept: Rc<dyn Any>) -> Self {
        let mut failure = self.on(target);
        failure.0.kept = Some(kept);
        failure
    }

    /// Drops the object that is kept alive, for a caller that leaves the lock of that object.
    pub fn without_object(mut self) -> Self {
        self.0.kept = None;
        self
    }

    /// Replaces the code of the failure.
    pub fn with_code(mut self, code: c_int) -> Self {
        self.0.code = code;
        self
    }

    /// Makes the failure for an unimplemented function `id`.
    #[cold]
    pub fn unsupported(id: usize) -> Self {
        Failure::new(
            MPI_ERR_UNSUPPORTED_OPERATION,
            format!("{} is not implemented yet", functions::name(id)),
        )
    }

    /// Makes the failure for an unimplemented function of the tool interface.
    #[cold]
    pub fn unsupported_tool() -> Self {
        Failure::new(
            MPI_T_ERR_NOT_SUPPORTED,
            "this function of the tool interface is not implemented yet",
        )
    }

    pub fn code(&self) -> c_int {
        self.0.code
    }

    /// Returns true if the failure reports a failed process or a revoked communicator.
    pub fn is_of_fault_tolerance(&self) -> bool {
        FAULT_CLASSES
            .iter()
            .any(|(class, ..)| *class == self.0.code)
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn target(&self) -> Option<Target> {
        self.0.target
    }
}

/// The ULFM error classes, which MPI 5.0 does not define. The numbers are those of Open MPI.
pub const MPIX_ERR_PROC_FAILED: c_int = 75;
pub const MPIX_ERR_PROC_FAILED_PENDING: c_int = 76;
pub const MPIX_ERR_REVOKED: c_int = 77;

const FAULT_CLASSES: &[(c_int, &str, &str)] = &[
    (
        MPIX_ERR_PROC_FAILED,
        "MPIX_ERR_PROC_FAILED",
        "a process that the operation needs has failed",
    ),
    (
        MPIX_ERR_PROC_FAILED_PENDING,
        "MPIX_ERR_PROC_FAILED_PENDING",
        "a receive from any source is still in progress, and a process that might serve it has failed",
    ),
    (
        MPIX_ERR_REVOKED,
        "MPIX_ERR_REVOKED",
        "the communicator has been revoked",
    ),
];

/// The result of the MPI functions in this crate.
pub type Outcome = Result<(), Failure>;

/// Returns the name and the text of a predefined class.
pub fn class_text(class: c_int) -> Option<(&'static str, &'static str)> {
    ERROR_CLASSES
        .iter()
        .chain(FAULT_CLASSES)
        .find(|(c, _, _)| *c == class)
        .map(|(_, name, text)| (*name, *text))
}

//! The error type of the engine, which holds an error of any layer.
//!
//! Each layer has its own error type, which implements [`Failure`]. `mpi-abi` downcasts to these
//! types and assigns the MPI error classes.

use crate::datatype::NoMemory;
use crate::op::OpError;
use crate::status::Status;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// An error type of a layer. Its text is a complete sentence.
pub trait Failure: std::error::Error + Send + Sync + 'static {
    /// Returns the status of the message that a failed receive got,
    /// if any: its envelope and the number of bytes in the buffer.
    fn received(&self) -> Option<Status> {
        None
    }
}

impl Failure for NoMemory {}

impl Failure for OpError {}

/// A [`Failure`] as a trait object that can be downcast.
trait Held: fmt::Display + Send + Sync {
    fn received(&self) -> Option<Status>;
    fn as_any(&self) -> &dyn Any;
}

impl<F: Failure> Held for F {
    fn received(&self) -> Option<Status> {
        Failure::received(self)
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

struct Shared(Arc<dyn Held>);

/// An error of any operation. Its text is a complete sentence.
///
/// The shared value is boxed, so that the `Result` of a successful operation fits in a register.
pub struct Error(Box<Shared>);

impl Error {
    fn held(&self) -> &dyn Held {
        &*self.0.0
    }

    /// Returns the error as an `F`, if it is an error of this type.
    pub fn find<F: Failure>(&self) -> Option<&F> {
        self.held().as_any().downcast_ref()
    }

    /// Returns the status of the message that a failed receive got,
    /// if any: its envelope and the number of bytes in the buffer.
    pub fn received(&self) -> Option<Status> {
        self.held().received()
    }
}

impl<F: Failure> From<F> for Error {
    #[cold]
    fn from(failure: F) -> Error {
        Error(Box::new(Shared(Arc::new(failure))))
    }
}

impl Clone for Error {
    fn clone(&self) -> Error {
        Error(Box::new(Shared(self.0.0.clone())))
    }
}

impl PartialEq for Error {
    /// Errors are equal if they have the same type and the same text.
    fn eq(&self, other: &Error) -> bool {
        let layer = |error: &Error| error.held().as_any().type_id();
        layer(self) == layer(other) && self.to_string() == other.to_string()
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.held(), f)
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Lost(u32);

    impl fmt::Display for Lost {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "rank {} is lost", self.0)
        }
    }

    impl std::error::Error for Lost {}

    impl Failure for Lost {
        fn received(&self) -> Option<Status> {
            (self.0 == 0).then_some(Status::EMPTY)
        }
    }

    #[test]
    fn an_error_is_its_layers_own_in_text_and_value() {
        let error = Error::from(Lost(3));
        assert_eq!(error.to_string(), "rank 3 is lost");
        assert_eq!(error.find::<Lost>(), Some(&Lost(3)));
        assert!(error.find::<OpError>().is_none());
        assert_eq!(error, error.clone());
        assert_ne!(error, Error::from(Lost(4)));
        assert_eq!(error.received(), None);
        assert_eq!(Error::from(Lost(0)).received(), Some(Status::EMPTY));
    }

    #[test]
    fn the_result_of_what_went_well_is_one_word() {
        assert_eq!(size_of::<Result<(), Error>>(), size_of::<usize>());
    }
}

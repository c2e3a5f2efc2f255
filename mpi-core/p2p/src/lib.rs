//! Point-to-point messages: requests ([`request`]), matching, and the protocols that transfer a message's data ([`pml`]).
//!
//! Messages are distinguished by a context and a group.
//! This package does not know communicators and does not depend on the package that defines them.
//!
//! Interface for the layers above:
//! * [`pml::Pml`]: sends, receives, probes, cancels, and progress;
//! * [`request::Table`]: the active requests by ID or by handle, and the outcomes of completed ones;
//!   a request's state can be any future ([`request::Body::Coll`]), which only the engine polls;
//! * [`observer::Observer`]: the callbacks with which a trace, a recording or a tool observes messages;
//! * [`pml::Counts`]: counters of rare events; they are always active.

#![deny(unsafe_code)]

#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod observer;
pub mod pml;
pub mod request;

use mpi_transport::{bml, btl, trial};
use mpi_types::{datatype, error::Error, group};

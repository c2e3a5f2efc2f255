//! Point-to-point messages: requests ([`request`]), matching and the protocols that carry a message's data ([`pml`]).
//!
//! A context and a group tell messages apart; of communicators nothing is known here, and the package does not depend on theirs.
//!
//! What the layers above use:
//! * [`pml::Pml`]: sends, receives, probes, cancels, and the one call that makes progress;
//! * [`request::Table`]: requests by name, their outcomes; [`request::Body::Coll`] holds any future, and only the engine polls it;
//! * [`observer::Observer`]: how a trace or a recording sees messages leave and meet.

#![deny(unsafe_code)]

pub mod observer;
pub mod pml;
pub mod request;

use mpi_transport::{bml, btl, trial};
use mpi_types::{datatype, error::Error, group};

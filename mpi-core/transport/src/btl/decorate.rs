//! Decorators: transports that wrap another transport and add one function, such as a trace.
//!
//! A decorator is enabled by its own parameters.
//! It wraps every opened transport. The order is that of [`super::DECORATORS`]; the first decorator is the innermost:
//! injected faults act on the wire, the trace records the messages that the wire delivers,
//! and the checksum detects damaged messages.

use super::{OpenContext, OpenError, Transport};
use mpi_base::param::About;

/// A component that wraps other components' transports.
pub struct Decorator {
    pub name: &'static str,
    /// All parameters that `mpi-info` lists for the decorator.
    pub params: &'static [&'static About],
    /// Wraps a transport if the decorator's parameters request it;
    /// `number` is the index of the transport in this process. Returns the transport unchanged otherwise.
    pub wrap: fn(&OpenContext<'_>, u32, Transport) -> Result<Transport, OpenError>,
}

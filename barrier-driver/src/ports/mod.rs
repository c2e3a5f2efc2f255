//! What carries a node's two wires, opened by a line of text such as `parport:0x378,out=D0,in=nACK`.
//!
//! # The promise
//!
//! [`open`] claims a port for this process alone and hands out two embedded-hal pins, without moving the wire:
//! the level that a dead job has left is [`ToggleBarrier::open`](crate::ToggleBarrier::open)'s to overwrite,
//! because only after reading the barrier's wire is it known which level is idle.
//! What cannot be claimed is refused with a sentence that says which right or which part of the kernel is missing.
//! Both pins may go to any thread, and dropping them gives the port back.
//!
//! # The text
//!
//! ```text
//! name[:place][,key=value]...
//! ```
//!
//! A `!` before a line inverts it, for wiring with an inverting buffer.
//! What a port does to its lines by itself is undone by its driver, so that high always means high at the connector.
//!
//! # The registry
//!
//! A port is one row of [`PORTS`]: its name, its syntax, a sentence of help, and the function that opens it.
//! A port that this build lacks keeps its row and says which cargo feature it needs.

mod boxed;
mod error;
mod gpio;
pub mod parallel;
mod ppdev;
mod rpi;
mod spec;
mod x86;

pub use boxed::{BoxedIn, BoxedOut, BoxedWires};
pub use error::{PortError, WireError};

use spec::Spec;

/// A row of the registry.
#[derive(Debug, Clone, Copy)]
pub struct PortKind {
    /// What the text begins with.
    pub name: &'static str,
    /// How the text goes on.
    pub syntax: &'static str,
    /// What the port is and what it needs.
    pub help: &'static str,
    open: fn(&Spec<'_>) -> Result<BoxedWires, PortError>,
}

/// Every port, in the order in which help lists them.
pub const PORTS: &[PortKind] = &[x86::KIND, ppdev::KIND, gpio::KIND, rpi::KIND];

/// Opens the port that `text` names and claims it for this process until both pins are dropped.
pub fn open(text: &str) -> Result<BoxedWires, PortError> {
    let name = text.split([':', ',']).next().unwrap_or(text).trim();
    let kind = PORTS
        .iter()
        .find(|kind| kind.name == name)
        .ok_or_else(|| PortError::Unknown { name: name.into() })?;
    (kind.open)(&Spec::parse(text, kind.syntax)?)
}

#[cfg(test)]
mod tests;

//! Ports: the hardware that carries a node's two wires, opened from a line of text such as `parport:0x378,out=D0,in=nACK`.
//!
//! # The guarantee
//!
//! [`open`] claims a port exclusively for this process and returns two embedded-hal pins, without changing the wire's level:
//! [`ToggleBarrier::open`](crate::ToggleBarrier::open) overwrites the level that a dead job has
//! left, because the idle level is known only after the barrier's wire has been read.
//! If the port cannot be claimed, the error message names the missing right or kernel support.
//! The pins can be sent to any thread, and dropping all of them releases the port.
//! [`BoxedWires::resting`] restores the wire when a process ends without closing it, see [`last_resort`](crate::last_resort).
//!
//! # The text
//!
//! ```text
//! name[:place][,key=value]...
//! ```
//!
//! With the lines of barrier version 2, `out=` and `in=` list several lines, as in `out=2+3+4+5+6+7+8+9`: see [`open_channels`].
//! A `!` before a line inverts the line, for wiring with an inverting buffer.
//! The ports `uio` and `mem` name a node instead of lines: see `registers`.
//! The driver compensates a port's own inversions, so high always means high at the connector.
//!
//! # The registry
//!
//! A port is one row of [`PORTS`]: its name, its syntax, a sentence of help, and the function that opens the port.
//! A port that this build does not contain keeps its row; its error names the missing cargo feature.

mod boxed;
#[cfg(target_os = "linux")]
mod byte_lock;
mod claimed;
mod error;
mod gpio;
pub mod parallel;
mod ppdev;
mod registers;
mod rpi;
#[cfg(target_os = "linux")]
mod sleep;
pub(crate) mod spec;
mod x86;

pub use crate::port_error::PortError;
pub use boxed::{
    BoxedChannel, BoxedChannels, BoxedIn, BoxedOut, BoxedProgrammer, BoxedWires, Pause,
};
pub use claimed::{Lines, Resting};
pub use error::WireError;

use crate::channels::{Programmer, ReleaseLine, SerialPins};
use claimed::{Claimed, Elsewhere, Wanted};
use fpga_model::channels::MAX_CHANNELS;
use spec::Spec;
use std::sync::Arc;

/// A row of the registry: one kind of port.
#[derive(Debug, Clone, Copy)]
pub struct PortKind {
    /// The port's name: the first word of the text.
    pub name: &'static str,
    /// The syntax of the text for [`open`].
    pub syntax: &'static str,
    /// The syntax of the text for [`open_channels`].
    pub channels_syntax: &'static str,
    /// Description of the port and its requirements.
    pub help: &'static str,
    /// The default lines of barrier version 2: those to the board, and those from the board.
    usual: Option<(&'static [&'static str], &'static [&'static str])>,
    /// The keys of a text that names a node of a register block; empty for ports with lines, whose keys are `out` and `in`.
    options: &'static [&'static str],
    claim: Claim,
}

/// Claims the requested lines without changing their levels.
type Claim = fn(&Spec<'_>, &Wanted<'_>) -> Result<Arc<dyn Claimed>, PortError>;

/// All ports, in the order of the help text.
pub const PORTS: &[PortKind] = &[
    x86::KIND,
    ppdev::KIND,
    gpio::KIND,
    rpi::KIND,
    registers::UIO,
    registers::MEM,
];

/// Number of the serial lines clock, data and select; they follow the arrival lines of all channels.
const SERIAL: usize = 3;

/// Opens the port that `text` names and claims it for this process until both pins are dropped.
pub fn open(text: &str) -> Result<BoxedWires, PortError> {
    let kind = kind_of(text)?;
    let spec = Spec::parse(text, kind.syntax)?;
    let wanted = if kind.options.is_empty() {
        spec.finish(&["out", "in"])?;
        Wanted::pair(&spec)?
    } else {
        spec.finish(kind.options)?;
        Wanted::node()
    };
    let port = (kind.claim)(&spec, &wanted)?;
    Ok(BoxedWires {
        out: BoxedOut::of(&port, 0),
        input: BoxedIn::of(&port, 0),
        resting: Resting::new(&port, &wanted),
    })
}

/// Maps the register block of a port `uio` or `mem` without claiming the node that `text` names; returns the block and the node's group.
#[cfg(target_os = "linux")]
pub fn register_block(text: &str) -> Result<(crate::registers::RegisterBlock, u32), PortError> {
    let kind = kind_of(text)?;
    let spec = Spec::parse(text, kind.syntax)?;
    if kind.options.is_empty() {
        return Err(
            spec.wrong("this port has no registers: uio and mem are ports of a register block")
        );
    }
    spec.finish(kind.options)?;
    registers::block(&spec)
}

/// Opens the port that `text` names with the lines of version 2, and claims it until all pins are dropped.
///
/// `out=` names the arrival lines of the five channels, then serial clock, data and select;
/// `in=` names the releases of the five channels; the last one also carries the replies.
/// The defaults of a parallel port are D0 to D7, and nERROR, SELECT, PE, nACK, BUSY.
///
/// The arrival lines keep their levels. A serial session (clock, data, select) that a dead job has left open is ended.
pub fn open_channels(text: &str) -> Result<BoxedChannels, PortError> {
    let kind = kind_of(text)?;
    let spec = Spec::parse(text, kind.channels_syntax)?;
    if !kind.options.is_empty() {
        return Err(spec.wrong(
            "a register block has groups instead of channels, and each group is opened by itself",
        ));
    }
    spec.finish(&["out", "in"])?;
    let count = (MAX_CHANNELS + SERIAL, MAX_CHANNELS);
    let wanted = Wanted::many(&spec, count, kind.usual)?;
    let port = (kind.claim)(&spec, &wanted)?;
    channels_of(&port, text, Resting::new(&port, &wanted))
}

/// As [`open_channels`], with `lines` instead of a port of this machine; `name` is used in messages.
pub fn channels_over(lines: impl Lines, name: &str) -> Result<BoxedChannels, PortError> {
    let port: Arc<dyn Claimed> = Arc::new(Elsewhere {
        lines,
        name: name.to_owned(),
    });
    let resting = Resting::of_channels(&port);
    channels_of(&port, name, resting)
}

fn channels_of(
    port: &Arc<dyn Claimed>,
    text: &str,
    resting: Resting,
) -> Result<BoxedChannels, PortError> {
    let reply = BoxedIn::of(port, MAX_CHANNELS - 1).shared();
    let [clock, data, select] = [0, 1, 2].map(|serial| BoxedOut::of(port, MAX_CHANNELS + serial));
    let pins = SerialPins {
        clock,
        data,
        select,
    };
    let programmer =
        Programmer::new(pins, reply.clone(), Pause).map_err(|e| PortError::Refused {
            port: text.into(),
            step: "end a serial session",
            cause: e.to_string(),
        })?;
    let channels = core::array::from_fn(|channel| BoxedChannel {
        out: BoxedOut::of(port, channel),
        input: if channel + 1 == MAX_CHANNELS {
            ReleaseLine::Shared(reply.clone())
        } else {
            ReleaseLine::Own(BoxedIn::of(port, channel))
        },
    });
    Ok(BoxedChannels {
        channels,
        programmer,
        resting,
    })
}

fn kind_of(text: &str) -> Result<&'static PortKind, PortError> {
    let name = text.split([':', ',']).next().unwrap_or(text).trim();
    let known = PORTS.iter().find(|kind| kind.name == name);
    known.ok_or_else(|| PortError::Unknown {
        name: name.into(),
        known: PORTS.iter().map(|kind| kind.name).collect(),
    })
}

#[cfg(test)]
mod tests;

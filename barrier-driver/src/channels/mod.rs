//! Version 2: several barriers on one port, each with its own members; the driver for `fpga_model::channels`.
//!
//! # The parts
//!
//! * [`Programmer`] sends requests to the hardware over a node's serial lines: setting and reading the members of a channel,
//!   the arrived and the late ones. A frame that is truncated, noisy or refused programs nothing.
//! * [`ChannelBarrier`] is a node's end of one channel, with the interface of [`ToggleBarrier`](crate::ToggleBarrier),
//!   which it wraps: for its members, a channel *is* a toggle barrier.
//! * [`ReplyLine`] is the status line that carries both the fifth channel's release and the replies: `LastLine` between threads
//!   (feature `std`), [`LocalLine`] on one thread.
//!
//! # The life of a channel
//!
//! ```text
//! all members:   line to rest, fence          one of them takes the channel      fence
//! all members:   enter, wait, enter, wait, ...
//! all members:   line to rest, fence          one of them gives it back
//! ```
//!
//! The hardware refuses a channel that other members have, and one with a member whose line is not at rest, and names those nodes.
//! So a line left over from a dead job cannot become an arrival, and two jobs cannot get one channel.
//!
//! # Dead members
//!
//! More than half of the members can have the others dropped ([`ChannelBarrier::contain`]).
//! One of two nodes cannot, and frees the channel instead ([`ChannelBarrier::free_without`]); a [`Heartbeat`] on a channel of its own
//! finds out that a node has died.
//!
//! # Ownership
//!
//! A `Programmer` owns the node's clock, data and select. Only one process has the port, so each node has one programmer;
//! the hardware arbitrates between nodes, and the driver retries if the receiver was granted to another node.
//!
//! # What a node that reboots can do
//!
//! It cannot program anything and cannot keep the receiver.
//! Its arrival line can fall as in version 1: a transition from high to low counts as an arrival.
//! [`ReturningBarrier`](crate::ReturningBarrier) over [`ChannelBarrier::into_toggle`] prevents that, as in version 1.

mod barrier;
mod error;
mod heartbeat;
#[cfg(feature = "std")]
mod last_line;
mod programmer;
mod reply_line;

pub use barrier::{ChannelBarrier, Membership};
pub use error::{ChannelCloseError, ChannelOpenError, ProgramError};
pub use fpga_model::channels::frame::{Counts, Identity, Operation, Status};
pub use heartbeat::{Heartbeat, Pulse, Rhythm};
#[cfg(feature = "std")]
pub use last_line::{LastLine, ReleaseLine};
pub use programmer::{Programmer, SerialPins};
pub use reply_line::{LocalLine, ReplyLine};

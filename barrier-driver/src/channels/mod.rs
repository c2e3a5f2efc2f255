//! Version 2: several barriers on one port, each among its members; the driver's half of `fpga_model::channels`.
//!
//! # The parts
//!
//! * [`Programmer`] speaks to the hardware over a node's serial lines: which node takes part in which channel, which have arrived,
//!   which were late. Nothing is programmed by a frame that is torn, noisy or refused.
//! * [`ChannelBarrier`] is a node's end of one channel, with the shape of [`ToggleBarrier`](crate::ToggleBarrier),
//!   which it is made of: a channel among its members *is* a toggle barrier.
//! * [`LastLine`] is the status line that the fifth channel's release shares with the replies.
//!
//! # The life of a channel
//!
//! ```text
//! all members:   line to rest, fence          one of them takes the channel      fence
//! all members:   enter, wait, enter, wait, ...
//! all members:   line to rest, fence          one of them gives it back
//! ```
//!
//! The hardware refuses a channel that others have, and one with a member whose line is not at rest, by the name of the node.
//! So a line that a dead job has left cannot become an arrival, and two jobs cannot get one channel.
//!
//! # Which code may touch what
//!
//! A `Programmer` owns the node's clock, data and select. One process has a port, so it is one for each node;
//! between nodes the hardware arbitrates, and the driver tries again when another node was being listened to.
//!
//! # What a node that reboots can do
//!
//! It cannot program anything and cannot stay in the receiver.
//! Its arrival line can fall as in version 1: going from high to low that counts as an arrival.
//! [`ReturningBarrier`](crate::ReturningBarrier) over [`ChannelBarrier::into_toggle`] is the cure, as it is there.

mod barrier;
mod error;
mod last_line;
mod programmer;

pub use barrier::{ChannelBarrier, Seat};
pub use error::{ChannelCloseError, ChannelOpenError, ProgramError};
pub use fpga_model::channels::frame::{Counts, Identity, Operation, Status};
pub use last_line::{LastLine, ReleaseLine};
pub use programmer::{Programmer, SerialPins};

//! The driver of barrier version 2 (`fpga_model::channels`): several barriers on one port, each with its own members.
//!
//! # The parts
//!
//! * [`Programmer`] sends requests to the hardware over a node's serial lines: to set and read the members of a channel,
//!   and to read which of them have arrived or are late. A truncated, noisy or refused request changes nothing.
//! * [`ChannelBarrier`] is a node's end of one channel, with the interface of [`ToggleBarrier`](crate::ToggleBarrier),
//!   which it wraps: each channel behaves as a toggle barrier of its members.
//! * [`ReplyLine`] is the status line that carries the fifth channel's release and the replies: use `LastLine` if several threads
//!   share it (feature `std`), [`LocalLine`] in a program with one thread.
//!
//! # The life of a channel
//!
//! ```text
//! all members:   line to rest, fence          one of them takes the channel      fence
//! all members:   enter, wait, enter, wait, ...
//! all members:   line to rest, fence          one of them gives it back
//! ```
//!
//! The hardware gives no channel to new members if others have it, or if a new member's line is not at rest, and names those nodes.
//! So a line left over from a dead job cannot become an arrival, and two jobs cannot get the same channel.
//!
//! # Dead members
//!
//! If more than half of the members have arrived, they can remove the others from the channel ([`ChannelBarrier::contain`]).
//! One survivor of two nodes cannot, and frees the channel instead ([`ChannelBarrier::free_without`]).
//! A [`Heartbeat`] on a separate channel
//! detects that a node has died.
//!
//! # Ownership
//!
//! A `Programmer` owns the node's clock, data and select lines. Only one process can open the port, so each node has one programmer.
//! The hardware has one receiver and grants it to one node at a time; the driver of any other node repeats its request.
//!
//! # The effects of a reboot
//!
//! A rebooting node cannot program anything and cannot block the receiver.
//! But its arrival line can fall, as in version 1: a transition from high to low counts as an arrival.
//! [`ReturningBarrier`](crate::ReturningBarrier) over [`ChannelBarrier::into_toggle`] prevents this early release.

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

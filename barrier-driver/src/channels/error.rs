//! Errors of barrier version 2: one enum for each operation; each message names the nodes.

use crate::{CloseError, OpenError, PinFault};
use core::{error::Error, fmt};
use embedded_hal::digital::PinState;
use fpga_model::channels::frame::Status;

/// The reason why the driver could not confirm that a request was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ProgramError<E> {
    /// The port refused an access.
    Pin(PinFault<E>),
    /// The reply line did not change its level during the whole reply, in any try.
    NoAnswer {
        /// The level that the reply line kept.
        level: PinState,
        /// The number of tries.
        tries: u32,
    },
    /// In each try the reply had a wrong checksum or did not repeat the request correctly.
    Garbled {
        /// The number of tries.
        tries: u32,
    },
    /// The hardware refused the request and changed nothing.
    Refused {
        /// The channel of the request.
        channel: u8,
        /// The reason for the refusal.
        #[cfg_attr(feature = "defmt", defmt(Debug2Format))]
        status: Status,
        /// The nodes or bits that caused the refusal; see [`Status`].
        value: u64,
    },
}

/// The reason why [`ChannelBarrier::open`](super::ChannelBarrier::open) failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ChannelOpenError<E, F> {
    /// This node's pair of wires could not be opened.
    Wires(OpenError<E, F>),
    /// The hardware did not accept the request to take the channel.
    Program(ProgramError<E>),
    /// The fence after the channel was taken failed.
    Fence(F),
    /// The release line changed between the two fences, while every member was at rest.
    Moved {
        /// The number of the channel.
        channel: u8,
    },
}

/// The reason why [`ChannelBarrier::close`](super::ChannelBarrier::close) failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum ChannelCloseError<E, F> {
    /// This node's wire could not be brought to rest.
    Wires(CloseError<E>),
    /// The fence before the channel is freed failed; the channel was not freed.
    Fence(F),
    /// The channel could not be freed.
    Program(ProgramError<E>),
}

/// The nodes of a mask, with a `Display` for messages.
struct Nodes(u64);

impl fmt::Display for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.count_ones() {
            0 => f.write_str("no node"),
            1 => write!(f, "node {}", self.0.trailing_zeros()),
            _ => {
                let mut separator = "nodes ";
                for node in (0..64).filter(|node| self.0 >> node & 1 == 1) {
                    write!(f, "{separator}{node}")?;
                    separator = ", ";
                }
                Ok(())
            }
        }
    }
}

impl<E: fmt::Debug> fmt::Display for ProgramError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(fault) => fault.fmt(f),
            Self::NoAnswer { level, tries } => write!(
                f,
                "the hardware has not answered in {tries} tries, its line stays {}: another node is programming it, \
                 a serial line is cut, or it is a version 1 board",
                crate::error::name(*level)
            ),
            Self::Garbled { tries } => write!(
                f,
                "the hardware's answers had wrong check bits in {tries} tries: \
                 a serial line is noisy, or the port is faster than the hardware listens"
            ),
            Self::Refused {
                channel,
                status,
                value,
            } => match status {
                Status::Done => write!(f, "channel {channel}: done, with {value:#x}"),
                Status::BadCheck => write!(
                    f,
                    "channel {channel}: the request came to the hardware with wrong check bits"
                ),
                Status::NoSuchOperation => {
                    write!(f, "channel {channel}: the hardware knows no such operation")
                }
                Status::NoSuchChannel => write!(f, "the hardware has no channel {channel}"),
                Status::BadValue => write!(
                    f,
                    "channel {channel}: the hardware has no such nodes or times, the bits {value:#x} are too many"
                ),
                Status::NotMember => write!(
                    f,
                    "channel {channel}: this node would have to be a member; its members are {}",
                    Nodes(*value)
                ),
                Status::Taken => {
                    write!(f, "channel {channel} is taken, by {}", Nodes(*value))
                }
                Status::NotLate => write!(
                    f,
                    "channel {channel}: those are not all the members that a barrier waits for whose time limit has run out; {} have arrived",
                    Nodes(*value)
                ),
                Status::Minority => write!(
                    f,
                    "channel {channel}: members are dropped by more than half of all, and only {} have arrived",
                    Nodes(*value)
                ),
                Status::NotIdle => write!(
                    f,
                    "channel {channel} is not idle: the lines of {} are not at rest",
                    Nodes(*value)
                ),
            },
        }
    }
}

impl<E: fmt::Debug, F: fmt::Display> fmt::Display for ChannelOpenError<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wires(e) => e.fmt(f),
            Self::Program(e) => e.fmt(f),
            Self::Fence(e) => write!(f, "the software fence after the programming failed: {e}"),
            Self::Moved { channel } => write!(
                f,
                "the release of channel {channel} moved while all members rested: \
                 it floats, or another device drives a member's line"
            ),
        }
    }
}

impl<E: fmt::Debug, F: fmt::Display> fmt::Display for ChannelCloseError<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wires(e) => e.fmt(f),
            Self::Fence(e) => write!(
                f,
                "the software fence before the channel is given back failed: {e}"
            ),
            Self::Program(e) => e.fmt(f),
        }
    }
}

impl<E: fmt::Debug> Error for ProgramError<E> {}
impl<E: fmt::Debug, F: fmt::Debug + fmt::Display> Error for ChannelOpenError<E, F> {}
impl<E: fmt::Debug, F: fmt::Debug + fmt::Display> Error for ChannelCloseError<E, F> {}

impl<E> From<PinFault<E>> for ProgramError<E> {
    fn from(fault: PinFault<E>) -> Self {
        Self::Pin(fault)
    }
}

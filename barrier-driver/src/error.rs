//! Errors of the driver: one enum for each operation;
//! every message names the wire and the expected state.
//!
//! `E` is the pins' own error, which embedded-hal only guarantees to be `Debug`; `F` is the error of the caller's fence.

use core::{error::Error, fmt, time::Duration};
use embedded_hal::digital::PinState;

/// A failed access to the port.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum PinFault<E> {
    /// The wire from the barrier could not be read.
    Read(E),
    /// The wire to the barrier could not be written.
    Write(E),
}

/// The reason why [`ToggleBarrier::open`](crate::ToggleBarrier::open) failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum OpenError<E, F> {
    /// The port refused an access.
    Pin(PinFault<E>),
    /// The software fence of all nodes failed.
    Fence(F),
    /// The wire from the barrier changed while every node should have been idle.
    InputMoved {
        /// The level that was read before the fence and written as the idle level.
        idle: PinState,
    },
}

/// The reason why [`ToggleBarrier::enter`](crate::ToggleBarrier::enter) failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum EnterError<E> {
    /// The port refused the write; the driver does not know whether the level reached the wire.
    Pin(PinFault<E>),
    /// The node is already in a barrier that has not released it yet.
    AlreadyEntered,
}

/// The reason why [`ToggleBarrier::wait`](crate::ToggleBarrier::wait) returned without a release.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum WaitError<E> {
    /// The port refused the read.
    Pin(PinFault<E>),
    /// Not all other nodes arrived in time; the node is still in the barrier.
    TimedOut {
        /// The time for which the node waited.
        waited: Duration,
        /// The level that this node drives; the barrier's wire still has the other level.
        driven: PinState,
    },
}

/// The reason why [`ToggleBarrier::close`](crate::ToggleBarrier::close) could not leave the wire
/// idle.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum CloseError<E> {
    /// The port refused an access.
    Pin(PinFault<E>),
    /// In each try the wire from the barrier changed again after its level had been written back.
    NeverStill {
        /// The number of tries.
        tries: u32,
    },
}

/// The reason why [`self_test`](crate::self_test()) failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub enum SelfTestError<E, F> {
    /// The port refused an access.
    Pin(PinFault<E>),
    /// The software fence of all nodes failed.
    Fence(F),
    /// The barrier released this node although the late node had not entered.
    LeftEarly {
        /// The node that had not entered, as the test requires.
        late: usize,
        /// The level that this node drove to enter.
        driven: PinState,
    },
    /// All nodes had entered, but the barrier did not release this node.
    NotReleased {
        /// The node that entered last.
        late: usize,
        /// The level that this node drove to enter.
        driven: PinState,
        /// The time for which this node waited.
        waited: Duration,
    },
    /// The barrier was not idle when the test began.
    NotIdle,
}

/// Returns the name of a level in messages.
pub(crate) fn name(level: PinState) -> &'static str {
    match level {
        PinState::Low => "low",
        PinState::High => "high",
    }
}

impl<E: fmt::Debug> fmt::Display for PinFault<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(e) => write!(f, "the wire from the barrier cannot be read: {e:?}"),
            Self::Write(e) => write!(f, "the wire to the barrier cannot be written: {e:?}"),
        }
    }
}

impl<E: fmt::Debug, F: fmt::Display> fmt::Display for OpenError<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(fault) => fault.fmt(f),
            Self::Fence(e) => write!(f, "the software fence before the first barrier failed: {e}"),
            Self::InputMoved { idle } => write!(
                f,
                "the wire from the barrier was {} before all nodes were idle and is not any more: \
                 it floats, or another node's wire was driven during the fence",
                name(*idle)
            ),
        }
    }
}

impl<E: fmt::Debug> fmt::Display for EnterError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(fault) => fault.fmt(f),
            Self::AlreadyEntered => {
                f.write_str("this node has entered the barrier and not left it yet")
            }
        }
    }
}

impl<E: fmt::Debug> fmt::Display for WaitError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(fault) => fault.fmt(f),
            Self::TimedOut { waited, driven } => write!(
                f,
                "this node drives its wire {} since {waited:?} and the barrier has not followed: \
                 not all nodes have entered",
                name(*driven)
            ),
        }
    }
}

impl<E: fmt::Debug> fmt::Display for CloseError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(fault) => fault.fmt(f),
            Self::NeverStill { tries } => write!(
                f,
                "the wire from the barrier changed each of {tries} times its level was written back: it floats"
            ),
        }
    }
}

impl<E: fmt::Debug, F: fmt::Display> fmt::Display for SelfTestError<E, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin(fault) => fault.fmt(f),
            Self::Fence(e) => write!(f, "the software fence of the self-test failed: {e}"),
            Self::LeftEarly { late, driven } => write!(
                f,
                "the barrier followed this node's wire going {} before node {late} had entered: \
                 an input floats or is inverted, or the wire of node {late} is not its own",
                name(*driven)
            ),
            Self::NotReleased {
                late,
                driven,
                waited,
            } => write!(
                f,
                "all nodes have entered, node {late} last, and the barrier has not followed \
                 this node's wire going {} within {waited:?}: a wire is cut, stuck or inverted",
                name(*driven)
            ),
            Self::NotIdle => {
                f.write_str("the self-test needs this node out of the barrier, and it is in it")
            }
        }
    }
}

impl<E: fmt::Debug> Error for PinFault<E> {}
impl<E: fmt::Debug, F: fmt::Debug + fmt::Display> Error for OpenError<E, F> {}
impl<E: fmt::Debug> Error for EnterError<E> {}
impl<E: fmt::Debug> Error for WaitError<E> {}
impl<E: fmt::Debug> Error for CloseError<E> {}
impl<E: fmt::Debug, F: fmt::Debug + fmt::Display> Error for SelfTestError<E, F> {}

impl<E, F> From<PinFault<E>> for OpenError<E, F> {
    fn from(fault: PinFault<E>) -> Self {
        Self::Pin(fault)
    }
}

impl<E> From<PinFault<E>> for EnterError<E> {
    fn from(fault: PinFault<E>) -> Self {
        Self::Pin(fault)
    }
}

impl<E> From<PinFault<E>> for WaitError<E> {
    fn from(fault: PinFault<E>) -> Self {
        Self::Pin(fault)
    }
}

impl<E> From<PinFault<E>> for CloseError<E> {
    fn from(fault: PinFault<E>) -> Self {
        Self::Pin(fault)
    }
}

impl<E, F> From<PinFault<E>> for SelfTestError<E, F> {
    fn from(fault: PinFault<E>) -> Self {
        Self::Pin(fault)
    }
}

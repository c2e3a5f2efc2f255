//! The toggle protocol, written once over embedded-hal's [`OutputPin`](embedded_hal::digital::OutputPin)
//! and [`InputPin`](embedded_hal::digital::InputPin), for whatever carries the two wires of a node.
//!
//! # The protocol
//!
//! The barrier hardware (crate `fpga-model`) toggles the level of all its outgoing wires
//! when every incoming wire differs from that level.
//! So a node *enters* by writing the level opposite to the one it reads, and *leaves* when it reads what it wrote.
//! Hoefler, Squyres, Mehlan, Mietke and Rehm, "Implementing a Hardware-based Barrier in Open MPI", Chemnitz 2005,
//! describe a barrier as three accesses: read, write the opposite, read until they agree.
//!
//! # Why the first read can be saved
//!
//! [`ToggleBarrier`] remembers the level it last read instead of reading it again at entry,
//! which saves one port access of about a microsecond for each barrier.
//! It is right because of this invariant, for every node between two barriers:
//!
//! > *the remembered level = the level on the node's own wire = the level a read would give.*
//!
//! * It holds after [`ToggleBarrier::open`]: the level was read, written to the wire, and read again after the fence.
//! * It is kept while the node stays out: the barrier's wire toggles only when *every* synchronised wire differs from it.
//!   The node's own wire equals it and does not change, so the machine cannot toggle, whatever the others do
//!   and however long the synchronisers take.
//! * It is kept by a barrier: the node leaves when it reads what it wrote, and remembers that level.
//!   When it reads it the machine has toggled, hence at that edge all synchronised wires had the new level.
//!   From then on the node's wire again equals the barrier's wire, which is the previous case.
//!
//! The invariant asks that no other program drives the wire and that the machine is not reset;
//! both are what `open`, its fence and [`self_test()`] look for before the barrier is used.
//! The property test `the_remembered_level_is_what_a_read_would_give` checks it against the model
//! with arbitrary interleavings of nodes and clock edges.
//!
//! # The life of a wire
//!
//! ```text
//!          open: read, write it back, fence, read again
//!   (any) ---------------------------------------------> idle <---------------+
//!                                                         | enter:            | poll reads
//!                                                         | write opposite    | what was written
//!                                                         v                   |
//!                 close, drop, unwind:  <---------------- entered ------------+
//!                 read, write it back, read again
//! ```
//!
//! A process that ends in the middle puts its wire back too, as far as it can: [`last_resort`].
//! Levels left over from power-on or an aborted job count as arrivals: `open` overwrites them.
//! A floating or inverted input looks like a release: [`same_level`] and [`self_test()`] find it.
//! A node that reboots can release the others early: [`ReturningBarrier`] goes there and back, so that it cannot.
//!
//! # Several barriers
//!
//! [`channels`] is version 2: up to five barriers on one port, each among its members.
//!
//! # One of them has found it
//!
//! [`Eureka`] is the end of a line beside the barrier, on which one node tells all others.
//!
//! # Microcontrollers
//!
//! Without the feature `std` the crate is the protocol alone: [`ToggleBarrier`], [`ReturningBarrier`], [`Confirmed`] and
//! [`self_test_by`], without allocation and without a clock of its own: time comes from the caller.
//! [`RingFence`] is the fence of nodes that have a serial line to a neighbour and nothing else.
//! With the feature `async` a node sleeps until its pin's interrupt: `ToggleBarrier::released`.
//!
//! # Processes that share a core
//!
//! Where a port can, a process sleeps in the kernel until the wire's interrupt: [`InputEvents`],
//! `ToggleBarrier::wait_asleep` and [`ToggleBarrier::poll_asleep`].
//!
//! # Ports
//!
//! A port is a pair of pins, nothing else; [`ports`] opens the real ones by a line of text.
//! Every port joins the same claims by one line, see the module `suite` (feature `suite`).
//!
//! `unsafe` has three addresses: `ports::x86` for port instructions, `ports::ppdev` for ioctls, `last_resort` for signals.

#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "std")]
mod agree;
#[cfg(feature = "std")]
pub mod bring_up;
#[cfg(feature = "std")]
pub mod channels;
mod confirmed;
mod error;
mod eureka;
mod input_events;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod last_resort;
#[cfg(feature = "std")]
pub mod ports;
mod returning;
mod ring_fence;
mod self_test;
#[cfg(feature = "suite")]
pub mod suite;
mod toggle;
#[cfg(feature = "async")]
mod wait_async;

#[cfg(feature = "std")]
pub use agree::{Dissent, same_level};
pub use confirmed::Confirmed;
pub use error::{CloseError, EnterError, OpenError, PinFault, SelfTestError, WaitError};
pub use eureka::{Eureka, EurekaError, Found};
pub use input_events::InputEvents;
pub use returning::ReturningBarrier;
pub use ring_fence::{MOST_NODES, RingFence};
#[cfg(feature = "std")]
pub use self_test::self_test;
pub use self_test::{SelfTest, self_test_by};
pub use toggle::ToggleBarrier;

//! Driver of the toggle barrier, generic over embedded-hal's [`OutputPin`](embedded_hal::digital::OutputPin)
//! and [`InputPin`](embedded_hal::digital::InputPin), so that any port can provide a node's two wires.
//!
//! # The protocol
//!
//! The barrier hardware (crate `fpga-model`) toggles the level of all its outgoing wires
//! when every incoming wire differs from that level.
//! So a node *enters* by writing the level opposite to the one that it reads,
//! and *leaves* when it reads the level that it wrote.
//! Hoefler, Squyres, Mehlan, Mietke and Rehm, "Implementing a Hardware-based Barrier in Open MPI", Chemnitz 2005,
//! describe a barrier as three accesses: read, write the opposite, read until they agree.
//!
//! # Why the first read can be omitted
//!
//! [`ToggleBarrier`] remembers the level it last read instead of reading it again on entry,
//! which saves one port access of about a microsecond per barrier.
//! This is correct because of the following invariant, which holds for every node between two barriers:
//!
//! > *the remembered level = the level on the node's own wire = the level a read would give.*
//!
//! * It holds after [`ToggleBarrier::open`]: the level was read, written to the wire, and read again after the fence.
//! * It is preserved while the node is not in a barrier: the barrier's wire toggles only when *every* synchronised wire differs from it.
//!   The node's own wire equals the barrier's wire and does not change, so the barrier cannot toggle, whatever the other nodes do
//!   and however long the synchronisers take.
//! * It is preserved by a barrier: the node leaves when it reads the level that it wrote, and remembers that level.
//!   By then the barrier's wire has toggled; at that clock edge all synchronised wires had the new level.
//!   From then on the node's wire again equals the barrier's wire, so the previous case applies.
//!
//! The invariant requires that no other program drives the wire and that the barrier hardware is not reset;
//! `open`, its fence and [`self_test()`] check both before the barrier is used.
//! The property test `the_remembered_level_is_what_a_read_would_give` checks the invariant against the model
//! with arbitrary interleavings of nodes and clock edges.
//!
//! # The states of a wire
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
//! If the system allows it, a process that ends without closing also restores its wire to idle:
//! [`last_resort`].
//! Levels left over from power-on or an aborted job count as arrivals: `open` overwrites them.
//! A floating or inverted input can look like a release: [`same_level`] and [`self_test()`] detect such an input.
//! A node that reboots can release the others early: [`ReturningBarrier`] prevents that with two transitions per barrier.
//!
//! # Several barriers
//!
//! [`channels`] is version 2: up to five barriers on one port, each with its own members.
//!
//! # Early termination of a search
//!
//! [`Eureka`] is one node's end of a global flag next to the barrier, which any node can raise.
//!
//! # Microcontrollers
//!
//! Without the feature `std` the crate contains only the protocol, without allocation and without a clock:
//! [`ToggleBarrier`], [`ReturningBarrier`],
//! [`Confirmed`], [`self_test_by`] and [`channels`]; the caller provides the time.
//! [`RingFence`] is the fence for nodes that have only a serial line to a neighbour.
//! Pins with different error types are wrapped in [`KindOfError`]; with the feature `defmt` all errors have `defmt::Format`.
//! With the feature `async` a node sleeps until its pin's interrupt: `ToggleBarrier::released`.
//!
//! # Oversubscribed cores
//!
//! If the port can wake a sleeping process, a waiting process sleeps in the kernel until the wire's interrupt: see [`InputEvents`],
//! `ToggleBarrier::wait_asleep` and [`ToggleBarrier::poll_asleep`].
//!
//! # Ports
//!
//! A port is a pair of pins; [`ports`] opens hardware ports that are named by a line of text.
//! The module `suite` (feature `suite`) has conformance tests; a port instantiates all of them with one line.
//!
//! `unsafe` occurs in six modules: `toggle` to give back the pins, `ports::x86` for port instructions, `ports::ppdev` for ioctls, `ports::registers` for a lock,
//! `registers` for a mapping, `last_resort` for signals.

#![cfg_attr(not(feature = "std"), no_std)]
#![deny(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "std")]
mod agree;
#[cfg(feature = "std")]
pub mod bring_up;
pub mod channels;
mod confirmed;
mod error;
mod error_kind;
mod eureka;
#[cfg(all(any(test, fuzzing), feature = "std"))]
pub mod fuzz;
mod input_events;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod last_resort;
#[cfg(feature = "std")]
mod port_error;
#[cfg(feature = "std")]
pub mod ports;
#[cfg(all(feature = "std", target_os = "linux"))]
pub mod registers;
mod returning;
mod ring_fence;
mod self_test;
#[cfg(feature = "suite")]
pub mod suite;
mod toggle;
#[cfg(feature = "async")]
mod wait_async;

#[cfg(feature = "std")]
pub use agree::{LevelMismatch, same_level};
pub use confirmed::Confirmed;
pub use error::{CloseError, EnterError, OpenError, PinFault, SelfTestError, WaitError};
pub use error_kind::KindOfError;
pub use eureka::{Eureka, EurekaError, Found};
pub use input_events::InputEvents;
pub use returning::ReturningBarrier;
pub use ring_fence::{MOST_NODES, RingFence};
#[cfg(feature = "std")]
pub use self_test::self_test;
pub use self_test::{SelfTest, self_test_by};
pub use toggle::ToggleBarrier;

//! PML, the point-to-point messaging layer: MPI's send and receive over the byte transfer layers.
//!
//! The PML matches messages to receives and chooses the protocol that transfers the data;
//! the BTLs move the bytes.
//! `ob1` is the only component, named after Open MPI's reference component; [`select`] returns an error if the caller requests another component.
//!
//! Interface: the layers above use only these names.
//! * [`Pml`]: the messaging object of one process: sends, receives, probes, cancels, and progress;
//! * [`Envelope`], [`Context`], [`Plane`], [`Mode`]: how a message is addressed; [`Key`]: what a receive accepts;
//! * [`Matching`]: the posted receives and unexpected messages of one context; the communicator owns it;
//! * [`Sent`], [`Message`]: the results of a send and of a matched probe; [`SendBody`], [`RecvBody`]: the state of a send or receive in its request;
//! * [`Config`]: the message sizes that choose a protocol, with the parameters [`CHECK_TYPES`] and [`CHECK_BUFFERING`];
//!   [`Counts`]: counters of rare events, for performance variables.
//!
//! The modules of the component `ob1` are private to the package.

pub mod envelope;
pub mod error;
pub(crate) mod ob1;
pub mod select;

pub use envelope::{Context, Envelope, Mode, Plane};
pub use error::PmlError;
pub use ob1::Ob1 as Pml;
pub use ob1::Sent;
pub use ob1::config::{CHECK_BUFFERING, CHECK_TYPES, Config};
pub use ob1::counts::Counts;
pub use ob1::is_idle;
pub use ob1::matching::{Key, Matching};
pub use ob1::probe::Message;
pub use ob1::recv_body::RecvBody;
pub use ob1::send_body::SendBody;

/// Internals of `ob1` for tests of the protocols; these tests need communicators and therefore are in other packages.
#[cfg(feature = "testing")]
pub mod testing {
    pub use super::ob1::peer::pipeline::{ASKING, ROUND};
    pub use super::ob1::peer::{COST, LOOK};
    pub use super::ob1::wire::{self, LONGEST_FOLLOWED};
    pub use crate::trial::order_of;
}

//! PML, the point-to-point messaging layer: MPI's send and receive over the byte transfer layers.
//!
//! It decides which receive takes which message and which protocol carries the data; it leaves moving bytes to the BTLs.
//! `ob1` is the only component, as in Open MPI the one that every other is measured against; [`select`] says so to a caller that asks for another.
//!
//! Interface: what stands here is all that the layers above can name of messaging.
//! * [`Pml`]: the messaging of one process: sends, receives, probes, cancels, and the one call that makes progress;
//! * [`Envelope`], [`Context`], [`Plane`], [`Mode`]: how a message is addressed; [`Key`]: what a receive asks for;
//! * [`Matching`]: one context's receives and messages, which a communicator keeps;
//! * [`Sent`], [`Message`]: what a send and a matched probe leave behind; [`SendBody`], [`RecvBody`]: what a request holds of them;
//! * [`Config`]: the sizes that choose a protocol.
//!
//! The parts of the component are private to the package.

pub mod envelope;
pub mod error;
pub(crate) mod ob1;
pub mod select;

pub use envelope::{Context, Envelope, Mode, Plane};
pub use error::PmlError;
pub use ob1::Ob1 as Pml;
pub use ob1::Sent;
pub use ob1::config::Config;
pub use ob1::matching::{Key, Matching};
pub use ob1::probe::Message;
pub use ob1::recv_body::RecvBody;
pub use ob1::send_body::SendBody;

/// What tests of the protocols look at, which stand outside of this package because they need communicators.
#[cfg(feature = "testing")]
pub mod testing {
    pub use super::ob1::peer::pipeline::{ASKING, ROUND};
    pub use super::ob1::peer::{COST, LOOK};
    pub use super::ob1::wire::{self, LONGEST_FOLLOWED};
    pub use crate::trial::order_of;
}

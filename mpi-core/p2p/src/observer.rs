//! The observer of messages: a trace, a recording, a communication matrix, the events of a tool (`MPI_T`),
//! or several of these. Usually no observer is set.
//!
//! Without an observer, each call site costs one branch on a plain load.
//! With an observer, the fast path of receives is disabled, so the observer sees all messages.

use crate::btl::ProcId;
use crate::pml::{Context, Envelope, Key};
use crate::request::id::ReqId;

/// Callbacks on messages. They run inside the progress loop, so a callback must not call MPI and must not wait.
pub trait Observer {
    /// Called when this process sends a message.
    fn sends(&self, to: &Envelope, bytes: u64);

    /// Called when a message has matched a receive. `message` is the message's key, without wildcards.
    fn meets(&self, receive: ReqId, context: Context, message: Key, bytes: u64);

    /// Called when a message has arrived that matches no posted receive and is therefore buffered.
    fn keeps(&self, context: Context, message: Key, bytes: u64);

    /// Called at the sender of an announced message whose data wait for the receiver's answer:
    /// after the announcement (`begins` is true), and when all data have been sent, or the receiver has read them (`begins` is false).
    fn rendezvous(&self, to: &Envelope, bytes: u64, begins: bool);

    /// Called at the receiver of an announced message:
    /// when the message has matched a receive and the data are requested (`begins` is true),
    /// and when all data have arrived (`begins` is false).
    /// `message` has no wildcards.
    fn receives_rendezvous(&self, context: Context, message: Key, bytes: u64, begins: bool);

    /// Called when a peer has become unreachable.
    fn loses(&self, peer: ProcId);

    /// Called when one of several links to a peer is lost; the messages to this peer use the other links.
    fn loses_link(&self, peer: ProcId);
}

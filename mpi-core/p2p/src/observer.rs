//! The observer of messages: a trace, a recording, a communication matrix, a tool's events, or several of them. Usually no observer is set.
//!
//! Without an observer, each call site costs one branch on a plain load. With an observer, the fast path of receives is disabled, so the observer sees all messages.

use crate::btl::ProcId;
use crate::pml::{Context, Envelope, Key};
use crate::request::id::ReqId;

/// Callbacks on messages. They run inside the progress loop, so a callback must not call MPI and must not wait.
pub trait Observer {
    /// A message is sent.
    fn sends(&self, to: &Envelope, bytes: u64);

    /// A message has matched a receive; `message` is the message's key, without wildcards.
    fn meets(&self, receive: ReqId, context: Context, message: Key, bytes: u64);

    /// A message has arrived that matches no posted receive.
    fn keeps(&self, context: Context, message: Key, bytes: u64);

    /// The sender has announced a message whose data wait for the receiver's answer (`begins` is true), or the receiver has released the message (false).
    fn rendezvous(&self, to: &Envelope, bytes: u64, begins: bool);

    /// An announced message has matched a receive, and its data are requested (`begins` is true), or have arrived (false). `message` has no wildcards.
    fn receives_rendezvous(&self, context: Context, message: Key, bytes: u64, begins: bool);

    /// A peer is unreachable from now on.
    fn loses(&self, peer: ProcId);

    /// One of several links to a peer is lost, and the others carry its messages.
    fn loses_link(&self, peer: ProcId);
}

//! An observer of messages: a trace, a recording, or both. Nearly always there is none.
//!
//! Each of its places is one branch on a plain load while there is none; with one, the express lane of receives is closed, so that it sees all messages.

use crate::pml::{Context, Envelope, Key};
use crate::request::id::ReqId;

/// What is told of messages.
pub trait Observer {
    /// A message leaves.
    fn sends(&self, to: &Envelope, bytes: u64);

    /// A message has met a receive; the key is the message's own.
    fn meets(&self, receive: ReqId, context: Context, message: Key, bytes: u64);
}

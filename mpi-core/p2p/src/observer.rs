//! The observer of messages: a trace, a recording, or both. Usually there is none.
//!
//! Without an observer each of its call sites costs one branch on a plain load; with one, the fast path of receives is disabled, so that it sees all messages.

use crate::pml::{Context, Envelope, Key};
use crate::request::id::ReqId;

/// Callbacks on messages.
pub trait Observer {
    /// A message is sent.
    fn sends(&self, to: &Envelope, bytes: u64);

    /// A message has matched a receive; the key is the message's own.
    fn meets(&self, receive: ReqId, context: Context, message: Key, bytes: u64);
}

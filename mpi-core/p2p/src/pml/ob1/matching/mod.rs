//! Matching of messages and receives (MPI 5.0, section 3.5).
//!
//! Guarantee: a message matches the earliest posted receive that accepts the message, and a receive matches the earliest unexpected message that it accepts.
//! The time for a match does not depend on the number of posted receives or unexpected messages.
//!
//! The key of a receive consists of source and tag, which can be wildcards. The posted receives with one key form a queue in a hash table.
//! Receives of only four keys can accept a message: (s, t), (s, any), (any, t), (any, any);
//! among the first receives of these four queues, the one posted earliest matches.
//! Unexpected messages are indexed by (s, t). Three more indexes, for wildcards, are built at the first wildcard receive
//! and dropped when too many of their entries are stale.
//! If all posted receives have the same key, as in a ping-pong or a stream, no hash table is accessed.

pub(super) mod arrived;
mod context;
mod key;
mod posted;
mod queues;
#[cfg(test)]
mod tests;
mod unexpected;

pub use context::Matching;
pub use key::Key;
pub(super) use queues::WordMap;

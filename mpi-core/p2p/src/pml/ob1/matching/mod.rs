//! Matching of messages and receives (MPI 5.0, section 3.5).
//!
//! Promise: a message matches the earliest posted receive that accepts it, and a receive matches the earliest unexpected message that it accepts;
//! the cost of both does not depend on the number of waiting receives or messages.
//!
//! Every receive has a key of its source and tag, wildcards included, so the posted receives of one key are a queue in one hash table.
//! A message can match four keys only: (s, t), (s, any), (any, t), (any, any);
//! among the heads of those queues the smallest posting number wins.
//! Unexpected messages are indexed by (s, t); the three wildcard indexes are built at the first wildcard receive and dropped when too many of their entries are stale.
//! If all posted receives have one key, as in a ping-pong or a stream, no table is accessed at all.

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

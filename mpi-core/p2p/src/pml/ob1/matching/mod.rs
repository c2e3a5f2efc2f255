//! Matching: which receive takes which message (MPI 5.0, section 3.5).
//!
//! Promise: a message goes to the earliest posted receive that accepts it, and a receive takes the earliest arrived message it accepts;
//! both cost the same whether one or ten thousand wait.
//!
//! Every receive has a key made of its source and tag, wildcards included, so posted receives of one key are a queue in one hash table.
//! A message can only match four keys: (s, t), (s, any), (any, t), (any, any);
//! the smallest posting number among the heads of those queues wins.
//! Unexpected messages are indexed by (s, t); the three wildcard indexes are built when the first wildcard asks and dropped when they grow stale.
//! When all posted receives have one key, as in a ping-pong or a stream, no table is touched at all.

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

//! The component `network`: put and get by the network itself, without the processor of the target.
//!
//! It serves members on other nodes if the memory of every member is registered: a window has one protocol for each pair, agreed on when it is made.
//! The members register their memory, exchange the keys, and withdraw them after the fence of `MPI_Win_free`, when no access is active any more.
//! Epochs stay as they are: the origin accesses after it has a lock, a post or a fence of the target, so no access comes early.
//!
//! Accumulates stay messages: the atomic operations of a network and those of a processor do not exclude each other,
//! and members on the target's node use its processor.
//! So do accesses with several runs at the target, which one message carries together, and dynamic windows, whose memory is attached later.
//!
//! | file | subject |
//! |---|---|
//! | `keys` | the registration and the exchange of keys |
//! | `origin` | put, get and flush of a window |
//!
//! The registration and the keys are values of `state`; the accesses that have not ended are part of the service of `am`, which asks for their ends.

pub(crate) mod keys;
mod origin;

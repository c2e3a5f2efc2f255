//! The component `network`: put and get by the network itself, without the target's processor.
//!
//! This component serves members on other nodes if the memory of every member is registered.
//! Window creation agrees on one protocol for each pair of members.
//! The members register their memory and exchange keys. They withdraw the keys after the fence of
//! `MPI_Win_free`, when no access is active.
//! Epochs do not change: the origin accesses only after a lock, a post or a fence of the target.
//!
//! Accumulates use messages, since the atomic operations of a network and of a processor
//! do not exclude each other, and members on the target's node use its processor.
//! Accesses that are noncontiguous at the target also use messages,
//! because one message carries all contiguous parts.
//! Accesses to dynamic windows use messages too, since their memory is attached later.
//!
//! | file | subject |
//! |---|---|
//! | `keys` | the registration and the exchange of keys |
//! | `origin` | put, get and flush of a window |
//!
//! The registration and the keys are in `state`.
//! The service of `am` has the list of active accesses and tests whether they have ended.

pub(crate) mod keys;
mod origin;

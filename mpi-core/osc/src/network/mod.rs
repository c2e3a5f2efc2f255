//! The component `network`: put and get by the network itself, without the target's processor.
//!
//! This component serves members on other nodes if the memory of every member is registered.
//! During window creation the members register their memory and exchange keys.
//! If the memory of one member is not registered, no member uses the network for this window.
//! `MPI_Win_free` ends the registration after all members have called it, when no access is active.
//! The epochs are those of the other components: locks, fences and posts order the accesses.
//!
//! Accumulates use messages, since the atomic operations of a network and of a processor
//! do not exclude each other, and members on the target's node use those of the processor.
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

//! The parts of a window's state; they import no operation.
//!
//! | file | subject |
//! |---|---|
//! | [`target`] | the record of each member |
//! | [`epoch`] | which accesses are allowed |
//! | [`control`] | the control words in shared memory |
//! | [`exclusion`] | how updates of a member's memory exclude each other: atomic instructions, or passes under locks |
//! | [`attached_cache`] | attached memory of the members of a dynamic window |
//! | [`access_kind`] | the kinds of accesses, and which of them conflict |
//! | [`open_accesses`], [`neighbours`] | incomplete accesses of this process, and of the other members on the node |
//! | [`access_order`] | the order of accesses in a recorded or replayed run |
//! | [`registration`] | the registration of this process's memory with a network, and the keys of all members |
//! | [`remote_members`] | requests and replies of the members on other nodes |

pub(crate) mod access_kind;
pub(crate) mod access_order;
pub(crate) mod attached_cache;
pub(crate) mod control;
pub(crate) mod epoch;
pub(crate) mod exclusion;
pub(crate) mod neighbours;
pub(crate) mod open_accesses;
pub(crate) mod registration;
pub(crate) mod remote_members;
pub(crate) mod target;

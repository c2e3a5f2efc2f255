//! The state of a window. These modules do not depend on the operations.
//!
//! | file | subject |
//! |---|---|
//! | [`target`] | the record of each member |
//! | [`epoch`] | the epochs: which accesses are allowed |
//! | [`control`] | the control words in shared memory |
//! | [`exclusion`] | exclusion of updates: atomic instructions, or loads and stores under stripe locks (passes) |
//! | [`attached_cache`] | attached memory of the members of a dynamic window |
//! | [`known_regions`] | division of an access to attached memory by regions |
//! | [`access_kind`] | the kinds of accesses and their conflicts |
//! | [`open_accesses`], [`neighbours`] | incomplete accesses of this process, and of other members |
//! | [`access_order`] | the order of accesses in a recorded or replayed job |
//! | [`registration`] | the registration of this process's memory with a network, and the keys of all members |
//! | [`remote_members`] | counters of requests and replies of members on other nodes |

pub(crate) mod access_kind;
pub(crate) mod access_order;
pub(crate) mod attached_cache;
pub(crate) mod control;
pub(crate) mod epoch;
pub(crate) mod exclusion;
pub(crate) mod known_regions;
pub(crate) mod neighbours;
pub(crate) mod open_accesses;
pub(crate) mod registration;
pub(crate) mod remote_members;
pub(crate) mod target;

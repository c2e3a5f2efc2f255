//! The component `direct`: accesses of the origin to memory of this node, without the target.
//!
//! | file | subject |
//! |---|---|
//! | [`apply`] | atomic update of elements in memory by one operator |
//! | [`pieces`] | long accumulates, split into pieces |
//! | [`last_combine`] | cache of the last operator and type |
//! | [`word`] | update of one word by one atomic instruction |
//! | [`mapped`] | memory outside of the arenas, mapped by XPMEM |

pub(crate) mod apply;
pub(crate) mod last_combine;
pub(crate) mod mapped;
pub(crate) mod pieces;
pub(crate) mod word;

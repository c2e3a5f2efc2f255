//! The component `direct`: the origin itself accesses a window's memory on this node; the target takes no part.
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

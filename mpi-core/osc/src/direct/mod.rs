//! The component `direct`: memory of this node, which the origin reaches itself.
//!
//! | file | subject |
//! |---|---|
//! | [`apply`] | one operator on elements in memory, atomically |
//! | [`pieces`] | long accumulates, piece by piece |
//! | [`last_combine`] | the operator and the type that were combined last |
//! | [`word`] | one operator on one word by one atomic instruction |
//! | [`mapped`] | memory outside of the arenas, mapped by XPMEM |

pub(crate) mod apply;
pub(crate) mod last_combine;
pub(crate) mod mapped;
pub(crate) mod pieces;
pub(crate) mod word;

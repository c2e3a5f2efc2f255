//! The component `direct`: memory of this node, which the origin reaches itself.
//!
//! | file | subject |
//! |---|---|
//! | [`apply`] | one operator on elements in memory, atomically |
//! | [`word`] | one operator on one word by one atomic instruction |
//! | [`mapped`] | memory outside of the arenas, mapped by XPMEM |

pub(crate) mod apply;
pub(crate) mod mapped;
pub(crate) mod word;

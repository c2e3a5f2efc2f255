//! Synchronisation of the members of a window.
//!
//! | file | subject |
//! |---|---|
//! | [`active`] | fence, post, start, complete, wait |
//! | [`passive`] | locks and flushes |
//! | [`wait`] | waiting for another member |

mod active;
mod passive;
mod wait;

//! Synchronisation of the members of a window.
//!
//! | file | subject |
//! |---|---|
//! | [`active`] | fence, post, start, complete, wait |
//! | [`passive`] | locks and flushes |
//! | [`wait`] | waits for an action of another member |

mod active;
mod passive;
mod wait;

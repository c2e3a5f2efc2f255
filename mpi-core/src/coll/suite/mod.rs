//! What collective components promise, as claims that each of them joins.

pub mod barrier;
#[cfg(test)]
pub(in crate::coll) mod case;
#[cfg(test)]
pub(in crate::coll) mod tests;

//! What collective components promise, as claims that each of them joins.

pub mod barrier;
#[cfg(test)]
pub(crate) mod case;
#[cfg(test)]
pub(crate) mod tests;

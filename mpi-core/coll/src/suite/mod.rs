//! Test suites of the guarantees of collective components, which each component joins.

pub mod barrier;
#[cfg(test)]
pub(crate) mod case;
#[cfg(test)]
pub(crate) mod fast_calls;
#[cfg(test)]
pub(crate) mod tests;

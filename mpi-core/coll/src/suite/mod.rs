//! Test suites of the guarantees that all collective components give; each component adds itself to them.

pub mod barrier;
#[cfg(test)]
pub(crate) mod case;
#[cfg(test)]
pub(crate) mod fast_calls;
#[cfg(test)]
pub(crate) mod tests;

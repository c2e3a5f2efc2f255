//! Reduction operators.

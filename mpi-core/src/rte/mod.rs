//! RTE, the run-time environment: who we are, how we find each other, who died.

pub mod wire;

//! Transports ([`btl`], [`bml`]) and the run-time environment ([`rte`]), which exchanges addresses.
//!
//! A transport carries active messages and never sees a tag, a communicator or a datatype: this package depends on no crate that defines these.
//! [`universe`] numbers processes of other jobs.
//! [`trial`] chooses the faster of two protocols by measuring both; the layers above use it too.

#![deny(unsafe_code)]

pub mod bml;
pub mod btl;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod rte;
pub mod trial;
pub mod universe;

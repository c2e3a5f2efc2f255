//! Transports ([`btl`], [`bml`]) and the run-time environment ([`rte`]), which exchanges addresses.
//!
//! A transport carries active messages and does not know tags, communicators or datatypes. So this package depends on no crate that defines these.
//! [`universe`] assigns numbers to processes of other jobs.
//! [`trial`] chooses the faster of two protocols by measuring both; the layers above also use it.

#![deny(unsafe_code)]

pub mod bml;
pub mod btl;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod rte;
pub mod trial;
pub mod universe;

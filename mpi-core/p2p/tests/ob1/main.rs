//! Tests of the guarantees of `ob1`, by subject, in whole jobs whose ranks are threads.

#![allow(unsafe_code)]

mod connecting;
mod devices;
mod eager_pipeline;
mod fast_path;
mod flow_control;
mod giving_up;
mod in_place;
mod matching;
mod nonsense;
mod peer_failure;
mod plan;
mod turns;
mod typed;

use mpi_core::comm::Comm;
use mpi_core::datatype::{RecvBytes, Scratch};
use mpi_core::request::Outcome;

/// Returns the content of message `at` of a phase: `len` bytes in a pattern that depends on `at`.
fn content(at: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (at as u8).wrapping_mul(31) ^ (i as u8) ^ (i >> 8) as u8)
        .collect()
}

fn scratch(bytes: usize) -> Scratch {
    Scratch::bytes(bytes as i64).expect("memory")
}

fn recv_bytes(comm: &Comm, buffer: &mut [u8], source: i32, tag: i32) -> Outcome {
    // SAFETY: the slice outlives the call, which returns only after the end of the operation.
    let bytes = unsafe { RecvBytes::new(buffer.as_mut_ptr(), buffer.len()) };
    comm.p2p().recv_bytes(bytes, source, tag)
}

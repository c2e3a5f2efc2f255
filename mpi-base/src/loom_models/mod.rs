//! Models of this crate's protocols, checked by loom over all interleavings and memory orders.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p mpi-base --release loom`.
//! Each model names its SYNC POINT, and must fail if one of its orderings is weakened.
#![allow(unsafe_code)]

mod bitmap;
mod cells;
mod crowd;
mod doorbell;
mod followers;
mod inbox;
mod lane_table;
mod lock;
mod reservation;
mod ring;
mod shm_agreement;
mod split_copy;
mod update_mode;
mod watcher;

use crate::ring::{Consumer, Producer, RingMemory, Shape};

/// Runs a model with a maximum number of preemptions (default 3),
/// which limits the model's duration to seconds and still finds nearly all errors
/// (M. Musuvathi, S. Qadeer, "Iterative context bounding for systematic testing", 2007).
pub(crate) fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    // LOOM_MAX_PREEMPTIONS takes precedence; the short form of `cargo xtask test` sets it to 2.
    builder.preemption_bound.get_or_insert(3);
    builder.check(model);
}

fn ring(cells: u32, bytes: u32) -> (Producer, Consumer) {
    let memory = RingMemory::on_heap(Shape::new(cells, bytes).unwrap());
    // SAFETY: these are the only producer and the only consumer of this memory.
    unsafe { (Producer::new(memory.clone()), Consumer::new(memory)) }
}

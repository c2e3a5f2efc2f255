//! The accelerators that the process uses.

use super::Accelerator;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

static USED: Mutex<Vec<&'static dyn Accelerator>> = Mutex::new(Vec::new());
static NUMBER: AtomicUsize = AtomicUsize::new(0);

fn used() -> MutexGuard<'static, Vec<&'static dyn Accelerator>> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an accelerator, for as long as the process lives.
pub fn add(accelerator: &'static dyn Accelerator) {
    let mut used = used();
    used.push(accelerator);
    NUMBER.store(used.len(), Release);
}

/// Returns true if the process uses an accelerator.
#[inline]
pub fn are_in_use() -> bool {
    NUMBER.load(Acquire) != 0
}

/// Returns the accelerator of a component.
pub fn named(name: &str) -> Option<&'static dyn Accelerator> {
    used().iter().copied().find(|used| used.name() == name)
}

/// Closes the memory of other processes that all accelerators have opened.
pub fn close_all() {
    let all = used().clone();
    all.iter().for_each(|accelerator| accelerator.close());
}

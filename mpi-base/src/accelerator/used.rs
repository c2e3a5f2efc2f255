//! The process-wide list of the accelerators in use.

use super::Accelerator;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Mutex, MutexGuard, PoisonError};

static USED: Mutex<Vec<&'static dyn Accelerator>> = Mutex::new(Vec::new());
static NUMBER: AtomicUsize = AtomicUsize::new(0);

fn used() -> MutexGuard<'static, Vec<&'static dyn Accelerator>> {
    USED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Adds an accelerator to the list; the accelerator stays in the list until the process ends.
pub fn add(accelerator: &'static dyn Accelerator) {
    let mut used = used();
    used.push(accelerator);
    NUMBER.store(used.len(), Release);
}

/// Returns true if the list has at least one accelerator.
#[inline]
pub fn are_in_use() -> bool {
    NUMBER.load(Acquire) != 0
}

/// Returns the accelerator of the component `name`, if it is in use.
pub fn named(name: &str) -> Option<&'static dyn Accelerator> {
    used().iter().copied().find(|used| used.name() == name)
}

/// Closes all memory of other processes that the accelerators in use have opened.
pub fn close_all() {
    let all = used().clone();
    all.iter().for_each(|accelerator| accelerator.close());
}

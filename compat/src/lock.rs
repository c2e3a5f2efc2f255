//! Locking without poisoning. No critical section of this library leaves data inconsistent, so a mutex that a panic has poisoned
//! is locked as usual.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

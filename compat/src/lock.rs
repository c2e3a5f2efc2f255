//! Locks without poisoning.
//!
//! No critical section leaves inconsistent data, so a poisoned mutex is locked as usual.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Locking of a mutex without regard to poisoning.
//!
//! No panic leaves inconsistent data here, so a poisoned mutex is used like any other.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! The locks of what this library remembers. Under none of them is anything left half done, so one that a panic has poisoned
//! is taken like any other.

use std::sync::{Mutex, MutexGuard, PoisonError};

pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

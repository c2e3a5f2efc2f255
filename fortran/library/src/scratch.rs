//! A cache of buffers for copies of array sections. Allocating some MB costs more time than
//! copying, because the kernel must map each page of a new buffer.

use std::sync::{Mutex, PoisonError};

/// The maximum number of cached buffers: a send and a receive buffer of two concurrent calls.
const KEPT: usize = 4;
/// The maximum size in bytes of a cached buffer.
const LARGEST: usize = 16 << 20;

static FREE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn free() -> std::sync::MutexGuard<'static, Vec<Vec<u8>>> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a buffer of at least this capacity, with undefined contents.
pub fn take(bytes: usize) -> Vec<u8> {
    let mut free = free();
    // The smallest cached buffer with the capacity is used.
    let fits = free
        .iter()
        .enumerate()
        .filter(|(_, b)| b.capacity() >= bytes);
    match fits.min_by_key(|(_, b)| b.capacity()).map(|(at, _)| at) {
        Some(at) => free.swap_remove(at),
        None => Vec::with_capacity(bytes),
    }
}

/// Returns a buffer to the cache. A full cache drops its oldest buffer.
pub fn give(buffer: Vec<u8>) {
    if buffer.capacity() == 0 || buffer.capacity() > LARGEST {
        return;
    }
    let mut free = free();
    if free.len() == KEPT {
        free.remove(0);
    }
    free.push(buffer);
}

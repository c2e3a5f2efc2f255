//! Memory for copies of array sections, reused: new memory of some megabytes costs more time than the copy, since each of its pages must be mapped first.

use std::sync::{Mutex, PoisonError};

/// The number of buffers that are kept: for the send and the receive buffer of two calls at once.
const KEPT: usize = 4;
/// The size up to which a buffer is kept.
const LARGEST: usize = 16 << 20;

static FREE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());

fn free() -> std::sync::MutexGuard<'static, Vec<Vec<u8>>> {
    FREE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A buffer of at least this capacity, with any content.
pub fn take(bytes: usize) -> Vec<u8> {
    let mut free = free();
    // The smallest that is large enough.
    let fits = free
        .iter()
        .enumerate()
        .filter(|(_, b)| b.capacity() >= bytes);
    match fits.min_by_key(|(_, b)| b.capacity()).map(|(at, _)| at) {
        Some(at) => free.swap_remove(at),
        None => Vec::with_capacity(bytes),
    }
}

/// Keeps a buffer for the next call; of more than can be kept, the oldest is dropped.
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

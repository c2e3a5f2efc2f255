//! Model of the table of communicators' lanes (`mpi-abi/src/lanes/comm_table.rs`), which is read without a lock.
//!
//! The table is in another crate, so the model repeats its operations in its order.
//! One thread creates a communicator; another reads the word of the handle at any time.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

use super::check;
use crate::atomic::{AtomicPtr, AtomicU64, Ordering};

const HANDLE: u64 = 7;

/// A chunk with one word, and the twin to which the word leads.
struct Chunk {
    word: AtomicU64,
    /// Initialized by the creator of the chunk, before any word is stored.
    is_made: UnsafeCell<bool>,
}

struct Table {
    chunk: AtomicPtr<Chunk>,
    /// Written before the word is stored. In the library the lock of the lane orders it as well.
    twin: UnsafeCell<u32>,
}

// SAFETY: the model checks that no two threads access `twin` at the same time.
unsafe impl Sync for Table {}
// SAFETY: as for `Sync`; the chunk is freed at the end of the model.
unsafe impl Send for Table {}

/// Returns the twin of the handle, if the word has been stored.
fn find(table: &Table) -> Option<u32> {
    // SYNC POINT lanes.comm
    let chunk = table.chunk.load(Ordering::Acquire);
    // SAFETY: the pointer is null or that of a chunk which is freed at the end of the model.
    let chunk = unsafe { chunk.as_ref() }?;
    // SAFETY: the creator has written the field before it has published the chunk; loom checks this.
    assert!(chunk.is_made.with(|made| unsafe { *made }));
    let found = chunk.word.load(Ordering::Acquire) == HANDLE;
    // SAFETY: the creator has written the twin before it has stored the word; loom checks this.
    found.then(|| table.twin.with(|twin| unsafe { *twin }))
}

#[test]
fn a_handle_leads_to_a_complete_twin_or_to_none() {
    check(|| {
        let table = Arc::new(Table {
            chunk: AtomicPtr::new(std::ptr::null_mut()),
            twin: UnsafeCell::new(0),
        });
        let reader = {
            let table = table.clone();
            thread::spawn(move || {
                let found = find(&table);
                assert!(found.is_none_or(|twin| twin == 5), "{found:?}");
            })
        };
        // SAFETY: no other thread accesses the twin before the word is stored; loom checks this.
        table.twin.with_mut(|twin| unsafe { *twin = 5 });
        let chunk = Box::new(Chunk {
            word: AtomicU64::new(0),
            is_made: UnsafeCell::new(true),
        });
        let chunk = Box::into_raw(chunk);
        table.chunk.store(chunk, Ordering::Release);
        // SAFETY: the chunk is freed at the end of the model.
        // SYNC POINT lanes.comm
        unsafe { &*chunk }.word.store(HANDLE, Ordering::Release);
        assert_eq!(find(&table), Some(5));
        reader.join().unwrap();
        // SAFETY: the reader has ended, and the pointer is from `Box::into_raw`.
        drop(unsafe { Box::from_raw(chunk) });
    });
}

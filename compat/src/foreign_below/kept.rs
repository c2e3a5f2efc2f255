//! Arrays that the library below reads until an operation is complete, kept by the request of the operation.
//!
//! Nonblocking and persistent operations keep what they were called with. A converted array is this library's, so it has to
//! stay as long. Most programs have none; then a completion costs one load.

use super::{Foreign, own};
use crate::below;
use crate::lock::lock;
use std::any::Any;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

type Kept = Vec<(usize, Box<dyn Any + Send>)>;

static COUNT: AtomicUsize = AtomicUsize::new(0);
static KEPT: Mutex<Kept> = Mutex::new(Vec::new());

fn kept() -> MutexGuard<'static, Kept> {
    lock(&KEPT)
}

/// Whether the request is of an operation that can be started again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Once,
    Persistent,
}

/// Keeps what an operation reads, unless it is complete already: then libraries return a request that many share.
///
/// # Safety
/// The request was made just now by the library below.
pub unsafe fn keep<F: Foreign>(request: F::Below, life: Life, what: Box<dyn Any + Send>) {
    if life == Life::Once {
        let mut complete: c_int = 0;
        // SAFETY: a request of the library below.
        let code = unsafe {
            (below::MPI_Request_get_status::<F>())(request, &mut complete, own::ignore::<F>())
        };
        if code == 0 && complete != 0 {
            return;
        }
    }
    let mut kept = kept();
    kept.push((F::request_number(request), what));
    COUNT.store(kept.len(), Ordering::Relaxed);
}

/// The program has a request no longer.
#[inline(always)]
pub fn request_left<F: Foreign>(request: F::Below) {
    if COUNT.load(Ordering::Relaxed) != 0 {
        forget(F::request_number(request));
    }
}

#[cold]
fn forget(number: usize) {
    let mut kept = kept();
    kept.retain(|(known, _)| *known != number);
    COUNT.store(kept.len(), Ordering::Relaxed);
}

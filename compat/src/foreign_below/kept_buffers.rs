//! Converted arrays that are kept with a request, because the backend reads them until completion.
//!
//! In nonblocking and persistent operations, the backend keeps the addresses of array arguments.
//! A converted array is memory of this library, and must outlive the operation.
//! Without such arrays, as in most programs, the end of a request costs one load.

use super::{Foreign, emulated_requests};
use crate::backend;
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

/// When the arrays of a request are dropped: after one operation, or when the request is freed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Once,
    Persistent,
}

/// Keeps an array for the request's operation, unless the operation is already complete.
/// Libraries return the same request for all complete operations, so it cannot identify an array.
///
/// # Safety
/// The backend has just created the request.
pub unsafe fn keep<F: Foreign>(request: F::Below, life: Life, what: Box<dyn Any + Send>) {
    if life == Life::Once {
        let mut complete: c_int = 0;
        // SAFETY: the backend has just created the request, by contract.
        // The outputs are a local variable and the ignored status.
        let code = unsafe {
            (backend::MPI_Request_get_status::<F>())(
                request,
                &mut complete,
                emulated_requests::ignore::<F>(),
            )
        };
        if code == 0 && complete != 0 {
            return;
        }
    }
    let mut kept = kept();
    kept.push((F::request_number(request), what));
    COUNT.store(kept.len(), Ordering::Relaxed);
}

/// Drops the arrays of a request that has completed or was freed.
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

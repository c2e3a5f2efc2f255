//! Converted arrays that the backend reads until an operation is complete, kept with the operation's request.
//!
//! Nonblocking and persistent operations keep the addresses of their arguments. A converted array belongs to this library, so it must
//! live as long. Most programs have none; then a completion costs one load.

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

/// Whether the request is persistent.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Life {
    Once,
    Persistent,
}

/// Keeps an array for an operation, unless the operation is already complete: then libraries return a request that many operations share.
///
/// # Safety
/// The backend has just created the request.
pub unsafe fn keep<F: Foreign>(request: F::Below, life: Life, what: Box<dyn Any + Send>) {
    if life == Life::Once {
        let mut complete: c_int = 0;
        // SAFETY: the backend has just created the request (contract of this function); the output arguments are a local and the ignored status.
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

/// Drops the arrays of a request that the program no longer has.
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

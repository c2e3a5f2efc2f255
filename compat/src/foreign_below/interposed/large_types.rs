//! Envelope and contents of contiguous datatypes with more than `INT_MAX` elements.
//!
//! In a backend without large counts, such a datatype is derived from chunks.
//! Queries by the program return the count and element datatype of the constructor call.

use super::{original, put_in_front};
use crate::backend;
use crate::family::{FIRST_DYNAMIC, Kind, Word};
use crate::foreign_below::Foreign;
use crate::lock::lock;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once};

/// `MPI_COMBINER_CONTIGUOUS` of the standard.
const CONTIGUOUS: c_int = 103;

/// The constructor arguments of a contiguous datatype.
/// The field `of` is the datatype's `Foreign::request_number`.
#[derive(Clone, Copy)]
struct Made {
    of: usize,
    count: i64,
    element: usize,
}

static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());
/// Number of entries of `MADE`. If 0, a query has only the overhead of loading this number.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn made() -> MutexGuard<'static, Vec<Made>> {
    lock(&MADE)
}

fn find<F: Foreign>(datatype: F::Below) -> Option<Made> {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let number = F::request_number(datatype);
    made().iter().find(|made| made.of == number).copied()
}

/// Records the constructor arguments of a contiguous datatype.
/// Duplicates a derived element datatype, because the program may free the original.
///
/// # Safety
/// Both handles are datatypes of the backend.
pub unsafe fn remember<F: Foreign>(datatype: F::Below, count: i64, element: F::Below) {
    static ARMED: Once = Once::new();
    ARMED.call_once(|| {
        put_in_front! { MPI_Type_free }
    });
    let mut held = element;
    if F::handle_out(Kind::Datatype, element) >= FIRST_DYNAMIC {
        // SAFETY: `element` is a datatype of the backend, by contract.
        // `held` is a local variable.
        unsafe { (backend::MPI_Type_dup::<F>())(element, &raw mut held) };
    }
    let mut made = made();
    made.push(Made {
        of: F::request_number(datatype),
        count,
        element: F::request_number(held),
    });
    COUNT.store(made.len(), Ordering::Relaxed);
}

/// Returns the envelope of a recorded datatype: the number of large counts, the number of datatypes
/// and the combiner. Returns `None` for other datatypes.
pub fn envelope<F: Foreign>(datatype: F::Below) -> Option<(i64, i64, c_int)> {
    let _ = find::<F>(datatype)?;
    Some((1, 1, F::word_in(Word::Combiner, CONTIGUOUS)))
}

/// Returns the count and a new handle of the element datatype, or `None` if not recorded.
///
/// # Safety
/// MPI is initialized and not finalized.
pub unsafe fn contents<F: Foreign>(datatype: F::Below) -> Option<(i64, F::Below)> {
    let made = find::<F>(datatype)?;
    let mut element = F::of_request_number(made.element);
    if F::handle_out(Kind::Datatype, element) >= FIRST_DYNAMIC {
        let held = element;
        // SAFETY: `remember` has made `held`, which exists as long as the entry in `MADE`.
        unsafe { (backend::MPI_Type_dup::<F>())(held, &raw mut element) };
    }
    Some((made.count, element))
}

// SAFETY: this replaces the backend's function. The program's argument is a valid pointer.
unsafe extern "C-unwind" fn MPI_Type_free<F: Foreign>(datatype: *mut F::Below) -> c_int {
    // SAFETY: `datatype` is the program's argument, which must be a valid pointer.
    unsafe {
        if let Some(known) = find::<F>(*datatype) {
            let mut all = made();
            all.retain(|made| made.of != known.of);
            COUNT.store(all.len(), Ordering::Relaxed);
            drop(all);
            let mut element = F::of_request_number(known.element);
            if F::handle_out(Kind::Datatype, element) >= FIRST_DYNAMIC {
                original!(MPI_Type_free)(&raw mut element);
            }
        }
        original!(MPI_Type_free)(datatype)
    }
}

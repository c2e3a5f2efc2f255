//! Datatypes of more elements than an `int` counts, on a library that has no functions for them: how each was made.
//!
//! Below, such a datatype is one of chunks; the program asks for what it said itself.

use super::{original, put_in_front};
use crate::below;
use crate::family::{FIRST_DYNAMIC, Kind, Word};
use crate::foreign_below::Foreign;
use crate::lock::lock;
use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once};

/// `MPI_COMBINER_CONTIGUOUS` of the standard.
const CONTIGUOUS: c_int = 103;

/// A datatype, and the count and the datatype it was made of.
#[derive(Clone, Copy)]
struct Made {
    of: usize,
    count: i64,
    element: usize,
}

static MADE: Mutex<Vec<Made>> = Mutex::new(Vec::new());
/// How many there are, so that programs without them pay one load.
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

/// Remembers how a contiguous datatype was made; the element is held.
///
/// # Safety
/// Both are datatypes of the library below.
pub unsafe fn remember<F: Foreign>(datatype: F::Below, count: i64, element: F::Below) {
    static ARMED: Once = Once::new();
    ARMED.call_once(|| {
        put_in_front! { MPI_Type_free }
    });
    let mut held = element;
    if F::handle_out(Kind::Datatype, element) >= FIRST_DYNAMIC {
        // SAFETY: as the caller says.
        unsafe { (below::MPI_Type_dup::<F>())(element, &raw mut held) };
    }
    let mut made = made();
    made.push(Made {
        of: F::request_number(datatype),
        count,
        element: F::request_number(held),
    });
    COUNT.store(made.len(), Ordering::Relaxed);
}

/// The envelope: large counts, datatypes, the combiner.
pub fn envelope<F: Foreign>(datatype: F::Below) -> Option<(i64, i64, c_int)> {
    let _ = find::<F>(datatype)?;
    Some((1, 1, F::word_in(Word::Combiner, CONTIGUOUS)))
}

/// The contents: the count and a datatype of the program's own.
///
/// # Safety
/// Between init and finalize.
pub unsafe fn contents<F: Foreign>(datatype: F::Below) -> Option<(i64, F::Below)> {
    let made = find::<F>(datatype)?;
    let mut element = F::of_request_number(made.element);
    if F::handle_out(Kind::Datatype, element) >= FIRST_DYNAMIC {
        let held = element;
        // SAFETY: a datatype that is held.
        unsafe { (below::MPI_Type_dup::<F>())(held, &raw mut element) };
    }
    Some((made.count, element))
}

// SAFETY: called as the function of the library below.
unsafe extern "C" fn MPI_Type_free<F: Foreign>(datatype: *mut F::Below) -> c_int {
    // SAFETY: as above.
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

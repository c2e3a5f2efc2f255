//! Callbacks of the program for dropped tool events (`MPI_T_event_set_dropped_handler`).
//!
//! The standard passes the user data of the event callback to the callback for dropped events.
//! In the backend, these user data are a listener of this library (module `events`).
//! So `on_dropped` passes the program's user data instead of the listener.
//! Events may occur at any time, even in a signal handler, so the callback takes no lock.
//! It searches lists to which elements are added but never removed.
#![allow(unsafe_code)]

use crate::backend;
use crate::convert::code_out;
use crate::family::{Family, Word};
use std::ffi::{c_int, c_void};
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

struct Node<T> {
    value: T,
    next: *mut Node<T>,
}

/// A list whose nodes are never freed. The newest node is first.
struct List<T: 'static>(AtomicPtr<Node<T>>);

impl<T> List<T> {
    const fn new() -> Self {
        List(AtomicPtr::new(null_mut()))
    }

    fn add(&self, value: T) {
        let next = self.0.load(Ordering::Acquire);
        let node = Box::into_raw(Box::new(Node { value, next }));
        let mut known = next;
        while let Err(other) =
            self.0
                .compare_exchange_weak(known, node, Ordering::AcqRel, Ordering::Acquire)
        {
            known = other;
            // SAFETY: the node is not in the list yet, so no other thread has a pointer to it.
            unsafe { (*node).next = known };
        }
    }

    fn values(&self) -> impl Iterator<Item = &'static T> {
        // SAFETY: nodes are never freed.
        // Nodes are not changed after their publication by the list's head.
        let first = unsafe { self.0.load(Ordering::Acquire).as_ref() };
        // SAFETY: nodes are never freed.
        // Nodes are not changed after their publication by the list's head.
        std::iter::successors(first, |node| unsafe { node.next.as_ref() }).map(|node| &node.value)
    }
}

/// The addresses of the listeners in the backend, each with the program's user data.
static LISTENERS: List<[usize; 2]> = List::new();
/// The program's callback for dropped events by registration; 0 for none.
static FUNCTIONS: List<(usize, AtomicUsize)> = List::new();

/// Records that the backend received `listener` instead of the program's user data `data`.
pub(super) fn listens(listener: *mut c_void, data: *mut c_void) {
    LISTENERS.add([listener.addr(), data.expose_provenance()]);
}

/// Sets the callback for dropped events of a registration, and returns the previous callback.
fn exchange(registration: usize, function: usize) -> usize {
    let known = FUNCTIONS.values().find(|(known, _)| *known == registration);
    match known {
        Some((_, place)) => place.swap(function, Ordering::Relaxed),
        None => {
            FUNCTIONS.add((registration, AtomicUsize::new(function)));
            0
        }
    }
}

type OnDropped = unsafe extern "C-unwind" fn(i64, usize, c_int, c_int, *mut c_void);

unsafe extern "C-unwind" fn on_dropped<F: Family>(
    count: i64,
    registration: usize,
    source: c_int,
    safety: c_int,
    data: *mut c_void,
) {
    let known = FUNCTIONS.values().find(|(known, _)| *known == registration);
    let function = known.map_or(0, |(_, function)| function.load(Ordering::Relaxed));
    if function == 0 {
        return;
    }
    let listener = LISTENERS.values().find(|[known, _]| *known == data.addr());
    let data = listener.map_or(data, |[_, data]| with_exposed_provenance_mut(*data));
    let safety = F::word_out(Word::CallbackSafety, safety);
    // SAFETY: the program passed this function for dropped events, with this signature.
    unsafe {
        let function: OnDropped = std::mem::transmute(function);
        F::program(|| function(count, registration, source, safety, data));
    }
}

pub unsafe fn MPI_T_event_set_dropped_handler<F: Family>(
    registration: usize,
    function: usize,
) -> c_int {
    let ours: OnDropped = on_dropped::<F>;
    let given = if function == 0 { 0 } else { ours as usize };
    let before = exchange(registration, function);
    // SAFETY: the MPI standard requires that the program passes valid arguments.
    let code = unsafe { (backend::MPI_T_event_set_dropped_handler::<F>())(registration, given) };
    if code != 0 {
        exchange(registration, before);
    }
    code_out::<F>(code)
}

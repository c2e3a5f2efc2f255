//! Interposed functions: stored in backend slots, they run before or instead of backend functions.
//!
//! They accept values unknown to the backend, or record the program's calls.

pub mod codes;
pub mod large_types;
pub mod leaving;
pub mod newer;
pub mod of_groups;
pub mod ports;
pub mod world;

use crate::backend::{NAMES, SLOTS};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The backend function that was in each slot before an interposed function replaced it.
static BEFORE: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// Stores an interposed function of the same type in a slot, and records the previous function.
/// A second call has no effect.
pub fn put(id: usize, function: *mut c_void) {
    if let (Some(slot), Some(before)) = (SLOTS.get(id), BEFORE.get(id))
        && slot.load(Ordering::Relaxed) != function
    {
        before.store(slot.load(Ordering::Relaxed), Ordering::Relaxed);
        slot.store(function, Ordering::Release);
    }
}

/// Interposes the functions of these names, which the calling module defines.
macro_rules! put_in_front {
    ($($name:ident)*) => { $(
        $crate::foreign_below::interposed::put(
            $crate::backend::slot::$name,
            $name::<F> as *mut ::std::ffi::c_void,
        );
    )* };
}
pub(crate) use put_in_front;

/// Returns the function of this name that the interposed function replaced.
macro_rules! original {
    ($name:ident) => {
        $crate::foreign_below::interposed::Original($crate::backend::slot::$name)
            .get($crate::backend::$name::<F>())
    };
}
pub(crate) use original;

/// Access to the function that was in the slot with this index before it was interposed.
#[derive(Clone, Copy, Debug)]
pub struct Original(pub usize);

impl Original {
    /// Returns the function that was in the slot before an interposed function replaced it.
    /// Returns `like`, the present function of the slot, if the slot was not interposed.
    pub fn get<T: Copy>(self, like: T) -> T {
        const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
        let before = BEFORE.get(self.0).map(|slot| slot.load(Ordering::Relaxed));
        match before.filter(|function| !function.is_null()) {
            // SAFETY: the function was in this slot, whose functions have the type of `like`.
            // The assertion above checks the size.
            Some(function) => unsafe { std::mem::transmute_copy::<*mut c_void, T>(&function) },
            None => like,
        }
    }
}

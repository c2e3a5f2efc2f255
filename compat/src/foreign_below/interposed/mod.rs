//! Interposed functions: they replace functions of the backend, and may call the originals.
//!
//! Interposed functions support values unknown to the backend, or record calls of the program.

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

/// The original content of each replaced slot.
static BEFORE: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// Replaces the function of a slot by another of the same type, and stores the original.
/// A second call has no effect.
pub fn put(id: usize, function: *mut c_void) {
    if let (Some(slot), Some(before)) = (SLOTS.get(id), BEFORE.get(id))
        && slot.load(Ordering::Relaxed) != function
    {
        before.store(slot.load(Ordering::Relaxed), Ordering::Relaxed);
        slot.store(function, Ordering::Release);
    }
}

/// Replaces the functions of these names by functions of the calling module.
macro_rules! put_in_front {
    ($($name:ident)*) => { $(
        $crate::foreign_below::interposed::put(
            $crate::backend::slot::$name,
            $name::<F> as *mut ::std::ffi::c_void,
        );
    )* };
}
pub(crate) use put_in_front;

/// Returns access to the original function of a name.
macro_rules! original {
    ($name:ident) => {
        $crate::foreign_below::interposed::Original($crate::backend::slot::$name)
            .get($crate::backend::$name::<F>())
    };
}
pub(crate) use original;

/// Access to the original content of a slot.
#[derive(Clone, Copy, Debug)]
pub struct Original(pub usize);

impl Original {
    /// Returns the function that was in the slot before it was interposed.
    /// `like` is any function of this slot; only its type is used.
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

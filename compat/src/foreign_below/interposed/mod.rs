//! Functions of this library in front of those of the backend: they answer what it does not know, or note what the program does.

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

/// The previous content of each replaced slot.
static BEFORE: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// Replaces the function of a slot with one of the same type, and keeps the previous one. A second call has no effect.
pub fn put(id: usize, function: *mut c_void) {
    if let (Some(slot), Some(before)) = (SLOTS.get(id), BEFORE.get(id))
        && slot.load(Ordering::Relaxed) != function
    {
        before.store(slot.load(Ordering::Relaxed), Ordering::Relaxed);
        slot.store(function, Ordering::Release);
    }
}

/// Replaces the slots of the same names by functions of this library.
macro_rules! put_in_front {
    ($($name:ident)*) => { $(
        $crate::foreign_below::interposed::put(
            $crate::backend::slot::$name,
            $name::<F> as *mut ::std::ffi::c_void,
        );
    )* };
}
pub(crate) use put_in_front;

/// Returns the function that was in the slot of a name before.
macro_rules! original {
    ($name:ident) => {
        $crate::foreign_below::interposed::Original($crate::backend::slot::$name)
            .get($crate::backend::$name::<F>())
    };
}
pub(crate) use original;

/// Access to the previous content of a slot.
#[derive(Clone, Copy, Debug)]
pub struct Original(pub usize);

impl Original {
    /// Returns it as a function of the type of `like`, which is a function of the same slot.
    pub fn get<T: Copy>(self, like: T) -> T {
        const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
        let before = BEFORE.get(self.0).map(|slot| slot.load(Ordering::Relaxed));
        match before.filter(|function| !function.is_null()) {
            // SAFETY: the function was in this slot, whose functions have the type of `like`; the size is asserted above.
            Some(function) => unsafe { std::mem::transmute_copy::<*mut c_void, T>(&function) },
            None => like,
        }
    }
}

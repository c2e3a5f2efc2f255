//! Functions of this library in front of those of the library below.

use crate::below::{NAMES, SLOTS};
use std::ffi::c_void;
use std::sync::atomic::{AtomicPtr, Ordering};

/// What stood in each slot before this library put something there.
static BEFORE: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// Puts a function of the slot's type into it; the one before stays known. Twice does no more than once.
pub fn put(id: usize, function: *mut c_void) {
    if let (Some(slot), Some(before)) = (SLOTS.get(id), BEFORE.get(id))
        && slot.load(Ordering::Relaxed) != function
    {
        before.store(slot.load(Ordering::Relaxed), Ordering::Relaxed);
        slot.store(function, Ordering::Release);
    }
}

/// Puts functions of this library into the slots of the same names.
macro_rules! put_in_front {
    ($($name:ident)*) => { $(
        $crate::foreign_below::own::put(
            $crate::below::slot::$name,
            $name::<F> as *mut ::std::ffi::c_void,
        );
    )* };
}
pub(crate) use put_in_front;

/// The function of a name that stood in its slot before.
macro_rules! original {
    ($name:ident) => {
        $crate::foreign_below::own::Original($crate::below::slot::$name)
            .get($crate::below::$name::<F>())
    };
}
pub(crate) use original;

/// The way to what stood in a slot before.
#[derive(Clone, Copy, Debug)]
pub struct Original(pub usize);

impl Original {
    /// As a function of the type of `like`, which is that of the same slot.
    pub fn get<T: Copy>(self, like: T) -> T {
        const { assert!(size_of::<T>() == size_of::<*mut c_void>()) };
        let before = BEFORE.get(self.0).map(|slot| slot.load(Ordering::Relaxed));
        match before.filter(|function| !function.is_null()) {
            // SAFETY: a function that was in the slot, whose type is that of `like`.
            Some(function) => unsafe { std::mem::transmute_copy::<*mut c_void, T>(&function) },
            None => like,
        }
    }
}

//! The state that a component's modules in one process share.
//!
//! The library stores one pointer per component and process. [`Comm::share`] makes it point to the
//! state; the last owner of the state sets the pointer to null.
#![allow(unsafe_code)]

use super::Comm;
use std::any::TypeId;
use std::ffi::c_void;
use std::ops::Deref;
use std::rc::Rc;

/// The shared state of the component's modules in this process; see [`Comm::share`].
///
/// A module owns a `Common`, and must drop it before its communicator is freed.
pub struct Common<T: 'static> {
    value: Rc<Tagged<T>>,
    place: *mut *mut c_void,
    /// The communicator; `place` is valid until this communicator is freed.
    comm: Comm,
}

/// A value preceded by its type id: the library's pointer is untyped, so `common` compares the id.
#[repr(C)]
struct Tagged<T> {
    kind: TypeId,
    value: T,
}

impl<T> Deref for Common<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value.value
    }
}

impl<T> Drop for Common<T> {
    fn drop(&mut self) {
        if Rc::strong_count(&self.value) > 1 {
            return;
        }
        if self.comm.is_open() {
            // SAFETY: the communicator is alive, so the library's pointer `place` is valid.
            unsafe { self.place.write(std::ptr::null_mut()) };
        } else {
            // The library's pointer may still refer to the value, so the value is leaked.
            std::mem::forget(self.value.clone());
        }
    }
}

impl Comm {
    /// Returns the shared state of the component's modules in this process, if one exists.
    pub fn common<T: 'static>(&self) -> Option<Common<T>> {
        let place = self.common_place().ok()?;
        // SAFETY: `place` is null or readable, and only this thread uses it now.
        let found: *const Tagged<T> = unsafe { place.as_ref() }?.cast_const().cast();
        // SAFETY: `found` is null or set by `share`; the last owner clears it, so it is alive.
        let kind = unsafe { found.cast::<TypeId>().as_ref() }?;
        if *kind != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: `share` got this pointer from an `Rc` of the same type; the new owner is counted.
        let value = unsafe {
            Rc::increment_strong_count(found);
            Rc::from_raw(found)
        };
        Some(Common {
            value,
            place,
            comm: self.clone(),
        })
    }

    /// Shares a value with the component's other modules until its last owner is dropped.
    pub fn share<T: 'static>(&self, value: T) -> Result<Common<T>, String> {
        let place = self.common_place()?;
        // SAFETY: `place` is null or writable, and only this thread uses it now.
        let there =
            unsafe { place.as_mut() }.ok_or("the library gave no place for what modules share")?;
        if !there.is_null() {
            return Err("the component's modules share something already".into());
        }
        let kind = TypeId::of::<T>();
        let value = Rc::new(Tagged { kind, value });
        *there = Rc::as_ptr(&value).cast_mut().cast();
        Ok(Common {
            value,
            place,
            comm: self.clone(),
        })
    }
}

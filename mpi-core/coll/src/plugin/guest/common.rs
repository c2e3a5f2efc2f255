//! What the modules of a component share in one process.
//!
//! Protocol: the host keeps one pointer for each component; the first module puts it there, the last one to let go takes it away.
#![allow(unsafe_code)]

use super::Comm;
use std::any::TypeId;
use std::ffi::c_void;
use std::ops::Deref;
use std::rc::Rc;

/// What the component's modules in this process share; see [`Comm::share`].
///
/// A module owns it and drops it before its communicator goes, as it does with all it has.
pub struct Common<T: 'static> {
    value: Rc<Tagged<T>>,
    place: *mut *mut c_void,
    /// Tells whether `place` is still there.
    comm: Comm,
}

/// A value with its type in front, because the place in the host has none.
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
            // SAFETY: the communicator is alive, and with it the host's place.
            unsafe { self.place.write(std::ptr::null_mut()) };
        } else {
            // The place may still point here, so the value has to stay.
            std::mem::forget(self.value.clone());
        }
    }
}

impl Comm {
    /// What the component's modules in this process share, if one of them has made it.
    pub fn common<T: 'static>(&self) -> Option<Common<T>> {
        let place = self.common_place().ok()?;
        // SAFETY: the host's place is readable, and no other code uses it while this thread is in the component.
        let found: *const Tagged<T> = unsafe { place.as_ref() }?.cast_const().cast();
        // SAFETY: what is there was put there by `share`, and it is alive, for the holder that drops the last one takes it away.
        let kind = unsafe { found.cast::<TypeId>().as_ref() }?;
        if *kind != TypeId::of::<T>() {
            return None;
        }
        // SAFETY: the type is right, so this is the pointer that `share` got from an `Rc`, of which one more is handed out.
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

    /// Shares a value with the component's other modules in this process, for as long as one of them keeps it.
    pub fn share<T: 'static>(&self, value: T) -> Result<Common<T>, String> {
        let place = self.common_place()?;
        // SAFETY: as in `common`.
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

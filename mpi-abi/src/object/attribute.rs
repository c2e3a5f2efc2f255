//! Attributes that programs attach to communicators, datatypes and windows (section 7.7).
//!
//! A keyval identifies an attribute and its copy and delete callbacks.
//! Protocol: callbacks may call MPI again, so no borrow is held while a callback runs.
//! A freed keyval exists until the last attribute with it is deleted.
//! Until then its callbacks are called, and the program can read and delete those attributes.
//! The program may free the keyval again, but cannot set new attributes.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::error::{Failure, class_text};
use crate::thrown::guarded;
use std::cell::RefCell;
use std::ffi::{c_int, c_void};

/// The kind of object that a keyval belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    Comm,
    Type,
    Win,
}

/// A copy callback. Handles of communicators, datatypes and windows have one integer type.
pub type CopyFunction = unsafe extern "C-unwind" fn(
    usize,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
/// A delete callback.
pub type DeleteFunction =
    unsafe extern "C-unwind" fn(usize, c_int, *mut c_void, *mut c_void) -> c_int;

/// The copy behaviour of an attribute when its object is duplicated.
#[derive(Clone, Copy, Debug)]
pub enum Copy {
    /// `MPI_COMM_NULL_COPY_FN` and its counterparts: the attribute is not copied.
    Never,
    /// `MPI_COMM_DUP_FN` and its counterparts: the pointer is copied.
    Always,
    Ask(CopyFunction),
}

#[derive(Clone, Copy, Debug)]
struct Keyval {
    carrier: Carrier,
    copy: Copy,
    delete: Option<DeleteFunction>,
    extra_state: *mut c_void,
    /// Number of attributes with this keyval, plus one for the program until it frees the keyval.
    references: usize,
    freed: bool,
}

/// All keyvals of the process.
#[derive(Debug)]
pub struct Keyvals(RefCell<Vec<Option<Keyval>>>);

/// The first keyval of programs. Predefined keyvals are smaller.
const FIRST: c_int = 1024;

fn unknown(keyval: c_int) -> Failure {
    let sentence = match keyval {
        MPI_KEYVAL_INVALID => "the keyval is MPI_KEYVAL_INVALID".to_string(),
        k => format!("{k} is not a keyval of this kind of object"),
    };
    Failure::new(MPI_ERR_KEYVAL, sentence)
}

impl Keyvals {
    pub const fn new() -> Self {
        Keyvals(RefCell::new(Vec::new()))
    }

    /// Creates a keyval.
    pub fn create(
        &self,
        carrier: Carrier,
        copy: Copy,
        delete: Option<DeleteFunction>,
        extra_state: *mut c_void,
    ) -> Result<c_int, Failure> {
        let mut all = self.0.borrow_mut();
        let keyval = Keyval {
            carrier,
            copy,
            delete,
            extra_state,
            references: 1,
            freed: false,
        };
        let index = match all.iter().position(Option::is_none) {
            Some(free) => {
                all[free] = Some(keyval);
                free
            }
            None => {
                all.push(Some(keyval));
                all.len() - 1
            }
        };
        c_int::try_from(index)
            .ok()
            .and_then(|i| i.checked_add(FIRST))
            .ok_or_else(|| Failure::new(MPI_ERR_NO_MEM, "there are too many keyvals"))
    }

    /// Drops the program's reference to a keyval, at most once. Attributes with the keyval stay.
    pub fn free(&self, carrier: Carrier, keyval: c_int) -> Result<(), Failure> {
        if self.known(carrier, keyval)?.freed {
            return Ok(());
        }
        if let Some(Some(k)) = self.0.borrow_mut().get_mut(index(keyval)) {
            k.freed = true;
        }
        self.release(keyval);
        Ok(())
    }

    /// Returns a keyval that exists. A freed keyval exists while attributes with it remain.
    fn known(&self, carrier: Carrier, keyval: c_int) -> Result<Keyval, Failure> {
        self.get(keyval)
            .filter(|k| k.carrier == carrier)
            .ok_or_else(|| unknown(keyval))
    }

    /// Returns a keyval that the program can use for new attributes.
    fn live(&self, carrier: Carrier, keyval: c_int) -> Result<Keyval, Failure> {
        let known = self.known(carrier, keyval)?;
        if known.freed {
            return Err(Failure::new(
                MPI_ERR_KEYVAL,
                format!(
                    "keyval {keyval} has been freed: the attributes that are still under it can be read and deleted, but none can be set"
                ),
            ));
        }
        Ok(known)
    }

    fn get(&self, keyval: c_int) -> Option<Keyval> {
        self.0.borrow().get(index(keyval)).copied().flatten()
    }

    fn retain(&self, keyval: c_int) {
        if let Some(Some(k)) = self.0.borrow_mut().get_mut(index(keyval)) {
            k.references += 1;
        }
    }

    fn release(&self, keyval: c_int) {
        let mut all = self.0.borrow_mut();
        if let Some(slot) = all.get_mut(index(keyval))
            && let Some(k) = slot
        {
            k.references -= 1;
            if k.references == 0 {
                *slot = None;
            }
        }
    }
}

impl Default for Keyvals {
    fn default() -> Self {
        Keyvals::new()
    }
}

fn index(keyval: c_int) -> usize {
    usize::try_from(i64::from(keyval) - i64::from(FIRST)).unwrap_or(usize::MAX)
}

/// The attributes of one object, in the order in which they were set.
#[derive(Debug)]
pub struct Attributes(Vec<(c_int, *mut c_void)>);

impl Attributes {
    pub const fn new() -> Self {
        Attributes(Vec::new())
    }
}

impl Default for Attributes {
    fn default() -> Self {
        Attributes::new()
    }
}

/// An object with attributes, as seen by copy and delete callbacks.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    pub carrier: Carrier,
    pub handle: usize,
    pub attributes: &'a RefCell<Attributes>,
    pub keyvals: &'a Keyvals,
}

/// Returns the failure for an error code returned by a copy or delete callback.
fn refused(which: &str, keyval: c_int, code: c_int) -> Failure {
    let known = if class_text(code).is_some() || code > MPI_ERR_LASTCODE {
        code
    } else {
        MPI_ERR_OTHER
    };
    Failure::new(
        known,
        format!("the {which} function of keyval {keyval} returned {code}"),
    )
}

impl Owner<'_> {
    /// Returns the attribute value of a keyval.
    pub fn get(&self, keyval: c_int) -> Result<Option<*mut c_void>, Failure> {
        self.keyvals.known(self.carrier, keyval)?;
        Ok(self
            .attributes
            .borrow()
            .0
            .iter()
            .find(|(k, _)| *k == keyval)
            .map(|(_, v)| *v))
    }

    /// Sets an attribute, after the deletion of an existing value.
    pub fn set(&self, keyval: c_int, value: *mut c_void) -> Result<(), Failure> {
        self.keyvals.live(self.carrier, keyval)?;
        let old = self
            .attributes
            .borrow()
            .0
            .iter()
            .find(|(k, _)| *k == keyval)
            .map(|(_, v)| *v);
        if let Some(old) = old {
            self.call_delete(keyval, old)?;
            if let Some((_, v)) = self
                .attributes
                .borrow_mut()
                .0
                .iter_mut()
                .find(|(k, _)| *k == keyval)
            {
                *v = value;
                return Ok(());
            }
        }
        self.keyvals.retain(keyval);
        self.attributes.borrow_mut().0.push((keyval, value));
        Ok(())
    }

    /// Deletes the attribute of a keyval.
    pub fn delete(&self, keyval: c_int) -> Result<(), Failure> {
        let Some(value) = self.get(keyval)? else {
            return Err(Failure::new(
                MPI_ERR_KEYVAL,
                format!("the object has no attribute under keyval {keyval}"),
            ));
        };
        self.call_delete(keyval, value)?;
        self.forget(keyval);
        Ok(())
    }

    /// Deletes all attributes in reverse order. Stops at the first delete callback that fails.
    pub fn delete_all(&self) -> Result<(), Failure> {
        loop {
            let last = self.attributes.borrow().0.last().copied();
            let Some((keyval, value)) = last else {
                return Ok(());
            };
            self.call_delete(keyval, value)?;
            self.forget(keyval);
        }
    }

    /// Copies the attributes to a duplicate by their copy callbacks.
    pub fn copy_all(&self, duplicate: &Owner<'_>) -> Result<(), Failure> {
        let all = self.attributes.borrow().0.clone();
        for (keyval, value) in all {
            if let Some(copied) = self.call_copy(keyval, value)? {
                self.keyvals.retain(keyval);
                duplicate.attributes.borrow_mut().0.push((keyval, copied));
            }
        }
        Ok(())
    }

    /// Removes an attribute from the object, unless its delete callback has removed it.
    fn forget(&self, keyval: c_int) {
        let mut attributes = self.attributes.borrow_mut();
        let before = attributes.0.len();
        attributes.0.retain(|(k, _)| *k != keyval);
        if attributes.0.len() < before {
            self.keyvals.release(keyval);
        }
    }

    fn call_delete(&self, keyval: c_int, value: *mut c_void) -> Result<(), Failure> {
        let Some(Keyval {
            delete: Some(delete),
            extra_state,
            ..
        }) = self.keyvals.get(keyval)
        else {
            return Ok(());
        };
        let handle = self.handle;
        // SAFETY: the program registered this function as a delete callback.
        // So the callback accepts these arguments (section 7.7).
        let delete = move || unsafe { delete(handle, keyval, value, extra_state) };
        // An attribute whose delete callback throws is removed.
        // Otherwise the callback would run again when the object is freed.
        match guarded(MPI_SUCCESS, delete) {
            MPI_SUCCESS => Ok(()),
            code => Err(refused("delete", keyval, code)),
        }
    }

    /// Returns the attribute value for the duplicate, or `None` if the attribute is not copied.
    fn call_copy(&self, keyval: c_int, value: *mut c_void) -> Result<Option<*mut c_void>, Failure> {
        let Some(k) = self.keyvals.get(keyval) else {
            return Ok(None);
        };
        let copy = match k.copy {
            Copy::Never => return Ok(None),
            Copy::Always => return Ok(Some(value)),
            Copy::Ask(copy) => copy,
        };
        let mut copied: *mut c_void = std::ptr::null_mut();
        let mut flag = 0;
        let (handle, extra) = (self.handle, k.extra_state);
        let (place, has_copied) = ((&raw mut copied).cast(), &raw mut flag);
        // SAFETY: the program registered this copy callback, which accepts these arguments.
        // The new value and the flag are local variables that outlive the call.
        let copy = move || unsafe { copy(handle, keyval, extra, value, place, has_copied) };
        match guarded(MPI_SUCCESS, copy) {
            MPI_SUCCESS => Ok((flag != 0).then_some(copied)),
            code => Err(refused("copy", keyval, code)),
        }
    }
}

#[cfg(test)]
mod tests;

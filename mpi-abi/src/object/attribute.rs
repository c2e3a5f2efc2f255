//! Attributes that programs cache on communicators, datatypes and windows (section 7.7).
//!
//! A keyval names an attribute and the functions that copy and delete it.
//! Protocol: the program's functions may call MPI again, so no borrow is held while one runs.
//! A keyval that is freed lives on until the last attribute under it has gone: its functions are still called, a program that
//! kept the number reads and deletes those attributes by it and may free it again, but no attribute comes under it any more.
#![allow(unsafe_code)]

use crate::abi::*;
use crate::error::{Failure, class_text};
use crate::thrown::guarded;
use std::cell::RefCell;
use std::ffi::{c_int, c_void};

/// What a keyval belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    Comm,
    Type,
    Win,
}

/// A copy function; communicators, datatypes and windows are all numbers to it.
pub type CopyFunction = unsafe extern "C-unwind" fn(
    usize,
    c_int,
    *mut c_void,
    *mut c_void,
    *mut c_void,
    *mut c_int,
) -> c_int;
/// A delete function.
pub type DeleteFunction =
    unsafe extern "C-unwind" fn(usize, c_int, *mut c_void, *mut c_void) -> c_int;

/// What happens to an attribute when its carrier is duplicated.
#[derive(Clone, Copy, Debug)]
pub enum Copy {
    /// `MPI_COMM_NULL_COPY_FN` and its kin: it is not copied.
    Never,
    /// `MPI_COMM_DUP_FN` and its kin: the pointer is copied.
    Always,
    Ask(CopyFunction),
}

#[derive(Clone, Copy, Debug)]
struct Keyval {
    carrier: Carrier,
    copy: Copy,
    delete: Option<DeleteFunction>,
    extra_state: *mut c_void,
    /// Attributes under it, and one for the program until it frees the keyval.
    references: usize,
    freed: bool,
}

/// All keyvals of the process.
#[derive(Debug)]
pub struct Keyvals(RefCell<Vec<Option<Keyval>>>);

/// Keyvals of the standard are below; those of programs start here.
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

    /// Makes a keyval.
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

    /// The program's reference goes, if it has not gone already; attributes under it stay.
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

    /// A keyval that there is, if only because there are attributes under it.
    fn known(&self, carrier: Carrier, keyval: c_int) -> Result<Keyval, Failure> {
        self.get(keyval)
            .filter(|k| k.carrier == carrier)
            .ok_or_else(|| unknown(keyval))
    }

    /// A keyval that the program may use for new attributes.
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

/// An object that carries attributes, as its functions see it.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    pub carrier: Carrier,
    pub handle: usize,
    pub attributes: &'a RefCell<Attributes>,
    pub keyvals: &'a Keyvals,
}

/// The failure that a program's function reports.
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
    /// The value under a keyval.
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

    /// Sets a value; one that was there is deleted first.
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

    /// Deletes the value under a keyval.
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

    /// Deletes all, the last set first; stops where a delete function refuses.
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

    /// Copies what is to be copied onto a duplicate.
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

    /// Takes an attribute off the object, if its delete function has not done so itself.
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
        // SAFETY: the program gave the function for this purpose and promises that it takes what the standard passes.
        let delete = move || unsafe { delete(handle, keyval, value, extra_state) };
        // An attribute whose function throws is gone: it would be deleted again with its carrier.
        match guarded(MPI_SUCCESS, delete) {
            MPI_SUCCESS => Ok(()),
            code => Err(refused("delete", keyval, code)),
        }
    }

    /// The value that the duplicate gets, if it gets one.
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
        // SAFETY: as for deletion; the new value and the flag are locals that outlive the call.
        let copy = move || unsafe { copy(handle, keyval, extra, value, place, has_copied) };
        match guarded(MPI_SUCCESS, copy) {
            MPI_SUCCESS => Ok((flag != 0).then_some(copied)),
            code => Err(refused("copy", keyval, code)),
        }
    }
}

#[cfg(test)]
mod tests;

//! Registration of local buffers, for providers that require it.

#![allow(unsafe_code)]

use super::super::abi::{self, Object, Pointer};
use super::objects::{close, pointer_at};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ptr::null_mut;

/// The offset of the local descriptor (`mem_desc`) in a registration (`fid_mr`).
const LOCAL_DESCRIPTOR: usize = 24;

/// The registrations of an endpoint's buffers, by the address of the memory.
pub(super) struct RegisteredMemory {
    domain: Object,
    is_needed: bool,
    known: RefCell<HashMap<usize, Registration>>,
}

#[derive(Clone, Copy)]
struct Registration {
    object: Object,
    /// The local descriptor, which each call that uses the memory needs.
    mark: Pointer,
}

impl RegisteredMemory {
    /// Creates an empty set of registrations in an open domain.
    /// `is_needed` is true if the domain's provider transfers data only from and to registered memory.
    pub fn of(domain: Object, is_needed: bool) -> RegisteredMemory {
        RegisteredMemory {
            domain,
            is_needed,
            known: RefCell::default(),
        }
    }

    /// Registers memory at its first use if the provider requires this. Returns the local descriptor, or null without a registration.
    ///
    /// # Safety
    /// The domain must be open, and the memory must be neither moved nor freed before [`RegisteredMemory::unregister`].
    #[inline]
    pub unsafe fn mark(&self, bytes: &[u8]) -> Result<Pointer, isize> {
        if !self.is_needed {
            return Ok(null_mut());
        }
        let key = bytes.as_ptr().addr();
        if let Some(known) = self.known.borrow().get(&key) {
            return Ok(known.mark);
        }
        // SAFETY: by the contract of this function the domain is open and the memory is neither moved nor freed before `unregister`.
        let registration = unsafe { self.register(bytes)? };
        self.known.borrow_mut().insert(key, registration);
        Ok(registration.mark)
    }

    /// Registers memory for sends and receives; the requested key is the memory's address.
    ///
    /// # Safety
    /// As for [`RegisteredMemory::mark`].
    #[cold]
    unsafe fn register(&self, bytes: &[u8]) -> Result<Registration, isize> {
        let mut object = null_mut();
        // SAFETY: by the contract of this function the domain is open and the memory remains valid; a registration has a pointer at this offset.
        unsafe {
            let register: abi::Register = self
                .domain
                .function(abi::REGISTER)
                .ok_or(abi::ENOSYS as isize)?;
            let result = register(
                self.domain.0,
                bytes.as_ptr().cast(),
                bytes.len(),
                abi::SEND | abi::RECV,
                0,
                bytes.as_ptr().addr() as u64,
                0,
                &raw mut object,
                null_mut(),
            );
            if result != 0 {
                return Err(result as isize);
            }
            Ok(Registration {
                object: Object(object),
                mark: pointer_at(object, LOCAL_DESCRIPTOR),
            })
        }
    }

    /// Closes all registrations. Called after the endpoint is closed and while the domain is open.
    pub fn unregister(&self) {
        for registration in self.known.take().into_values() {
            // SAFETY: the registration was removed from the table, and no operation uses it after the endpoint was closed.
            unsafe { close(registration.object) };
        }
    }
}

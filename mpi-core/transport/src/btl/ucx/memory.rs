//! Remote memory access by UCX: registered memory of this process, and operations on registered memory of peers.
//!
//! The key that peers receive consists of the address of the memory and UCX's packed key.
//! A received key is used only if its message contains the right key of the fabric, and therefore belongs to this job.

#![allow(unsafe_code)]

use super::abi::{self, MemoryFunctions, Pointer, Status};
use super::callbacks::{Note, Shared, on_end};
use crate::btl::fabric::port::Operation;
use crate::btl::{Exposed, GetError, Region, Span};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::null_mut;

/// Maximum length of a packed key in bytes.
const LONGEST_KEY: usize = 512;

/// The registrations of this process's memory in a UCX context.
pub(super) struct RegisteredMemory {
    ucp: MemoryFunctions,
    context: Pointer,
    last: Cell<u64>,
    /// UCX's handles of the registrations, by ID.
    known: RefCell<HashMap<u64, Pointer>>,
}

impl RegisteredMemory {
    /// Creates an empty table for a context that outlives this value and was created with the feature for remote memory access.
    pub fn of(ucp: MemoryFunctions, context: Pointer) -> RegisteredMemory {
        RegisteredMemory {
            ucp,
            context,
            last: Cell::new(0),
            known: RefCell::default(),
        }
    }

    /// Registers memory. Returns the registration's ID and key; `None` if that is impossible.
    ///
    /// # Safety
    /// The memory must not be freed before [`RegisteredMemory::unregister`].
    pub unsafe fn register(&self, region: Region) -> Option<Exposed> {
        let parameters = abi::memory(region.address, region.len);
        let mut handle = null_mut();
        // SAFETY: the context is valid; the parameter block is longer than the structure, and the caller guarantees that the memory remains valid.
        let status =
            unsafe { (self.ucp.ucp_mem_map)(self.context, parameters.pointer(), &raw mut handle) };
        if status != abi::OK || handle.is_null() {
            return None;
        }
        let number = self.last.get() + 1;
        self.last.set(number);
        self.known.borrow_mut().insert(number, handle);
        let Some(packed) = self.packed(handle) else {
            self.unregister(number);
            return None;
        };
        let mut key = region.address.to_le_bytes().to_vec();
        key.extend(packed);
        Some(Exposed { number, key })
    }

    /// Returns UCX's packed key for a registration; `None` if it is too long.
    fn packed(&self, handle: Pointer) -> Option<Vec<u8>> {
        let (mut bytes, mut len) = (null_mut(), 0);
        // SAFETY: context and handle are valid; the call writes a pointer to `len` bytes, which are copied and released below.
        let status =
            unsafe { (self.ucp.ucp_rkey_pack)(self.context, handle, &raw mut bytes, &raw mut len) };
        if status != abi::OK || bytes.is_null() {
            return None;
        }
        // SAFETY: the call has succeeded, so `bytes` points to `len` bytes until it is released, once, here.
        let packed = unsafe {
            let packed = std::slice::from_raw_parts(bytes.cast::<u8>(), len).to_vec();
            (self.ucp.ucp_rkey_buffer_release)(bytes);
            packed
        };
        (packed.len() <= LONGEST_KEY).then_some(packed)
    }

    /// Ends the registration with the ID `number`.
    pub fn unregister(&self, number: u64) {
        if let Some(handle) = self.known.borrow_mut().remove(&number) {
            // SAFETY: the handle was removed from the table, so it is unmapped only once.
            unsafe { (self.ucp.ucp_mem_unmap)(self.context, handle) };
        }
    }

    /// Ends all registrations. Called before the context is cleaned up.
    pub fn unregister_all(&self) {
        let all: Vec<u64> = self.known.borrow().keys().copied().collect();
        all.into_iter().for_each(|number| self.unregister(number));
    }

    /// Starts an operation on the memory of an endpoint's peer.
    /// Returns true if the operation has ended; otherwise its end will be recorded in `shared`.
    ///
    /// # Safety
    /// The endpoint must be valid, and the local memory must be as [`Memory::start`](crate::btl::fabric::port::Memory::start) requires.
    pub unsafe fn start(
        &self,
        endpoint: Pointer,
        shared: *const Shared,
        operation: Operation<'_>,
        number: u64,
    ) -> Result<bool, GetError> {
        // SAFETY: the caller guarantees a valid endpoint.
        let (key, remote) = unsafe { self.opened(endpoint, &operation) }?;
        let note = Note {
            shared,
            number,
            key,
        };
        let note = Box::into_raw(Box::new(note));
        let parameters = abi::operation(on_end, note.cast_const().cast());
        let parameters = parameters.pointer();
        let at =
            |local: Region| std::ptr::with_exposed_provenance_mut::<c_void>(local.address as usize);
        // SAFETY: the caller guarantees a valid endpoint and valid local memory; the key was unpacked for this endpoint;
        // `note` is freed below if the operation has ended during the call, otherwise by `on_end`.
        let request = unsafe {
            match operation {
                Operation::Read(Span { local, .. }) => {
                    let len = local.len as usize;
                    (self.ucp.ucp_get_nbx)(endpoint, at(local), len, remote, key, parameters)
                }
                Operation::Write(Span { local, .. }) => {
                    let (from, len) = (at(local).cast_const(), local.len as usize);
                    (self.ucp.ucp_put_nbx)(endpoint, from, len, remote, key, parameters)
                }
                Operation::Flush => (self.ucp.ucp_ep_flush_nbx)(endpoint, parameters),
            }
        };
        let Some(status) = abi::status_of(request) else {
            return Ok(false);
        };
        // SAFETY: the operation has ended during the call, so UCX does not call `on_end`.
        drop(unsafe { Box::from_raw(note) });
        self.forget_key(key);
        failed(status).map(|()| true)
    }

    /// Unpacks the key of an operation for this endpoint. Returns UCX's key and the address in the peer's memory; both are zero for a flush.
    ///
    /// # Safety
    /// The endpoint must be valid.
    unsafe fn opened(
        &self,
        endpoint: Pointer,
        operation: &Operation<'_>,
    ) -> Result<(Pointer, u64), GetError> {
        let (Operation::Read(span) | Operation::Write(span)) = operation else {
            return Ok((null_mut(), 0));
        };
        let (base, packed) = span
            .key
            .split_first_chunk::<8>()
            .ok_or(GetError::BadAddress)?;
        if packed.is_empty() || packed.len() > LONGEST_KEY {
            return Err(GetError::BadAddress);
        }
        let mut key = null_mut();
        // SAFETY: the caller guarantees a valid endpoint. The peer has packed this key, because the message that contained it also contained the right key of the fabric.
        let status = unsafe {
            (self.ucp.ucp_ep_rkey_unpack)(endpoint, packed.as_ptr().cast(), &raw mut key)
        };
        failed(status)?;
        Ok((key, u64::from_le_bytes(*base).wrapping_add(span.offset)))
    }

    /// Frees the key of an ended operation if it is not null.
    /// Must not be called in a callback of UCX.
    pub fn forget_key(&self, key: Pointer) {
        if !key.is_null() {
            // SAFETY: `ucp_ep_rkey_unpack` has created the key, and its operation has ended; each operation frees its own key once.
            unsafe { (self.ucp.ucp_rkey_destroy)(key) };
        }
    }
}

/// Converts a status to a result; `Ok` means success.
fn failed(status: Status) -> Result<(), GetError> {
    match status {
        abi::OK => Ok(()),
        abi::NO_RESOURCE | abi::NO_MEMORY | abi::BUSY => Err(GetError::Busy),
        _ => Err(GetError::Forbidden),
    }
}

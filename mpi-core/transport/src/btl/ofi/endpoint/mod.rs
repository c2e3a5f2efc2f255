//! The port of the transport `ofi`: a libfabric endpoint with its domain, completion queue and address vector.

#![allow(unsafe_code)]

mod completions;
mod memory;
mod objects;
mod opening;
mod receives;
mod remote;
mod sleep;

use super::abi::{self, Object, Pointer};
use crate::btl::fabric::named_address::split;
use crate::btl::fabric::pool::{Buffer, Slot};
use crate::btl::fabric::port::{Close, Events, Memory, Operation, Port, Posted};
use crate::btl::{Exposed, GetError, ProcId, Region, Rights};
use memory::RegisteredMemory;
use objects::Objects;
use receives::ReceiveBuffers;
use remote::Remote;
use sleep::Sleep;
use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::ptr::null_mut;
use std::time::Duration;

/// The functions that are called for each message; they are looked up once.
struct Calls {
    send: abi::Send,
    inject: abi::Inject,
    receive: abi::Receive,
    read: abi::Read,
    read_error: abi::ReadError,
    insert: abi::Insert,
    try_wait: Option<abi::TryWait>,
}

pub struct Endpoint {
    objects: Objects,
    calls: Calls,
    fabric: Object,
    queue: Object,
    addresses: Object,
    endpoint: Object,
    /// The provider's name and this endpoint's address, as published to the peers.
    address: Vec<u8>,
    inject_size: usize,
    memory: RegisteredMemory,
    /// Operations on peers' registered memory; `None` if the provider does not support them or they are disabled.
    remote: Option<Remote>,
    receives: ReceiveBuffers,
    peers: RefCell<HashMap<ProcId, u64>>,
    sleep: Sleep,
}

// SAFETY: the domain is opened for use by one thread at a time, and its pointers are used only through this value.
unsafe impl Send for Endpoint {}

impl Port for Endpoint {
    fn address(&self) -> &[u8] {
        &self.address
    }

    fn connect(&self, peer: ProcId, address: &[u8]) -> Result<(), String> {
        let (Some((ours, our_address)), Some((theirs, address))) =
            (split(&self.address), split(address))
        else {
            return Err("its published card is malformed".into());
        };
        if ours != theirs {
            return Err(format!(
                "it uses libfabric's provider {}, and this process {}; btl_ofi_provider chooses one for all",
                String::from_utf8_lossy(theirs),
                String::from_utf8_lossy(ours)
            ));
        }
        if self.peers.borrow().contains_key(&peer) {
            return Ok(());
        }
        if address.len() != our_address.len() {
            return Err("the address on its card has another length than ours".into());
        }
        let mut number = abi::UNSPECIFIED;
        // SAFETY: the address vector is open; the address has the length of this provider's addresses and is only read during the call.
        let result = unsafe {
            let insert = self.calls.insert;
            insert(
                self.addresses.0,
                address.as_ptr().cast(),
                1,
                &raw mut number,
                0,
                null_mut(),
            )
        };
        if result != 1 {
            let why = self.objects.text(result as isize);
            return Err(format!("libfabric does not take its address: {why}"));
        }
        // Addresses are never removed: some providers fail when an address is removed and inserted again.
        self.peers.borrow_mut().insert(peer, number);
        Ok(())
    }

    fn close(&self, _peer: ProcId, _how: Close) {}

    #[inline]
    fn post(&self, peer: ProcId, slot: Slot) -> Posted {
        let Some(to) = self.peers.borrow().get(&peer).copied() else {
            return Posted::Gone(slot, "there is no connection".into());
        };
        let bytes = slot.message();
        if bytes.len() <= self.inject_size {
            // SAFETY: the endpoint is enabled, and the call copies the message.
            let result = unsafe {
                (self.calls.inject)(self.endpoint.0, bytes.as_ptr().cast(), bytes.len(), to)
            };
            return match result {
                0 => Posted::Done(slot),
                abi::EAGAIN | abi::ENOMEM => Posted::Again(slot),
                error => Posted::Gone(slot, self.objects.text(error)),
            };
        }
        // SAFETY: the domain is open, and buffers are freed only after `Drop` of the endpoint, which unregisters them.
        let mark = match unsafe { self.memory.mark(slot.whole()) } {
            Ok(mark) => mark,
            Err(error) => return Posted::Gone(slot, self.objects.text(error)),
        };
        let (data, len) = (bytes.as_ptr(), bytes.len());
        let context: Pointer = Box::into_raw(slot).cast();
        context.expose_provenance();
        // SAFETY: the endpoint is enabled. Message and context are in the buffer, which is neither freed nor written before its completion is read.
        let result =
            unsafe { (self.calls.send)(self.endpoint.0, data.cast(), len, mark, to, context) };
        if result == 0 {
            return Posted::Pending;
        }
        // SAFETY: a refused send has no completion, so this is the only owner of the buffer.
        let slot = unsafe { Box::from_raw(context.cast::<Buffer>()) };
        match result {
            abi::EAGAIN | abi::ENOMEM => Posted::Again(slot),
            error => Posted::Gone(slot, self.objects.text(error)),
        }
    }

    #[inline]
    fn progress(&self, events: &dyn Events) {
        self.poll(events);
    }

    fn flush(&self) {}

    fn is_quiet(&self) -> bool {
        true
    }

    fn may_sleep(&self) -> bool {
        self.sleep.begin();
        let Some(try_wait) = self.calls.try_wait.filter(|_| self.descriptor().is_some()) else {
            return true;
        };
        // SAFETY: the fabric is open, and the array contains one open queue.
        unsafe { try_wait(self.fabric.0, &raw const self.queue.0, 1) == 0 }
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.sleep.descriptor()
    }

    fn memory(&self) -> Option<&dyn Memory> {
        self.remote.as_ref().map(|_| self as &dyn Memory)
    }

    fn longest_sleep(&self) -> Option<Duration> {
        Some(self.sleep.longest())
    }
}

impl Memory for Endpoint {
    unsafe fn register(&self, region: Region, rights: Rights) -> Option<Exposed> {
        // SAFETY: by the contract of `Memory::register` the memory is not freed before `unregister`.
        unsafe { self.remote.as_ref()?.expose(region, rights) }
    }

    fn unregister(&self, number: u64) {
        if let Some(remote) = &self.remote {
            remote.unregister(number);
        }
    }

    unsafe fn start(
        &self,
        peer: ProcId,
        operation: Operation<'_>,
        number: u64,
    ) -> Result<bool, GetError> {
        let remote = self.remote.as_ref().ok_or(GetError::Forbidden)?;
        let peer = self.peers.borrow().get(&peer).copied();
        let peer = peer.ok_or(GetError::PeerGone)?;
        // SAFETY: by the contract of `Memory::start`, until the operation has ended, no other code accesses the local memory of a read,
        // and no code frees or writes the local memory of a write.
        unsafe {
            match operation {
                Operation::Read(span) => remote.read(peer, span, number)?,
                Operation::Write(span) => remote.write(peer, span, number)?,
                // A write ends only when its data are in the peer's memory, so a flush is complete immediately.
                Operation::Flush => return Ok(true),
            }
        }
        Ok(false)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // The endpoint is closed before the memory of its operations is unregistered or freed.
        // The buffers of unfinished sends are leaked, because the provider may still use them.
        self.objects.close_last(self.endpoint);
        self.memory.unregister();
        if let Some(remote) = &self.remote {
            remote.unregister_all();
        }
    }
}

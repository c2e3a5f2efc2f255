//! Polls of the endpoint: reads completions, delivers arrived messages, returns the buffers of transmitted messages, and posts receive buffers again.

#![allow(unsafe_code)]

use super::super::abi::{self, Completion, ErrorEntry, Pointer};
use super::Endpoint;
use crate::btl::fabric::frame::HEADER;
use crate::btl::fabric::pool::Buffer;
use crate::btl::fabric::port::Events;
use std::ffi::c_int;
use std::ptr::null_mut;

/// Maximum number of completions that one poll reads.
const COMPLETIONS: usize = 16;

impl Endpoint {
    /// Reads up to [`COMPLETIONS`] completions and processes them.
    pub(super) fn poll(&self, events: &dyn Events) {
        let empty = Completion {
            context: null_mut(),
            flags: 0,
            len: 0,
            bytes: null_mut(),
            data: 0,
        };
        let mut all = [empty; COMPLETIONS];
        // SAFETY: the queue is open and its entries have the format of `Completion`; the call writes at most `COMPLETIONS` of them.
        let read = unsafe { (self.calls.read)(self.queue.0, all.as_mut_ptr().cast(), COMPLETIONS) };
        match usize::try_from(read) {
            Ok(read) => {
                self.sleep.found_completions();
                let read = &all[..read.min(COMPLETIONS)];
                read.iter().for_each(|one| self.completed(one, events));
            }
            Err(_) if read == abi::EAVAIL => self.read_error(events),
            Err(_) => self.sleep.found_nothing(),
        }
        self.sleep.end();
        if self.receives.has_unposted() {
            // Buffers that the library refuses now are posted in the next poll.
            let _ = self.post_receives();
        }
    }

    /// Posts all receive buffers that are not posted.
    pub(super) fn post_receives(&self) -> Result<(), isize> {
        while let Some(receive) = self.receives.next_unposted() {
            // SAFETY: the domain is open, and receive buffers are freed only after `Drop` of the endpoint, which unregisters them.
            let mark = unsafe { self.memory.mark(&receive.bytes)? };
            let context: *const [u64; 8] = &raw const *receive.context;
            let bytes = receive.bytes.as_ptr().cast_mut();
            // SAFETY: the endpoint is enabled. Buffer and context live as long as the endpoint, and only the library writes them while they are posted.
            let result = unsafe {
                (self.calls.receive)(
                    self.endpoint.0,
                    bytes.cast(),
                    receive.bytes.len(),
                    mark,
                    abi::UNSPECIFIED,
                    context.cast_mut().cast(),
                )
            };
            match result {
                0 => self.receives.posted(),
                abi::EAGAIN => return Ok(()),
                error => return Err(error),
            }
        }
        Ok(())
    }

    fn completed(&self, completion: &Completion, events: &dyn Events) {
        let Some(index) = self.receives.index_of(completion.context) else {
            if let Some(number) = self.operation_of(completion.context) {
                return events.ended(number, true);
            }
            return self.sent(completion.context, None, events);
        };
        let message = self.receives.message(index, completion.len);
        if let Some((head, payload)) = message.and_then(|bytes| bytes.split_at_checked(HEADER)) {
            events.arrived(head, payload);
        }
        self.receives.give_back(index);
    }

    /// Returns the ID of the operation on registered memory with this context; `None` if the context belongs to a message.
    fn operation_of(&self, context: Pointer) -> Option<u64> {
        self.remote.as_ref()?.ended(context)
    }

    /// Returns the buffer of an ended send to the fabric; `why` is the reason of a failure.
    fn sent(&self, context: Pointer, why: Option<String>, events: &dyn Events) {
        if context.is_null() {
            return;
        }
        // SAFETY: every context that is not that of a receive is a buffer that `post` has converted with `Box::into_raw`, and each send ends once.
        let slot = unsafe { Box::from_raw(context.cast::<Buffer>()) };
        events.sent(slot, why);
    }

    /// Reads the error entry of a failed operation and reports the failure.
    #[cold]
    fn read_error(&self, events: &dyn Events) {
        let mut entry = ErrorEntry::default();
        // SAFETY: the queue is open, and the entry is zeroed and longer than any version of the structure.
        let result = unsafe { (self.calls.read_error)(self.queue.0, entry.pointer_mut(), 0) };
        if result <= 0 {
            return;
        }
        let error = entry.get32(56) as c_int;
        let context: Pointer = std::ptr::with_exposed_provenance_mut(entry.get64(0) as usize);
        match (self.receives.index_of(context), self.operation_of(context)) {
            (Some(index), _) => self.receives.give_back(index),
            (None, Some(number)) => events.ended(number, false),
            (None, None) => self.sent(context, Some(self.objects.text(error as isize)), events),
        }
    }
}

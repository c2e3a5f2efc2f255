//! Delivery in place by UCX's rendezvous for active messages:
//! the sender's UCX announces the data, and after [`Rendezvous::accept`] UCX sends them and stores them in their place.

#![allow(unsafe_code)]

use super::abi::{self, Pointer, Status};
use super::callbacks::{Shared, TransferNote, on_filled, on_received};
use super::worker::{ID, Worker};
use crate::btl::fabric::frame::HEADER;
use crate::btl::fabric::port::{Offer, Offered, Rendezvous};
use crate::btl::{ProcId, Region};
use std::ffi::c_void;

/// Returns the pointer to the first byte of a region.
fn start(region: Region) -> Pointer {
    std::ptr::with_exposed_provenance_mut::<c_void>(region.address as usize)
}

/// Frees the note of a transfer that has ended during the call of UCX, and returns the status.
///
/// # Safety
/// `note` must be the result of `Box::into_raw`, and no callback may be called with it.
unsafe fn ended(note: *mut TransferNote, status: Status) -> Status {
    // SAFETY: the caller guarantees that this is the only use of the note.
    drop(unsafe { Box::from_raw(note) });
    status
}

impl Rendezvous for Worker {
    fn shortest(&self) -> usize {
        self.in_place.map_or(usize::MAX, |all| all.shortest)
    }

    fn serves(&self, peer: ProcId) -> bool {
        self.ends_transfers(peer)
    }

    unsafe fn offer(
        &self,
        peer: ProcId,
        head: [u8; HEADER],
        data: Region,
        transfer: u64,
    ) -> Offered {
        let Some(endpoint) = self.endpoint(peer) else {
            return Offered::Failed;
        };
        let note = Box::into_raw(Box::new(TransferNote {
            shared: self.shared(),
            transfer,
            head,
        }));
        let parameters = abi::offer(on_filled, note.cast_const().cast());
        // SAFETY: the endpoint belongs to this worker. The header is in the note, which is freed after the send has ended:
        // here if the call returns a status, otherwise in `on_filled`. The caller guarantees that the data remain in place until then.
        let request = unsafe {
            (self.ucp.ucp_am_send_nbx)(
                endpoint,
                ID,
                (&raw const (*note).head).cast(),
                HEADER,
                start(data).cast_const(),
                data.len as usize,
                parameters.pointer(),
            )
        };
        let Some(status) = abi::status_of(request) else {
            return Offered::Active;
        };
        // SAFETY: the send has ended during the call, so UCX does not call `on_filled`.
        match unsafe { ended(note, status) } {
            abi::OK => Offered::Sent,
            _ => Offered::Failed,
        }
    }

    unsafe fn accept(&self, offer: Offer, place: Region, transfer: u64) -> Result<bool, String> {
        let Some(all) = &self.in_place else {
            return Err("this version of UCX cannot receive in place".into());
        };
        let note = Box::into_raw(Box::new(TransferNote {
            shared: self.shared(),
            transfer,
            head: [0; HEADER],
        }));
        let parameters = abi::receive(on_received, note.cast_const().cast());
        let handle = std::ptr::with_exposed_provenance_mut::<c_void>(offer.handle);
        // SAFETY: the callback of the message has returned `IN_PROGRESS` for this handle, which is used once.
        // The caller guarantees that no other code accesses the place until the receive has ended, and that it has the length of the data.
        let request = unsafe {
            (all.ucp.ucp_am_recv_data_nbx)(
                self.worker(),
                handle,
                start(place),
                place.len as usize,
                parameters.pointer(),
            )
        };
        let Some(status) = abi::status_of(request) else {
            return Ok(false);
        };
        // SAFETY: the receive has ended during the call, so UCX does not call `on_received`.
        match unsafe { ended(note, status) } {
            abi::OK => Ok(true),
            status => Err(self.text(status)),
        }
    }

    fn refuse(&self, offer: Offer) {
        let handle = std::ptr::with_exposed_provenance_mut::<c_void>(offer.handle);
        // SAFETY: the callback of the message has returned `IN_PROGRESS` for this handle, which is released once.
        // UCX then reports to the sender that its send has ended.
        unsafe { (self.ucp.ucp_am_data_release)(self.worker(), handle) };
    }

    fn have_moved(&self) -> bool {
        self.has_moved.replace(false)
    }
}

impl Worker {
    fn shared(&self) -> *const Shared {
        &raw const **self.shared
    }
}

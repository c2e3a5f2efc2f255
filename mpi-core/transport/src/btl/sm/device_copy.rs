//! Copies of long messages between the devices of one node that bypass host memory.
//!
//! The host memory that the engine sends or receives can represent device memory ([`twins`]).
//! The sender announces the message with an inter-process handle of the device allocation.
//! The receiver opens the handle and starts a copy to its own device memory or host memory.
//! If there is no handle, or if the receiver cannot open it, the message is sent in fragments.

#![allow(unsafe_code)]

use super::super::{Endpoint, Exposed, GetError, Region, RemoteMemory, Rights, Span};
use mpi_base::accelerator::twins::{self, Part};
use mpi_base::accelerator::{self, Accelerator, Export, Flight};
use std::cell::{Cell, RefCell};

/// The device copies of this process that may still be active.
#[derive(Default)]
pub(super) struct DeviceCopies {
    number: Cell<u64>,
    active: RefCell<Vec<Active>>,
}

struct Active {
    number: u64,
    by: &'static dyn Accelerator,
    flight: Flight,
    /// The destination, if it is device memory. `bytes` is the length of the message.
    target: Option<Part>,
    bytes: usize,
}

impl DeviceCopies {
    /// Returns true if a copy may still be active.
    /// The end of a copy rings no doorbell, so the process must poll for it.
    #[inline]
    pub fn are_active(&self) -> bool {
        self.active.try_borrow().is_ok_and(|all| !all.is_empty())
    }

    fn next(&self) -> u64 {
        self.number.set(self.number.get() + 1);
        self.number.get()
    }

    fn end(&self, number: u64, waits: bool) -> Option<bool> {
        let mut all = self.active.borrow_mut();
        let Some(at) = all.iter().position(|active| active.number == number) else {
            return Some(false);
        };
        let ended = all[at].by.end(all[at].flight, waits)?;
        let active = all.swap_remove(at);
        if let (Ok(()), Some(target)) = (&ended, active.target) {
            target.skip(active.bytes);
        }
        Some(ended.is_ok())
    }
}

fn host(region: Region) -> *mut u8 {
    std::ptr::with_exposed_provenance_mut(region.address as usize)
}

/// Splits a key into the accelerator and the exported handle.
fn parsed(key: &[u8]) -> Option<(&'static dyn Accelerator, Export)> {
    let (&len, rest) = key.split_first()?;
    let (name, export) = rest.split_at_checked(len.into())?;
    let name = std::str::from_utf8(name).ok()?;
    Some((accelerator::named(name)?, Export::decode(export)?))
}

impl RemoteMemory for DeviceCopies {
    /// One byte: only memory that represents device memory is exposed, and such memory is always long.
    fn shortest(&self) -> usize {
        1
    }

    fn reads_devices(&self) -> bool {
        true
    }

    unsafe fn expose(&self, region: Region, rights: Rights) -> Option<Exposed> {
        if rights != Rights::Read {
            return None;
        }
        let len = usize::try_from(region.len).ok()?;
        let twin = twins::of(host(region), len)?;
        let (by, memory, at) = twin.device();
        let export = by.export(memory, at, len)?;
        let mut key = vec![u8::try_from(by.name().len()).ok()?];
        key.extend(by.name().bytes());
        key.extend(export.encode());
        let number = self.next();
        Some(Exposed { number, key })
    }

    /// Does nothing: the handle remains valid as long as the program's memory.
    fn withdraw(&self, _number: u64) {}

    unsafe fn read(&self, from: Endpoint, span: Span<'_>) -> Result<u64, GetError> {
        let (by, export) = parsed(span.key).ok_or(GetError::BadAddress)?;
        let bytes = usize::try_from(span.local.len).map_err(|_| GetError::BadAddress)?;
        if span.offset != 0 || !export.has(bytes) {
            return Err(GetError::BadAddress);
        }
        let target =
            twins::of(host(span.local), bytes).filter(|twin| twin.device().0.name() == by.name());
        let (near, to) = match &target {
            Some(twin) => {
                let (_, memory, at) = twin.device();
                (Some(*memory), at)
            }
            None => (None, host(span.local)),
        };
        // SAFETY: by the contract of this function only this copy accesses the target until its outcome is known.
        // The program leaves its device memory valid until the receive completes.
        let started = unsafe { by.import(near.as_ref(), from.0.into(), &export, to, bytes) };
        let flight = started.map_err(|_| GetError::Forbidden)?;
        let number = self.next();
        self.active.borrow_mut().push(Active {
            number,
            by,
            flight,
            target,
            bytes,
        });
        Ok(number)
    }

    unsafe fn write(&self, _to: Endpoint, _span: Span<'_>) -> Result<u64, GetError> {
        Err(GetError::Forbidden)
    }

    fn flush(&self, _to: Endpoint) -> Result<u64, GetError> {
        Err(GetError::Forbidden)
    }

    fn outcome(&self, access: u64) -> Option<bool> {
        self.end(access, false)
    }

    fn give_up(&self, access: u64) {
        let _ended = self.end(access, true);
    }
}

//! The registration of a send's data for remote reads by the network; dropping the value ends the registration.

#![allow(unsafe_code)]

use crate::btl::{Btl, Exposed, Region, Rights};
use mpi_base::accelerator::twins;
use std::rc::Rc;

pub(super) struct Exposure {
    btl: Rc<dyn Btl>,
    exposed: Exposed,
}

impl Exposure {
    /// Registers the data of a send, if the transport supports remote reads of such data.
    pub(super) fn of(btl: &Rc<dyn Btl>, data: &[u8]) -> Option<Exposure> {
        let reader = btl.capabilities().remote_memory?;
        // The network must not read the host copy of device data before the copy is filled,
        // and a transport that reads device memory reads only device memory. In both cases the data are not registered.
        if reader.reads_devices() != twins::of(data.as_ptr(), data.len()).is_some() {
            return None;
        }
        if data.len() < reader.shortest().max(1) {
            return None;
        }
        let region = Region {
            address: data.as_ptr().expose_provenance() as u64,
            len: data.len() as u64,
        };
        // SAFETY: the program leaves the buffer of a send in place until the send completes, and every completion of a send drops this value.
        let exposed = unsafe { reader.expose(region, Rights::Read) }?;
        let fits = 16 + exposed.key.len() <= btl.info().limits.max_send;
        let exposure = Exposure {
            btl: btl.clone(),
            exposed,
        };
        fits.then_some(exposure)
    }

    /// Returns the key with which the receiver reads the data.
    pub(super) fn key(&self) -> &[u8] {
        &self.exposed.key
    }
}

impl Drop for Exposure {
    fn drop(&mut self) {
        if let Some(reader) = self.btl.capabilities().remote_memory {
            reader.withdraw(self.exposed.number);
        }
    }
}
